package gke

import (
	"strings"
	"testing"
)

// Whoever takes something over reads that it may be another configuration's,
// and what would have told the two apart.
func TestTakenOverSaysWhoseItMayBe(t *testing.T) {
	for owner, wants := range map[string][]string{
		"":       {"v5e-0, v5e-1", "without an `owner`, less than 24 hours ago", "an earlier run", "another one", "set `owner`"},
		"team-a": {"v5e-0, v5e-1", `the owner "team-a"`, "an earlier run", "another one", "an `owner` of its own"},
	} {
		text := TakenOver("v5e-0, v5e-1", owner)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("owner %q: no %q in: %s", owner, want, text)
			}
		}
	}
}
