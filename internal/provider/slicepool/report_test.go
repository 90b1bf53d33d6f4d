package slicepool

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// What is said of failures follows from what they left: the numbers do not
// contradict the cause, and the next apply is said to do only what is left.
func TestReportOfFailures(t *testing.T) {
	denied := &gke.Error{Verb: "updating node pool", Object: "projects/p/locations/l/clusters/c/nodePools/v5e-0", Cause: gke.Permission, Message: "No."}
	late := &gke.Error{Verb: "creating node pool", Object: "projects/p/locations/l/clusters/c/nodePools/v5e-0", Cause: gke.TimedOut}
	up := gke.Slice{NodePool: "v5e-0", Status: gke.SliceRunning}
	old := gke.Slice{NodePool: "v5e-0", Status: gke.SliceRunning, Outdated: []string{"node.tags"}}
	down := gke.Slice{NodePool: "v5e-0", Status: gke.SliceError}
	hostless := gke.Slice{NodePool: "v5e-0", Status: gke.SliceRunning, Hostless: true}
	const stay = "The slices that are ready stay as they are. "
	for name, c := range map[string]struct {
		count         int
		res           gke.SlicePoolResult
		summary, last string // "" is no message
	}{
		"one did not come up": {2, gke.SlicePoolResult{Slices: gke.Slices{0: up}, Failures: map[int]error{1: denied}},
			"1 of 2 slices are ready: permission denied", stay + "The next apply makes what is missing."},
		"the only one did not": {1, gke.SlicePoolResult{Slices: gke.Slices{0: down}, Failures: map[int]error{0: denied}},
			"0 of 1 slice is ready: permission denied", "The next apply makes what is missing."},
		"one has no hosts": {1, gke.SlicePoolResult{Slices: gke.Slices{0: hostless}, Failures: map[int]error{0: denied}},
			"0 of 1 slice is ready: permission denied", "The next apply makes what is missing."},
		"one is up without its changes": {2, gke.SlicePoolResult{Slices: gke.Slices{0: up, 1: old}, Failures: map[int]error{1: denied}},
			"1 of 2 slices has not got its changes: permission denied", "The next apply makes the changes that are left."},
		"all are, for want of time": {2, gke.SlicePoolResult{Slices: gke.Slices{0: old, 1: old}, Failures: map[int]error{0: late, 1: late}, Ended: gke.TimedOut},
			"2 of 2 slices have not got their changes after the timeout", "The next apply makes the changes that are left."},
		"one was not removed": {1, gke.SlicePoolResult{Slices: gke.Slices{0: up, 1: up}, Gone: map[int]bool{1: true}, Failures: map[int]error{1: denied}},
			"1 slice too many is still there: permission denied", "The next apply removes what is too many."},
		"something of each": {2, gke.SlicePoolResult{Slices: gke.Slices{0: old, 2: up, 3: up}, Gone: map[int]bool{2: true, 3: true},
			Failures: map[int]error{0: denied, 1: denied, 2: denied, 3: denied}},
			"1 of 2 slices are ready, 1 of 2 slices has not got its changes, 2 slices too many are still there: permission denied",
			stay + "The next apply makes what is missing, makes the changes that are left and removes what is too many."},
		"all came right since": {2, gke.SlicePoolResult{Slices: gke.Slices{0: up, 1: up}, Gone: map[int]bool{2: true}, Failures: map[int]error{1: late, 2: late}}, "", ""},
	} {
		var diags diag.Diagnostics
		report(&diags, gke.SlicePool{Name: "v5e", Count: c.count}, c.res, true)
		switch {
		case c.summary == "" && len(diags) == 0:
		case c.summary == "" || len(diags) != 1:
			t.Errorf("%s: %v", name, diags)
		default:
			lines := strings.Split(diags[0].Detail(), "\n")
			if !strings.HasPrefix(diags[0].Summary(), "Slice pool v5e: "+c.summary) || lines[len(lines)-1] != c.last {
				t.Errorf("%s: %s\n%s", name, diags[0].Summary(), diags[0].Detail())
			}
		}
	}
}

// What was left for a job's sake is a warning with the job's name, and speaks
// of one slice as of one.
func TestReportOfSparedSlices(t *testing.T) {
	one := []gke.Spared{{NodePool: "v5e-0", Jobs: []string{"default/train[0]"}}}
	two := append(one[:1:1], gke.Spared{NodePool: "v5e-1", Jobs: []string{"default/other[0]"}})
	for want, res := range map[string]gke.SlicePoolResult{
		" takes over 1 node pool":                    {Adopted: []string{"v5e-0"}},
		" takes over 2 node pools":                   {Adopted: []string{"v5e-0", "v5e-1"}},
		" keeps 1 slice more than it should have":    {Surplus: one},
		" keeps 2 slices more than it should have":   {Surplus: two},
		": 1 broken slice is not made again":         {Broken: one},
		": 2 broken slices are not made again":       {Broken: two},
		": 1 slice has not got its new settings":     {Outdated: one},
		": 2 slices have not got their new settings": {Outdated: two},
	} {
		var diags diag.Diagnostics
		report(&diags, gke.SlicePool{Name: "v5e", Count: 1}, res, true)
		if len(diags) != 1 || diags.HasError() || diags[0].Summary() != "Slice pool v5e"+want {
			t.Errorf("want %q: %v", want, diags)
			continue
		}
		if n := len(res.Surplus) + len(res.Broken) + len(res.Outdated); n > 0 && !strings.Contains(diags[0].Detail(), "v5e-0 runs default/train[0]") ||
			n == 1 && !strings.Contains(diags[0].Detail(), "when it is idle") || n == 2 && !strings.Contains(diags[0].Detail(), "when they are idle") {
			t.Errorf("%s: %s", want, diags[0].Detail())
		}
	}
}
