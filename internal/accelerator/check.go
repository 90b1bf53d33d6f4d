package accelerator

import (
	"fmt"
	"slices"
)

// check refuses a topology the generation does not have.
func (f *Facts) check(t Topology) *Error {
	set := shapes[f.Generation]()
	if _, ok := set.known[t]; ok {
		return nil
	}
	e := &Error{Kind: NoSuchTopology, Input: t.String()}
	if canonical, ok := set.sorted[t.sorted()]; ok && t.Dimensions() == f.Dimensions {
		e.Kind, e.Choices = Rotated, []string{canonical.String()}
		e.Reason = fmt.Sprintf("%s topologies are written one way only, and %s is a rotation", f.Generation, t)
		return e
	}
	e.Choices = set.nearest(t)
	e.Reason = fmt.Sprintf("%s has no topology %s", f.Generation, t) + f.why(t)
	if t.IsZero() {
		e.Reason = fmt.Sprintf("no topology of %s was given", f.Generation)
	}
	return e
}

// why tells which rule a topology breaks.
func (f *Facts) why(t Topology) string {
	switch {
	case t.Dimensions() != f.Dimensions:
		return fmt.Sprintf(": its topologies have %d sides", f.Dimensions)
	case t.Chips() > f.MaxChips:
		return fmt.Sprintf(": %d chips, and a slice has %d at most", t.Chips(), f.MaxChips)
	case f.Dimensions == 3 && t.Chips() > cube*cube*cube:
		return ": above 64 chips every side is a multiple of 4"
	}
	return ""
}

// nearest lists the topology just below and the one just above t in size, and
// those of the same size, most compact first: three at most.
func (s *shapeSet) nearest(t Topology) []string {
	if t.IsZero() {
		return nil
	}
	var near []Topology
	if same := s.byChips[t.Chips()]; len(same) > 0 {
		near = append(near, same[0])
	}
	below, above := s.near(t.Chips())
	for _, chips := range []int{below, above} {
		if chips > 0 {
			near = append(near, s.byChips[chips][0])
		}
	}
	slices.SortFunc(near, moreCompact)
	names := make([]string, len(near))
	for i, t := range near {
		names[i] = t.String()
	}
	return names
}
