package accelerator

import "slices"

// shapeSet is every topology of one generation.
type shapeSet struct {
	all     []Topology            // by chips, then compact first
	byChips map[int][]Topology    // most compact first
	known   map[Topology]struct{} // canonical spellings
	sorted  map[[3]int]Topology   // sides in ascending order -> canonical spelling
	sizes   []int                 // chip counts, ascending
	forms   map[Topology][]Slice  // one per machine type, the default first
}

// cube is the side of the smallest three-dimensional building block above 64
// chips: every side of a larger slice is a multiple of it.
const cube = 4

// makeShapes enumerates. In three dimensions, the documented shapes up to 64
// chips come from the table, and above them every A<=B<=C of multiples of 4
// whose product is within the generation's limit, elongated ones included.
func makeShapes(f *Facts) *shapeSet {
	s := &shapeSet{
		all:     slices.Clone(f.Small),
		byChips: map[int][]Topology{},
		known:   map[Topology]struct{}{},
		sorted:  map[[3]int]Topology{},
		forms:   map[Topology][]Slice{},
	}
	if f.Dimensions == 3 {
		s.all = append(s.all, cubic(f.MaxChips)...)
	}
	slices.SortFunc(s.all, moreCompact)
	for _, t := range s.all {
		if _, seen := s.byChips[t.Chips()]; !seen {
			s.sizes = append(s.sizes, t.Chips())
		}
		s.byChips[t.Chips()] = append(s.byChips[t.Chips()], t)
		s.known[t] = struct{}{}
		s.sorted[t.sorted()] = t
		for i, m := range f.machines(t) {
			name := f.name(t, m, s.byChips[t.Chips()][0] == t, i == 0)
			s.forms[t] = append(s.forms[t], f.makeSlice(name, t, m))
		}
	}
	return s
}

// cubic lists the topologies of more than one cube, up to limit chips.
func cubic(limit int) []Topology {
	var all []Topology
	for a := cube; a*a*a <= limit; a += cube {
		for b := a; a*b*b <= limit; b += cube {
			for c := b; a*b*c <= limit; c += cube {
				if a*b*c > cube*cube*cube {
					all = append(all, Topology{a, b, c})
				}
			}
		}
	}
	return all
}

// near returns the size just below and just above chips; 0 where there is none.
func (s *shapeSet) near(chips int) (below, above int) {
	i, found := slices.BinarySearch(s.sizes, chips)
	if i > 0 {
		below = s.sizes[i-1]
	}
	if found {
		i++
	}
	if i < len(s.sizes) {
		above = s.sizes[i]
	}
	return below, above
}
