package slicepool

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// Fifty slices that fail for one cause are told of once, with GKE's words of
// the first; another cause has a paragraph of its own.
func TestCausesAreToldOnce(t *testing.T) {
	failures := map[int]error{}
	stockout := func(i string) error {
		return &gke.Error{Verb: "creating node pool", Object: "projects/p/locations/us-west4-a/clusters/c/nodePools/v5e-" + i, Zone: "us-west4-a",
			Cause: gke.Stockout, Message: "GKE's words on " + i, Facts: gke.Facts{Machine: "ct5lp-hightpu-4t"}}
	}
	for i := range 50 {
		failures[i] = stockout(string(rune('a' + i%26)))
	}
	brief, text, refused := causes(failures)
	if refused || brief != "no capacity for ct5lp-hightpu-4t in us-west4-a" || strings.Count(text, "GKE's words on") != 1 || strings.Count(text, "Apply again later") != 1 ||
		!strings.Contains(text, "50 slices (0-49): no capacity for ct5lp-hightpu-4t in us-west4-a\n") {
		t.Errorf("got %q, refused %v:\n%s", brief, refused, text)
	}
	failures[7] = &gke.Error{Verb: "creating node pool", Object: "projects/p/locations/us-west4-a/clusters/c/nodePools/v5e-7", Cause: gke.Permission, Message: "No."}
	brief, text, refused = causes(failures)
	if !refused || brief != "" || !strings.Contains(text, "49 slices (0-6, 8-49): no capacity") || !strings.Contains(text, "Slice 7: permission denied\n") {
		t.Errorf("got %q, refused %v:\n%s", brief, refused, text)
	}
}

func TestProblems(t *testing.T) {
	var diags diag.Diagnostics
	problem(&diags, "Could not do it", errors.New("plain"))
	problem(&diags, "Could not do it", &gke.Error{Verb: "reading cluster", Object: "projects/p/locations/l/clusters/c", Cause: gke.APINotEnabled, Facts: gke.Facts{API: "container.googleapis.com"}})
	if got := diags[0]; got.Summary() != "Could not do it" || got.Detail() != "plain" {
		t.Errorf("got %v", got)
	}
	if got := diags[1]; got.Summary() != "Could not do it: API not enabled: container.googleapis.com" ||
		got.Detail() != "The attempt: reading cluster projects/p/locations/l/clusters/c\n\nEnable it: gcloud services enable container.googleapis.com --project p" {
		t.Errorf("got %v", got)
	}
}

func TestLists(t *testing.T) {
	for want, in := range map[string][]int{"": nil, "3": {3}, "1, 2": {1, 2}, "0-2, 5, 7, 8": {0, 1, 2, 5, 7, 8}} {
		if got := list(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
