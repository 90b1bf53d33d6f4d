package conn

import (
	"context"
	"testing"
	"testing/synctest"
)

// The second of two objects that make one name is refused, unless the first
// came to nothing.
func TestTwoMakeOneName(t *testing.T) {
	var n Names
	end, ok, err := n.Make(t.Context(), "a")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	end(false)
	if end, ok, err = n.Make(t.Context(), "a"); err != nil || !ok {
		t.Fatal("after a failure:", ok, err)
	}
	end(true)
	if _, ok, err = n.Make(t.Context(), "a"); err != nil || ok {
		t.Error("the second was let through:", err)
	}
	if _, ok, err = n.Make(t.Context(), "b"); err != nil || !ok {
		t.Error("another name was refused:", err)
	}
}

// A deletion waits for a creation of the same name, and leaves what it made; a
// creation waits for a deletion, and makes it anew.
func TestMakeAndRemoveTakeTurns(t *testing.T) {
	for name, c := range map[string]struct{ made, removes bool }{
		"made":   {true, false},
		"failed": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n Names
				end, _, err := n.Make(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				done := false
				go func() {
					free, ok, err := n.Remove(t.Context(), "a")
					if err != nil || ok != c.removes {
						t.Errorf("removes: %t, %v", ok, err)
					}
					if ok {
						free()
					}
					done = true
				}()
				synctest.Wait()
				if done {
					t.Error("the deletion did not wait")
				}
				end(c.made)
				synctest.Wait()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var n Names
		free, ok, err := n.Remove(t.Context(), "a")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := n.Make(ended, "a"); err == nil {
			t.Error("it did not wait for the deletion")
		}
		free()
		if _, ok, err := n.Make(t.Context(), "a"); err != nil || !ok {
			t.Error("after the deletion:", ok, err)
		}
	})
}

// What was planned for a name before is told, the creation rather than what is kept.
func TestPlannedTwice(t *testing.T) {
	var n Names
	for i, c := range []struct {
		name         string
		what, before Planned
	}{
		{"a", PlannedKept, PlannedNothing}, {"b", PlannedNew, PlannedNothing},
		{"a", PlannedNew, PlannedKept}, {"a", PlannedKept, PlannedNew}, {"b", PlannedKept, PlannedNew},
	} {
		if got := n.Plan(c.name, c.what); got != c.before {
			t.Errorf("%d: %v, want %v", i, got, c.before)
		}
	}
}
