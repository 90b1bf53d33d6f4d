package accelerator

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyShape draws from the whole catalogue.
func anyShape(t *rapid.T) Slice {
	all := List(Filter{})
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "shape")]
}

func TestEveryShapeHolds(t *testing.T) {
	names := map[string]Slice{}
	for _, s := range List(Filter{}) {
		if other, taken := names[s.Name]; taken {
			t.Errorf("%s names both %v and %v", s.Name, s, other)
		}
		names[s.Name] = s
		if s.Hosts*s.ChipsPerHost != s.Chips || s.Topology.Chips() != s.Chips {
			t.Errorf("%v: hosts x chips per host, chips and topology disagree", s)
		}
		if s.MultiHost != (s.Hosts > 1) || s.MultiHost != (s.Placement != PlacementNone) {
			t.Errorf("%v: multi-host %v, placement %s", s, s.MultiHost, s.Placement)
		}
		if s.ChipsPerHost%s.ContainersPerHost != 0 {
			t.Errorf("%v: %d containers cannot share a host equally", s, s.ContainersPerHost)
		}
		again, err := Resolve(s.Name)
		if err != nil || again != s {
			t.Errorf("Resolve(%q) = %v, %v; want %v", s.Name, again, err, s)
		}
		for _, gen := range []Generation{"", s.Generation} {
			again, err = Lookup(gen, s.Topology, s.MachineType)
			if err != nil || again != s {
				t.Errorf("Lookup(%q, %s, %s) = %v, %v; want %v", gen, s.Topology, s.MachineType, again, err, s)
			}
		}
		parsed, err := ParseTopology(s.Topology.String())
		if err != nil || parsed != s.Topology {
			t.Errorf("ParseTopology(%q) = %v, %v", s.Topology, parsed, err)
		}
	}
}

// Every valid shape is enumerated: whatever Lookup accepts is in List, over
// all topologies in and around the catalogue.
func TestWhatLookupAcceptsIsListed(t *testing.T) {
	listed := map[Slice]bool{}
	for _, s := range List(Filter{}) {
		listed[s] = true
	}
	reached := map[Slice]bool{}
	try := func(g Generation, top Topology) {
		for _, machine := range append([]string{""}, machinesOf(g)...) {
			s, err := Lookup(g, top, machine)
			if err != nil {
				continue
			}
			reached[s] = true
			if !listed[s] {
				t.Errorf("%v is accepted but not listed", s)
			}
			if sides := top.sorted(); top.Chips() > 64 && sides[0]%4+sides[1]%4+sides[2]%4 != 0 && top.Dimensions() == 3 {
				t.Errorf("%v: above 64 chips a side is no multiple of 4", s)
			}
		}
	}
	for _, g := range Generations() {
		for x := 1; x <= 24; x++ {
			for y := 1; y <= 24; y++ {
				try(g, MakeTopology(x, y))
				for z := 1; z <= 40; z++ {
					try(g, MakeTopology(x, y, z))
				}
			}
		}
		for z := 4; z <= 600; z += 4 {
			try(g, MakeTopology(4, 4, z))
		}
	}
	for s := range listed {
		if sides := s.Topology.sorted(); sides[1] <= 24 && sides[2] <= 40 && !reached[s] {
			t.Errorf("%v is listed, but Lookup does not find it", s)
		}
	}
}

func machinesOf(g Generation) []string {
	f, _ := g.Facts()
	var names []string
	for _, m := range f.Machines {
		names = append(names, m.Name)
	}
	return names
}

// A rotation is answered with the spelling that works.
func TestRotations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyShape(t)
		sides := rapid.Permutation(s.Topology.Sides()).Draw(t, "sides")
		turned := MakeTopology(sides...)
		got, err := Lookup(s.Generation, turned, s.MachineType)
		if turned == s.Topology {
			if err != nil || got != s {
				t.Fatalf("Lookup(%v) = %v, %v", s, got, err)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != Rotated {
			t.Fatalf("%s %s: %v, %v; want it refused as a rotation", s.Generation, turned, got, err)
		}
		if diff := cmp.Diff([]string{s.Topology.String()}, e.Choices); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The nearest sizes of a refused count enclose it, and nothing lies between.
func TestNearestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom(Generations()).Draw(t, "generation")
		f, _ := g.Facts()
		n := rapid.IntRange(1, 2*f.MaxChips*f.CoresPerChip).Draw(t, "count")
		_, err := Resolve(fmt.Sprintf("%s-%d", f.NamePrefix, n))
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != NoSuchSize || len(e.Choices) == 0 {
			t.Fatalf("%s-%d: %v", g, n, err)
		}
		below, above := 0, 0
		for _, s := range List(Filter{Generations: []Generation{g}, Compact: true}) {
			if count := s.Chips * f.perCount(); count < n {
				below = count
			} else if above == 0 {
				above = count
			}
		}
		var want []string
		for _, count := range []int{below, above} {
			if count > 0 {
				want = append(want, fmt.Sprintf("%s-%d", f.NamePrefix, count))
			}
		}
		if diff := cmp.Diff(want, e.Choices); diff != "" {
			t.Fatalf("%s-%d: %s", g, n, diff)
		}
	})
}

// The rule for bare names: no shape of the size is more compact.
func TestBareNamesMeanTheMostCompact(t *testing.T) {
	for _, s := range List(Filter{Compact: true}) {
		for _, a := range s.Alternatives() {
			if a.Topology.longest() < s.Topology.longest() ||
				a.Topology.longest() == s.Topology.longest() && a.Topology.sum() < s.Topology.sum() {
				t.Errorf("%s means %s, but %s is more compact", s.Name, s.Topology, a.Topology)
			}
		}
	}
}

// No input panics, and what is accepted prints as itself.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"v5p-8", "v5litepod-8-8t", "tpu7x-1x1x1", "v6e-4X4", "v5p-4x4x", "-", "v5p-4x4x4x4", "tpu-v5-lite-podslice-16", "v5p-99999999999", "💥-8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, err := Resolve(name)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || err.Error() == "" {
				t.Errorf("Resolve(%q): %T %v", name, err, err)
			}
			return
		}
		again, err := Resolve(s.Name)
		if err != nil || again != s {
			t.Errorf("Resolve(%q) = %v, whose name means %v, %v", name, s, again, err)
		}
		_ = s.Describe()
	})
}

func FuzzParseTopology(f *testing.F) {
	for _, seed := range []string{"4x4", "4X4x8", "1x1x1", "x", "4x", "0x4", "99999999x99999999x99999999", "4 x 4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		top, err := ParseTopology(s)
		if err != nil {
			return
		}
		if top.Chips() <= 0 {
			t.Errorf("ParseTopology(%q) = %v with %d chips", s, top, top.Chips())
		}
		if again, err := ParseTopology(top.String()); err != nil || again != top {
			t.Errorf("%q printed as %q and read back as %v, %v", s, top, again, err)
		}
		for _, g := range Generations() {
			_, _ = Lookup(g, top, "")
		}
	})
}

func BenchmarkDescribe(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := Resolve("v5p-2048")
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Describe()
	}
}

func BenchmarkDescribeAll(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range List(Filter{}) {
			_ = s.Describe()
		}
	}
}
