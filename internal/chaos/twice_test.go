package chaos

import (
	"slices"
	"testing"
)

// Two applies of one configuration at once, on one state without a lock: one
// wins or both converge. After the next apply there is what the configuration
// says, and nothing is there twice. Nothing was made or taken down twice either,
// except by two replacements, the later of which replaces what the earlier made:
// only a lock can prevent that.
func TestTwoAppliesAtOnce(t *testing.T) {
	all := newBenches(t, 2)
	chosen := scenarios
	if !*full {
		chosen = []scenario{scenarios[0], scenarios[1], scenarios[4]}
	}
	for _, s := range chosen {
		if *only != "" && s.name != *only {
			continue
		}
		if s.renews() {
			s.rounds = 2
		}
		t.Run(s.name, func(t *testing.T) {
			from := begin(t, all, s)
			w := newWorld(t, from.gke)
			one, second := all.take(t, from.tfstate), all.take(t, nil)
			both := append(slices.Concat(apply, s.args), "-lock=false", "-state="+one.stateFile())
			var runs []*command
			for _, b := range []*bench{one, second} {
				b.write(t, w.Config(owner, hcl(s.after)))
				runs = append(runs, b.start(t, both...))
			}
			passed := 0
			for _, r := range runs {
				if r.wait() == nil {
					passed++
				}
			}
			t.Logf("%d of 2 applies passed", passed)
			if passed == 0 {
				t.Errorf("neither apply passed:\n%s\n%s", &runs[0].out, &runs[1].out)
			}
			if text, err := one.run(t, apply...); err != nil {
				t.Errorf("the apply after both: %v\n%s", err, text)
			}
			if v := from.check(t, w, one); !v.ok() {
				t.Errorf("%s\n%s\n%s", v, &runs[0].out, &runs[1].out)
			}
		})
	}
}

// What a test allows for reaches the judge, whichever test made the beginning.
func TestABeginningIsJudgedByItsCaller(t *testing.T) {
	s := scenario{name: "made by another test"}
	kept := &beginning{made: start{scenario: s, calls: []string{"GetCluster"}}}
	kept.once.Do(func() {})
	begins.Store(s.name, kept)
	t.Cleanup(func() { begins.Delete(s.name) })
	s.rounds = 2
	if got := begin(t, nil, s).model().rounds; got != 2 {
		t.Errorf("%d rounds allowed, want 2", got)
	}
}
