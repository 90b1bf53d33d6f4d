package chaos

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

var (
	seeds = flag.Int("chaos.seeds", 0, "how many seeds the soak goes through (default: 20 with -chaos.full, else 1)")
	seed  = flag.Uint64("chaos.seed", 1, "the soak's first seed")
)

// share of all calls goes wrong in a soak.
const share = 0.2

// silence is how long a lost reply keeps its caller waiting: in the fake's
// scaled time, long.
const silence = 50 * time.Millisecond

// soak takes a world through a sequence of configurations while a share of all
// calls goes wrong, and says what came of it.
type soak struct {
	steps       int
	calls, hits int
	verdict
}

// warned tells whether a command that passed had something to say of trouble.
// That a zone may not offer a generation is said in good weather too.
func warned(text string) bool {
	return strings.Count(text, "Warning:") > strings.Count(text, "Warning: tpu7x may not be offered in")
}

// storm makes calls go wrong until it is calm again.
func (w *world) storm(t testing.TB, seed uint64) (calm func() (seen, hit int)) {
	t.Helper()
	if _, err := w.faults.Add(faults.Storm("", "", share, seed, silence)...); err != nil {
		t.Fatal(err)
	}
	return func() (seen, hit int) {
		rules, err := w.faults.Remove()
		if err != nil {
			t.Fatal(err)
		}
		return weather(rules)
	}
}

// weather sums up what a storm's rules saw and hit.
func weather(rules []faults.Rule) (seen, hit int) {
	for _, r := range rules {
		hit += r.Hits
		seen = max(seen, r.Seen)
	}
	return seen, hit
}

func (s *soak) add(v verdict, seen, hit int) {
	s.steps, s.calls, s.hits = s.steps+1, s.calls+seen, s.hits+hit
	s.verdict.add(v)
}

// line is one of the tables in docs/benchmarks.md.
func (s *soak) line(name string, seeds int) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |", name, seeds, s.steps, s.calls, s.hits, len(s.orphans), len(s.duplicates), len(s.losses), len(s.failures))
}

// through applies each configuration after the other, under a storm, and checks
// each against its model.
func (s *soak) through(t testing.TB, all *benches, seed uint64, steps []*pool, opts ...fakegke.Option) {
	t.Helper()
	w := newWorld(t, nil, opts...)
	b := all.take(t, nil)
	var before *pool
	for i, after := range steps {
		from := start{scenario: scenario{name: fmt.Sprint(i), before: before, after: after, remade: before != nil && after != nil && before.accelerator != after.accelerator}}
		w.mark()
		b.write(t, w.Config(owner, hcl(after)))
		calm := w.storm(t, seed*1000+uint64(i))
		text, err := b.run(t, apply...)
		v := from.check(t, w, b)
		seen, hit := calm()
		if err != nil || warned(text) {
			v.failures = append(v.failures, fmt.Sprintf("an error surfaced: %v\n%s", err, text))
		}
		s.add(v, seen, hit)
		if !v.ok() {
			t.Errorf("seed %d, step %d (%s to %s):\n%s", seed, i, before, after, v)
			return
		}
		before = after
	}
	if !w.Empty() && before == nil {
		t.Errorf("seed %d: something is left in GKE", seed)
	}
}

func (p *pool) String() string {
	if p == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d x %s", p.count, p.accelerator)
}

func slicesOf(n int) *pool {
	p := four
	p.count = n
	return &p
}

// While every fifth call goes wrong, 50 slices come up, shrink to 20, grow to
// 40 and go: no error surfaces, nothing is made twice, and no healthy slice is
// touched.
func TestSoak(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 1
		if *full {
			n = 20
		}
	}
	all := newBenches(t, 1)
	began := time.Now()
	var sum soak
	for i := range n {
		t.Run(fmt.Sprintf("seed %d", *seed+uint64(i)), func(t *testing.T) {
			sum.through(t, all, *seed+uint64(i), []*pool{slicesOf(50), slicesOf(20), slicesOf(40), nil})
		})
	}
	report(t, sum.line("soak", n))
	t.Logf("%s", time.Since(began).Round(time.Second))
}

// What this very apply made, and did not hear of, is not said to be somebody
// else's that is taken over.
func TestALostReplyIsNoTakeover(t *testing.T) {
	w := newWorld(t, nil)
	b := newBenches(t, 1).take(t, nil)
	if _, err := w.faults.Add(
		faults.Rule{Kind: faults.ResetAfter, Method: "CreateCluster", Call: 1},
		faults.Rule{Kind: faults.ResetAfter, Method: "CreateNodePool", Call: 1},
	); err != nil {
		t.Fatal(err)
	}
	b.write(t, w.Config(owner, slicesOf(2).hcl()))
	if text, err := b.run(t, apply...); err != nil || warned(text) {
		t.Errorf("%v\n%s", err, text)
	}
}
