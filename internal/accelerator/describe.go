package accelerator

import "fmt"

// Description is all there is to say about a slice, as data sources, functions
// and commands show it.
type Description struct {
	Slice
	NameCounts   Unit              `json:"name_counts"` // what the number in the name counts
	NodeLabels   map[string]string `json:"node_labels"`
	Taint        Taint             `json:"taint"`
	ResourceName string            `json:"resource_name"`
	BootDisks    []string          `json:"boot_disks"` // types that work, the default first
	MinGKE       string            `json:"min_gke_version,omitempty"`
	Capacity     Capacity          `json:"capacity"`
	SubSlices    []string          `json:"sub_slices"` // topologies that can be scheduled inside one slice
	Cubes        int               `json:"cubes"`      // 4x4x4 blocks, for super-slicing; 0 otherwise
	// TopologyLevels are the node labels by which Kueue divides or joins such
	// slices, outermost first; empty where neither is possible.
	TopologyLevels []string      `json:"topology_levels"`
	Alternatives   []Alternative `json:"alternatives"`
	Notes          []string      `json:"notes"`
	Warnings       []string      `json:"warnings"`
	Source         string        `json:"source"`
}

// Taint is a node taint.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Alternative is another slice of the same number of chips.
type Alternative struct {
	Name         string   `json:"name"`
	Topology     Topology `json:"topology"`
	Hosts        int      `json:"hosts"`
	ChipsPerHost int      `json:"chips_per_host"`
	MachineType  string   `json:"machine_type"`
}

// Describe gathers the description of a slice. Lists are never nil.
func (s Slice) Describe() Description {
	d := Description{
		Slice:          s,
		NodeLabels:     s.NodeLabels(),
		Taint:          Taint{TaintKey, TaintValue, TaintEffect},
		ResourceName:   ResourceName,
		Cubes:          s.Cubes(),
		SubSlices:      []string{},
		TopologyLevels: append([]string{}, s.TopologyLevels()...),
		Notes:          s.Notes(),
		Warnings:       s.Warnings(),
	}
	if f := find(s.Generation); f != nil {
		d.NameCounts, d.BootDisks, d.MinGKE, d.Capacity, d.Source = f.NameCounts, f.BootDisks, f.MinGKEVersion, f.Capacity.notNil(), f.Source
	}
	for _, t := range s.SubSliceTopologies() {
		d.SubSlices = append(d.SubSlices, t.String())
	}
	others := s.Alternatives()
	d.Alternatives = make([]Alternative, 0, len(others))
	for _, a := range others {
		d.Alternatives = append(d.Alternatives, Alternative{a.Name, a.Topology, a.Hosts, a.ChipsPerHost, a.MachineType})
	}
	return d
}

// Notes explain how the name was read where people are known to misread it.
func (s Slice) Notes() []string {
	notes := []string{}
	f := find(s.Generation)
	if f == nil {
		return notes
	}
	if f.NameCounts == TensorCores {
		notes = append(notes, fmt.Sprintf("The number in a %s name counts TensorCores, %d to a chip: this slice has %s and %s.",
			f.NamePrefix, f.CoresPerChip, count(s.TensorCores, "TensorCore"), count(s.Chips, "chip")))
	}
	if forms := f.forms(s.Topology); len(forms) > 1 {
		other := forms[0]
		if other == s {
			other = forms[1]
		}
		note := fmt.Sprintf("%s comes on two machine types. This is %s of %s; machine type %s makes it %s.",
			s.Topology, count(s.Hosts, "host"), s.MachineType, other.MachineType, count(other.Hosts, "host"))
		if s.MultiHost {
			note += " Several hosts are the default because multislice training needs them."
		}
		notes = append(notes, note)
	}
	if same := shapes[f.Generation]().byChips[s.Chips]; len(same) > 1 {
		notes = append(notes, fmt.Sprintf("%d topologies have %d chips; a name with the number alone means the most compact, %s.",
			len(same), s.Chips, same[0]))
	}
	if s.ContainersPerHost > 1 {
		notes = append(notes, fmt.Sprintf("Each host has %d NUMA nodes: by default %d containers share it, %s each.",
			s.ContainersPerHost, s.ContainersPerHost, count(s.ChipsPerHost/s.ContainersPerHost, "chip")))
	}
	return notes
}

// Warnings are reasons to doubt that Google will make such a slice.
func (s Slice) Warnings() []string {
	warnings := []string{}
	f := find(s.Generation)
	if f == nil {
		return warnings
	}
	if s.Chips > f.DocumentedChips {
		warnings = append(warnings, fmt.Sprintf("%d chips are more than the %d that Google documents for one %s slice; GKE may refuse it.", s.Chips, f.DocumentedChips, s.Generation))
	}
	if s.Generation == TPU7 {
		warnings = append(warnings, "tpu7 is not in Google's documentation; the machine types are known from the GKE autoscaler only.")
	}
	return warnings
}
