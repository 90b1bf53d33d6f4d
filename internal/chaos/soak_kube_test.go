package chaos

import (
	"fmt"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

// soak goes through scenarios, each from where the one before ended, while
// every fifth call to GKE and to the API server goes wrong: no error surfaces,
// and there is what the configuration says.
func (r *rig) soak(t *testing.T, scenarios []kubeScenario) {
	rounds := uint64(1)
	if *full {
		rounds = 5
	}
	var sum soak
	for seed := range rounds {
		for i, s := range scenarios {
			r.begin(t, s)
			rules, err := r.box.Faults().Add(faults.Storm("", kubeProject, share, seed*1000+uint64(i)+1, silence)...)
			if err != nil {
				t.Fatal(err)
			}
			r.b.write(t, s.to)
			text, err := r.b.run(t, apply...)
			again, planErr := r.b.run(t, plan...)
			gone, removeErr := r.box.Faults().Remove(ids(rules)...)
			if removeErr != nil {
				t.Fatal(removeErr)
			}
			seen, hit := weather(gone)
			v := r.check(t, s, "")
			if planErr != nil {
				v.failures = append(v.failures, fmt.Sprintf("the plan in the storm: %v\n%s", planErr, again))
			}
			sum.add(v, seen, hit)
			if err != nil || warned(text) {
				t.Errorf("seed %d, %s: an error surfaced: %v\n%s", seed, s.name, err, text)
			}
			if !v.ok() {
				t.Errorf("seed %d, %s:\n%s", seed, s.name, v)
			}
			if t.Failed() {
				return
			}
			r.now = s.to
		}
	}
	report(t, sum.line("soak, real cluster", int(rounds)))
}

func ids(rules []faults.Rule) (out []string) {
	for _, r := range rules {
		out = append(out, r.ID)
	}
	return out
}
