package chaos

import (
	"flag"
	"testing"

	"pgregory.net/rapid"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// Random configurations, one after another, in bad weather. A failure is
// shrunk to a short sequence, and its seed is printed.
func TestRandomChanges(t *testing.T) {
	if !*full && flag.Lookup("rapid.checks").Value.String() == "100" { // nobody chose
		for name, value := range map[string]string{"rapid.checks": "1", "rapid.seed": "1"} { // always the same one
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := newBenches(t, 1)
	shapes := []pool{four, other, {accelerator: "v5litepod-8"}, placed}
	rapid.Check(t, func(r *rapid.T) {
		var steps []*pool
		for range rapid.IntRange(1, 3).Draw(r, "changes") {
			p := shapes[rapid.IntRange(0, len(shapes)-1).Draw(r, "shape")]
			p.count = rapid.IntRange(0, 7).Draw(r, "slices")
			if p.policies > 0 {
				p.count = max(p.count, 1) // the policy comes with the first slice and goes with the pool
			}
			if rapid.Bool().Draw(r, "larger disks") {
				p.more, p.diskGB = "node = { boot_disk = { size_gb = 200 } }", 200
			}
			steps = append(steps, &p)
		}
		quota := rapid.IntRange(1, 8).Draw(r, "quota of operations")
		late := rapid.IntRange(0, 2).Draw(r, "late reads")
		seed := rapid.Uint64Range(1, 1<<20).Draw(r, "seed")
		var sum soak
		// Each try has a world of its own, which ends with the try.
		try := &attempt{TB: t, r: r}
		defer try.finish()
		sum.through(try, all, seed, append(steps, nil), fakegke.WithOperationQuota(quota), fakegke.WithLateReads(late))
	})
}

// attempt is a try of rapid's as a testing.TB: it fails by itself, and cleans
// up by itself.
type attempt struct {
	testing.TB
	r        *rapid.T
	cleanups []func()
}

func (a *attempt) Cleanup(f func())                  { a.cleanups = append(a.cleanups, f) }
func (a *attempt) Error(args ...any)                 { a.r.Error(args...) }
func (a *attempt) Errorf(format string, args ...any) { a.r.Errorf(format, args...) }
func (a *attempt) Fatal(args ...any)                 { a.r.Fatal(args...) }
func (a *attempt) Fatalf(format string, args ...any) { a.r.Fatalf(format, args...) }
func (a *attempt) Logf(format string, args ...any)   { a.r.Logf(format, args...) }

func (a *attempt) finish() {
	for i := len(a.cleanups) - 1; i >= 0; i-- {
		a.cleanups[i]()
	}
}
