package accelerator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The catalogue against the documented rules, enumerated another way: all
// products of sides are tried, and each is kept or dropped by itself.
func TestCatalogueIsWhatTheRulesSay(t *testing.T) {
	small3D := "2x2x1 2x2x2 2x2x4 2x4x4 4x4x4"
	for g, rule := range map[Generation]struct {
		small string
		max   int // chips of shapes with three sides
	}{
		V4:    {small3D, 4096},
		V5e:   {"1x1 2x2 2x4 4x4 4x8 8x8 8x16 16x16", 0},
		V5p:   {small3D, 8960},
		V6e:   {"1x1 2x2 2x4 4x4 4x8 8x8 8x16 16x16", 0},
		TPU7x: {"1x1x1 " + small3D, 9216},
		TPU7:  {"1x1x1 " + small3D, 256},
	} {
		want := strings.Fields(rule.small)
		for a := 1; a*a*a <= rule.max; a++ {
			for b := a; a*b*b <= rule.max; b++ {
				for c := b; a*b*c <= rule.max; c++ {
					if a*b*c > 64 && a%4 == 0 && b%4 == 0 && c%4 == 0 {
						want = append(want, fmt.Sprintf("%dx%dx%d", a, b, c))
					}
				}
			}
		}
		var got []string
		for _, s := range List(Filter{Generations: []Generation{g}}) {
			if text := s.Topology.String(); len(got) == 0 || got[len(got)-1] != text {
				got = append(got, text)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", g, diff)
		}
	}
}

// Machines by the rule: hosts of four chips wherever they divide the slice, and
// one host of exactly the slice's chips where there is such a machine.
func TestMachinesAreWhatTheRulesSay(t *testing.T) {
	sizes := map[Generation][]int{V4: {4}, V5e: {1, 4, 8}, V5p: {4}, V6e: {1, 4, 8}, TPU7x: {1, 4}, TPU7: {1, 4}}
	got := map[string][]int{}
	for _, s := range List(Filter{}) {
		key := string(s.Generation) + " " + s.Topology.String()
		got[key] = append(got[key], s.ChipsPerHost)
	}
	for _, s := range List(Filter{}) {
		var want []int
		if s.Chips%4 == 0 {
			want = append(want, 4)
		}
		for _, n := range sizes[s.Generation] {
			if n == s.Chips && n != 4 {
				want = append(want, n)
			}
		}
		key := string(s.Generation) + " " + s.Topology.String()
		if diff := cmp.Diff(want, got[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

// Bounds on the work of a description: 10 ms for the whole catalogue and 50 us
// for one slice. The fastest of several runs is taken, so that a busy machine
// fails nothing.
func TestDescribingIsQuick(t *testing.T) {
	one := func() {
		s, err := Resolve("v5p-2048")
		if err != nil {
			t.Error(err)
		}
		_ = s.Describe()
	}
	all := func() {
		for _, s := range List(Filter{}) {
			_ = s.Describe()
		}
	}
	for name, bound := range map[string]struct {
		do     func()
		within time.Duration
		allocs float64
	}{
		"one slice":           {one, 50 * time.Microsecond, 30},
		"the whole catalogue": {all, 10 * time.Millisecond, 30_000},
	} {
		fastest := time.Hour
		for range 50 {
			start := time.Now()
			bound.do()
			fastest = min(fastest, time.Since(start))
		}
		allocs := testing.AllocsPerRun(5, bound.do)
		t.Logf("%s: %v, %.0f allocations", name, fastest, allocs)
		if allocs > bound.allocs {
			t.Errorf("%s: %.0f allocations, want at most %.0f", name, allocs, bound.allocs)
		}
		if fastest > bound.within {
			t.Errorf("%s: %v, want at most %v", name, fastest, bound.within)
		}
	}
}
