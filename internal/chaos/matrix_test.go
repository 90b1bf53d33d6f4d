package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// promptly is how soon an interrupted command must have returned.
const promptly = 2 * time.Second

// tally sums up a matrix.
type tally struct {
	mu                                                 sync.Mutex
	cells, late, orphans, duplicates, losses, failures int
	slowest                                            time.Duration
	calls                                              int
	began                                              time.Time
}

func (y *tally) add(o outcome) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if o.method == "" {
		y.late++ // the apply was over before
		return
	}
	y.cells++
	y.orphans += len(o.orphans)
	y.duplicates += len(o.duplicates)
	y.losses += len(o.losses)
	y.failures += len(o.failures)
	y.slowest = max(y.slowest, o.took)
}

// begins are the scenarios' beginnings, each made once for all tests.
var begins sync.Map // name to *beginning

type beginning struct {
	once sync.Once
	made start
}

// begin makes what a scenario begins with, once. What is judged by is the
// caller's scenario: another test may have allowed for less.
func begin(t *testing.T, all *benches, s scenario) start {
	t.Helper()
	kept, _ := begins.LoadOrStore(s.name, &beginning{})
	one := kept.(*beginning)
	one.once.Do(func() {
		t.Run("undisturbed", func(t *testing.T) { one.made = prepare(t, all, s) })
	})
	if one.made.calls == nil {
		t.Fatal("the undisturbed apply did not pass")
	}
	from := one.made
	from.scenario = s
	return from
}

// sample picks n cells at random, the same ones each time.
func sample(cells []cell, n int, name string) []cell {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	var out []cell
	for _, i := range rand.New(rand.NewPCG(h.Sum64(), 0)).Perm(len(cells)) {
		if len(out) < n {
			out = append(out, cells[i])
		}
	}
	return out
}

// matrix runs the cells of every scenario: all of them with -chaos.full, else
// so many.
func matrix(t *testing.T, name string, cellsOf func(calls int) []cell, usual int) {
	all := newBenches(t, workers)
	for _, s := range scenarios {
		if *only != "" && s.name != *only {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			from := begin(t, all, s)
			sum := &tally{began: time.Now(), calls: len(from.calls)}
			cells := cellsOf(len(from.calls))
			switch {
			case *every > 0:
				cells = sample(cells, (len(cells)+*every-1) / *every, s.name)
			case !*full:
				// Not at its end: how often an apply looks at an operation varies, and it
				// may be over there.
				cells = slices.DeleteFunc(cells, func(c cell) bool { return 3*c.n > 2*len(from.calls) })
				cells = sample(cells, usual, s.name)
			}
			t.Run("cells", func(t *testing.T) {
				for _, c := range cells {
					t.Run(c.String(), func(t *testing.T) {
						t.Parallel()
						o := from.run(t, all, c)
						sum.add(o)
						if !o.ok() {
							t.Errorf("at %s:\n%s", o.method, o.verdict)
						}
						if c.by == interrupt && o.took > promptly {
							t.Errorf("at %s: the interrupted apply returned after %s", o.method, o.took)
						}
					})
				}
			})
			if sum.cells == 0 {
				t.Error("every cell came after the end")
			}
			report(t, fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d | %.1f |", name, s.name, sum.calls, sum.cells, sum.orphans, sum.duplicates, sum.losses, sum.failures, sum.slowest.Seconds()))
			t.Logf("%d cells came after the end; %s", sum.late, time.Since(sum.began).Round(time.Second))
		})
	}
}

// report prints a line of the tables in docs/benchmarks.md.
func report(t *testing.T, line string) {
	t.Helper()
	t.Log(line)
	if *full {
		fmt.Fprintln(os.Stderr, line)
	}
}
