package fakegke

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ask sends a raw request and returns status and body.
func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: bearer(testToken)}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		t.Errorf("%s %s answers %s", method, url, res.Header.Get("Content-Type"))
	}
	return res.StatusCode, string(data)
}

func TestEnumsAreNamesOrNumbersAsAsked(t *testing.T) {
	_, addr := serve(t)
	createCluster(t, restClient(t, addr, testToken))
	for query, want := range map[string]any{
		"":                                      "RUNNING",
		"?alt=json&prettyPrint=false":           "RUNNING",
		"?$alt=json%3Benum-encoding%3Dint":      2.0,
		"?alt=json%3Benum-encoding%3Dint&key=x": 2.0,
	} {
		code, body := ask(t, "GET", "http://"+addr+"/v1/"+testCluster+query, "")
		var c map[string]any
		if err := json.Unmarshal([]byte(body), &c); err != nil || code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		if c["status"] != want {
			t.Errorf("%q: status %v, want %v", query, c["status"], want)
		}
		if _, ok := c["expireTime"]; ok {
			t.Error("empty fields are sent")
		}
	}
}

func TestRESTErrorsOfTheFrontEnd(t *testing.T) {
	_, addr := serve(t)
	for name, tc := range map[string]struct {
		method, path, body string
		http               int
		status             string
	}{
		"no such path":      {"GET", "/v9/nothing", "", 404, "NOT_FOUND"},
		"no such method":    {"PATCH", "/v1/" + testCluster, "{}", 405, "UNIMPLEMENTED"},
		"no JSON":           {"POST", "/v1/" + testParent + "/clusters", "{", 400, "INVALID_ARGUMENT"},
		"an unknown field":  {"POST", "/v1/" + testParent + "/clusters", `{"cluster":{"nme":"x"}}`, 400, "INVALID_ARGUMENT"},
		"an unknown query":  {"GET", "/v1/" + testCluster + "?nme=x", "", 400, "INVALID_ARGUMENT"},
		"a missing cluster": {"GET", "/v1/" + testCluster, "", 404, "NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := ask(t, tc.method, "http://"+addr+tc.path, tc.body)
			var got struct{ Error googleError }
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if diff := cmp.Diff([]any{tc.http, tc.http, tc.status}, []any{code, got.Error.Code, got.Error.Status}); diff != "" || got.Error.Message == "" {
				t.Errorf("%s\n%s", diff, body)
			}
		})
	}
}

// Requests of the time before resource names address things by fields.
func TestTheOldPathsWork(t *testing.T) {
	_, addr := serve(t)
	createCluster(t, restClient(t, addr, testToken))
	code, body := ask(t, "GET", "http://"+addr+"/v1/projects/acme/zones/us-west4-a/clusters/train/nodePools/system", "")
	if code != 200 || !strings.Contains(body, "e2-standard-8") {
		t.Errorf("%d %s", code, body)
	}
}
