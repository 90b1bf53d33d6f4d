package accelerator

import (
	"fmt"
	"strconv"
)

// Placement is how the hosts of a slice are put close together.
type Placement string

// The kinds of placement.
const (
	// PlacementNone is for single hosts: GKE refuses a topology on their pools.
	PlacementNone Placement = "none"
	// PlacementCompact is placement_policy {type = COMPACT, tpu_topology}.
	PlacementCompact Placement = "compact"
	// PlacementWorkloadPolicy is a regional Compute workload policy
	// (HIGH_THROUGHPUT with the topology), named in placement_policy.policy_name;
	// the pool then carries no tpu_topology.
	PlacementWorkloadPolicy Placement = "workload_policy"
)

// Slice is one kind of TPU slice: a topology on a machine type. One slice is
// one node pool. Slices are comparable.
type Slice struct {
	// Name is the canonical type name, which Resolve turns into this very
	// Slice: v5p-128, or with the topology (v5p-4x4x64) where the size alone
	// means another shape, and with the machine's size (v5litepod-8-8t) where
	// the shape alone means another machine.
	Name         string     `json:"name"`
	Generation   Generation `json:"generation"`
	Topology     Topology   `json:"topology"`
	Chips        int        `json:"chips"`
	TensorCores  int        `json:"tensorcores"`
	Hosts        int        `json:"hosts"` // nodes
	ChipsPerHost int        `json:"chips_per_host"`
	MachineType  string     `json:"machine_type"`
	// AcceleratorLabel is the value of LabelAccelerator.
	AcceleratorLabel string `json:"accelerator_label"`
	// MultiHost slices are atomic: all hosts or none, never resized.
	MultiHost bool `json:"multi_host"`
	// Multislice: several such slices can train together over the data centre
	// network. Single hosts cannot.
	Multislice bool      `json:"multislice"`
	Placement  Placement `json:"placement"`
	BootDisk   string    `json:"boot_disk"` // the default disk type
	// MaxPodsPerNode of the node pool.
	MaxPodsPerNode int `json:"max_pods_per_node"`
	// ContainersPerHost share the host's chips equally by default.
	ContainersPerHost int  `json:"containers_per_host"`
	FlexStart         bool `json:"flex_start"` // flex-start provisioning is offered
	Spot              bool `json:"spot"`
	Reservations      bool `json:"reservations"`
}

// NodeLabels are the labels by which a pod selects the nodes of such slices.
func (s Slice) NodeLabels() map[string]string {
	return map[string]string{
		LabelAccelerator:      s.AcceleratorLabel,
		LabelTopology:         s.Topology.String(),
		LabelAcceleratorCount: strconv.Itoa(s.ChipsPerHost),
	}
}

// String describes the slice in one line.
func (s Slice) String() string {
	return fmt.Sprintf("%s: %s %s, %s, %s of %s (%s)", s.Name, s.Generation, s.Topology,
		count(s.Chips, "chip"), count(s.Hosts, "host"), count(s.ChipsPerHost, "chip"), s.MachineType)
}

// count writes "1 host", "4 hosts".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// machines lists the machine types a topology can be made of, the default
// first. Chips that fit in one host make a single host; 2x4 also comes as two
// hosts of four chips, which is the default since only multi-host slices can
// take part in multislice training.
func (f *Facts) machines(t Topology) []Machine {
	chips := t.Chips()
	var list []Machine
	if m, _ := f.machine(f.MultiHost); chips%m.Chips == 0 {
		list = append(list, m)
	}
	for _, m := range f.Machines {
		if m.Chips == chips && m.Name != f.MultiHost {
			list = append(list, m)
		}
	}
	return list
}

// slice finds the Slice of t on m, which are known to go together.
func (f *Facts) slice(t Topology, m Machine) Slice {
	for _, s := range f.forms(t) {
		if s.MachineType == m.Name {
			return s
		}
	}
	panic("accelerator: no slice of " + t.String() + " on " + m.Name) // choose and check have let it through
}

// forms are the Slices of a topology, one for each of its machines.
func (f *Facts) forms(t Topology) []Slice { return shapes[f.Generation]().forms[t] }

// makeSlice puts a Slice together.
func (f *Facts) makeSlice(name string, t Topology, m Machine) Slice {
	chips := t.Chips()
	s := Slice{
		Name:              name,
		Generation:        f.Generation,
		Topology:          t,
		Chips:             chips,
		TensorCores:       chips * f.CoresPerChip,
		Hosts:             chips / m.Chips,
		ChipsPerHost:      m.Chips,
		MachineType:       m.Name,
		AcceleratorLabel:  f.AcceleratorLabel,
		MultiHost:         chips > m.Chips,
		Multislice:        chips > m.Chips,
		Placement:         PlacementNone,
		BootDisk:          f.BootDisks[0],
		MaxPodsPerNode:    MaxPodsPerNode,
		ContainersPerHost: min(f.ContainersPerHost, m.Chips),
		FlexStart:         f.FlexStart,
		Spot:              true,
		Reservations:      true,
	}
	if s.MultiHost {
		s.Placement = PlacementCompact
		if f.WorkloadPolicy {
			s.Placement = PlacementWorkloadPolicy
		}
	}
	return s
}

// name is the shortest name that Resolve turns back into t on m: the size alone
// if it means this topology, and no machine if m is the topology's default.
func (f *Facts) name(t Topology, m Machine, compact, preferred bool) string {
	name := f.NamePrefix + "-"
	if compact {
		name += strconv.Itoa(t.Chips() * f.perCount())
	} else {
		name += t.String()
	}
	if !preferred {
		name += "-" + m.short()
	}
	return name
}
