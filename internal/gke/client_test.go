package gke

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
)

func static(token string) oauth2.TokenSource {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{in: "https://container.googleapis.com/", want: "https://container.googleapis.com"},
		{in: "container.example.com:8443", want: "https://container.example.com:8443"},
		{in: "http://127.0.0.1:8080", want: "http://127.0.0.1:8080"},
		{in: "http://[::1]:8080", want: "http://[::1]:8080"},
		{in: "http://localhost:8080", want: "http://localhost:8080"},
		{in: "http://10.0.0.1:8080", err: "unencrypted"},
		{in: "http://localhost.example.com", err: "unencrypted"},
		{in: "https://me:secret@host", err: "no user name or password"},
		{in: "https://host/v1", err: "ends after the host"},
		{in: "ftp://host", err: "not an endpoint"},
		{in: "https://", err: "not an endpoint"},
	} {
		got, err := CheckEndpoint(c.in)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %q, %v; want %q", c.in, got, err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", c.in, err, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", c.in, err)
		}
	}
}

// client talks to a handler, fast.
func client(t *testing.T, h http.Handler) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(Config{Endpoint: s.URL, Tokens: static("t0ken"), UserAgent: "tester/1", QuotaProject: "payer", PollInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body))
}

var name = ClusterName{"acme", "us-west4-a", "main"}

func TestHeaders(t *testing.T) {
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := map[string]string{}
		for _, k := range []string{"Authorization", "User-Agent", "X-Goog-User-Project"} {
			got[k] = r.Header.Get(k)
		}
		want := map[string]string{"Authorization": "Bearer t0ken", "User-Agent": "tester/1", "X-Goog-User-Project": "payer"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("headers (-want +got):\n%s", d)
		}
		answer(w, 200, `{"name": "main"}`)
	}))
	if _, err := c.GetCluster(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// A redirect would carry the token to somebody else.
func TestNoRedirects(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	if _, err := c.GetCluster(t.Context(), name); err == nil {
		t.Error("a redirect is an answer")
	}
	if asked.Load() != 0 {
		t.Error("the token went to another server")
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       int
		cause      Cause
		want       []string
	}{
		{"not found", `{"error": {"code": 404, "status": "NOT_FOUND", "message": "Not found: projects/acme/zones/us-west4-a/clusters/main."}}`, 404,
			NotFound, []string{"reading cluster projects/acme/locations/us-west4-a/clusters/main in us-west4-a"}},
		{"permission", `{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "Required \"container.clusters.get\" permission(s) for \"projects/acme\"."}}`, 403,
			Permission, []string{"container.clusters.get", "roles/container.admin on project acme"}},
		{"API not enabled", `{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "Kubernetes Engine API has not been used in project 1 before or it is disabled.",
			"details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "googleapis.com", "metadata": {"service": "container.googleapis.com"}}]}}`, 403,
			APINotEnabled, []string{"gcloud services enable container.googleapis.com --project acme"}},
		{"token", `{"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "Request had invalid authentication credentials."}}`, 401,
			Unauthenticated, []string{"Log in again"}},
		{"refused", `{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "Bad."}}`, 400, Invalid, []string{"Bad."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, c.code, c.body) }))
			_, err := cl.GetCluster(t.Context(), name)
			if !errors.Is(err, c.cause) {
				t.Errorf("cause of %v is %q, want %q", err, cause(err), c.cause)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "t0ken") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

// GKE's own words, from its messages and issue threads.
func TestCauses(t *testing.T) {
	for message, want := range map[string]Cause{
		`Google Compute Engine: Not all instances running in IGM after 35m4s. Expected 5, running 2, transitioning 3. Current errors: [GCE_STOCKOUT]: Instance 'x' creation failed: The zone 'us-west4-a' does not have enough resources available to fulfill the request.`: Stockout,
		`Atomic resize failed with [GCE_STOCKOUT]`:                                                                                                          Stockout,
		`Too many operations: cluster "main" hits the concurrent operations quota 5, please try again later.`:                                               TooManyOps,
		`Cluster is running incompatible operation operation-1.`:                                                                                            Incompatible,
		`Operation operation-1 is currently creating a node pool for cluster main. Please wait and try again once it is done.`:                              Incompatible,
		`code=429 Reservation does not have enough resources for the request: required 1 and short of 1 VM count of machine type ct5lp-hightpu-4t`:          Reservation,
		`Google Compute Engine: [GCE_QUOTA_EXCEEDED]: Instance 'x' creation failed: Quota 'TPU_LITE_PODSLICE_V5' exceeded. Limit: 16.0 in region us-west4.`: Quota,
	} {
		if got := causeOf(0, message, ""); got != want {
			t.Errorf("%q is %q, want %q", message, got, want)
		}
	}
}

func TestRetriesWhatPasses(t *testing.T) {
	replies := []struct {
		code int
		body string
	}{
		{429, `{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded for quota metric 'Requests'.", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"}]}}`},
		{400, `{"error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "Cluster is running incompatible operation operation-1."}}`},
		{503, `{"error": {"code": 503, "status": "UNAVAILABLE", "message": "Try later."}}`},
		{200, `{"name": "main"}`},
	}
	var n atomic.Int32
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r := replies[n.Add(1)-1]
		answer(w, r.code, r.body)
	}))
	if _, err := c.GetCluster(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if int(n.Load()) != len(replies) {
		t.Errorf("%d requests, want %d", n.Load(), len(replies))
	}
}

func TestInterruptEndsAWaitAtOnce(t *testing.T) {
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 400, `{"error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "Cluster is running incompatible operation operation-1."}}`)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	// It says that it waits between two requests: interrupted within one it
	// could not know yet what that one answers.
	c.cfg.Log = func(context.Context, string, map[string]any) { cancel() }
	_, err := c.GetCluster(ctx, name)
	if !errors.Is(err, Interrupted) || !strings.Contains(err.Error(), "incompatible operation") {
		t.Errorf("got %v, want an interrupt that says what it waited for", err)
	}
}

func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses between tries take no time
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		endpoint := "http://" + l.Addr().String()
		_ = l.Close() // nobody listens any more
		c, err := New(Config{Endpoint: endpoint, Tokens: static("t")})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = c.GetCluster(t.Context(), name)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %s", took)
		}
		if !errors.Is(err, Unreachable) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "gke_endpoint") {
			t.Errorf("got %v", err)
		}
	})
}

// An endpoint that speaks no TLS, or with a certificate nobody trusts, is told
// at once, with what to look at.
func TestNotSecure(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0) // it notes the client's refusal
	unknown.StartTLS()
	defer unknown.Close()
	for what, endpoint := range map[string]string{
		"plain http":           strings.Replace(plain.URL, "http://", "https://", 1),
		"an unknown authority": unknown.URL,
	} {
		c, err := New(Config{Endpoint: endpoint, Tokens: static("t")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.GetCluster(t.Context(), name); !errors.Is(err, NotSecure) || !strings.Contains(err.Error(), "TPU_GKE_ENDPOINT") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOlderVersion(t *testing.T) {
	for _, c := range []struct {
		version, min string
		want         bool
	}{
		{"1.34.1-gke.2201000", "1.34", false},
		{"1.34.1-gke.2201000", "1.34.1", false},
		{"1.34.1-gke.2201000", "1.34.1-gke.2201000", false},
		{"1.34.1-gke.100", "1.34.1-gke.2201000", true},
		{"1.9.0", "1.34", true},
		{"1.35.0", "1.34.9", false},
		{"", "1.34", true},
	} {
		if got := OlderVersion(c.version, c.min); got != c.want {
			t.Errorf("OlderVersion(%q, %q) = %v", c.version, c.min, got)
		}
	}
}
