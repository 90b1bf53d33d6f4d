package accelerator

// Filter chooses slices. Zero fields choose everything.
type Filter struct {
	Generations        []Generation
	Topology           Topology
	MachineType        string
	Chips, Hosts       int // exactly
	MinChips, MaxChips int
	MinHosts, MaxHosts int
	// Compact leaves out the shapes that a bare name does not mean: elongated
	// ones, and all but the first machine type of a topology that the filter
	// lets through.
	Compact bool
}

// List enumerates the catalogue: every topology on every machine type it can
// be made of, by generation, then size, then compactness. Every Slice that
// Resolve or Lookup returns is in List(Filter{}), and the other way round.
func List(f Filter) []Slice {
	var list []Slice
	for _, facts := range f.facts() {
		set := shapes[facts.Generation]()
		for _, t := range set.all {
			if f.Compact && set.byChips[t.Chips()][0] != t || !f.fits(t) {
				continue
			}
			for _, slice := range set.forms[t] {
				if !f.made(slice) {
					continue
				}
				list = append(list, slice)
				if f.Compact {
					break
				}
			}
		}
	}
	return list
}

// fits judges what a topology alone decides, before a Slice is made of it.
func (f Filter) fits(t Topology) bool {
	chips := t.Chips()
	return (f.Topology.IsZero() || f.Topology == t) &&
		(f.Chips == 0 || f.Chips == chips) &&
		(f.MinChips == 0 || chips >= f.MinChips) &&
		(f.MaxChips == 0 || chips <= f.MaxChips)
}

// made judges what follows from the machine.
func (f Filter) made(s Slice) bool {
	return (f.MachineType == "" || f.MachineType == s.MachineType) &&
		(f.Hosts == 0 || f.Hosts == s.Hosts) &&
		(f.MinHosts == 0 || s.Hosts >= f.MinHosts) &&
		(f.MaxHosts == 0 || s.Hosts <= f.MaxHosts)
}

// Alternatives are the other slices of the same generation and number of
// chips: other machines for this topology first, then other topologies, most
// compact first.
func (s Slice) Alternatives() []Slice {
	f := find(s.Generation)
	if f == nil {
		return nil
	}
	topologies := shapes[f.Generation]().byChips[s.Chips]
	list := make([]Slice, 0, len(topologies))
	for _, form := range f.forms(s.Topology) {
		if form != s {
			list = append(list, form)
		}
	}
	for _, t := range topologies {
		if t != s.Topology {
			list = append(list, f.forms(t)...)
		}
	}
	return list
}
