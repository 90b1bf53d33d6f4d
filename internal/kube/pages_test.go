package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// pager serves five cohorts, two an answer. From the page at the offset expired
// on it has forgotten the list, once.
func pager(t *testing.T, expired string) *kube.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		w.Header().Set("Content-Type", "application/json")
		from := r.URL.Query().Get("continue")
		switch {
		case r.URL.Path == "/apis":
			answer = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{map[string]any{"name": "kueue.x-k8s.io",
				"versions": []any{map[string]any{"groupVersion": "kueue.x-k8s.io/v1beta2", "version": "v1beta2"}}}}}
		case strings.HasSuffix(r.URL.Path, "/v1beta2"):
			answer = map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "kueue.x-k8s.io/v1beta2",
				"resources": []any{map[string]any{"name": "cohorts", "kind": "Cohort"}}}
		case !strings.HasSuffix(r.URL.Path, "/cohorts"):
			answer = map[string]any{"kind": "APIVersions", "versions": []string{}}
		case from != "" && from == expired:
			w.WriteHeader(http.StatusGone)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
				"metadata": map[string]any{"continue": "late" + from}}
		default:
			n, _ := strconv.Atoi(strings.TrimPrefix(from, "late"))
			metadata, items := map[string]any{}, []any{}
			for ; n < 5 && len(items) < 2; n++ {
				item := map[string]any{"metadata": map[string]any{"name": strconv.Itoa(n)}}
				if n == 0 { // must not shine through in a later page
					item["spec"] = map[string]any{"parentName": "all"}
				}
				items = append(items, item)
			}
			if n < 5 {
				metadata["continue"] = strconv.Itoa(n)
			}
			answer = map[string]any{"kind": "CohortList", "apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": metadata, "items": items}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := kube.ForConfig("test", &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every object is listed once, also when the server forgets the list between
// two pages; what is kept of a page stays as it was.
func TestPages(t *testing.T) {
	for _, expired := range []string{"", "2", "4"} {
		var list kueue.CohortList
		var kept []kueue.Cohort
		err := pager(t, expired).Pages(t.Context(), &list, "for a test", func() error {
			kept = append(kept, list.Items...)
			return nil
		})
		if err != nil || len(kept) != 5 {
			t.Fatalf("list that expires at %q: %d objects, %v", expired, len(kept), err)
		}
		for i := range kept {
			if kept[i].Name != strconv.Itoa(i) || (kept[i].Spec.ParentName != "") != (i == 0) {
				t.Errorf("list that expires at %q: object %d is %s in %q", expired, i, kept[i].Name, kept[i].Spec.ParentName)
			}
		}
	}
}

// A kind that the cluster does not know has no objects.
func TestPagesOfNothing(t *testing.T) {
	var list kueue.ClusterQueueList
	if err := pager(t, "").Pages(t.Context(), &list, "for a test", func() error { t.Error("a page"); return nil }); err != nil {
		t.Error(err)
	}
}
