package accelerator

import (
	"fmt"
	"slices"
)

// Labels and names of sub-slicing (v6e: jobs that use a part of one slice) and
// super-slicing (tpu7x: jobs that use several 4x4x4 cubes as one slice).
const (
	// AnnotationSliceTopology names on a pod the topology its job wants.
	AnnotationSliceTopology = "cloud.google.com/gke-tpu-slice-topology"
	// AnnotationRequiredTopology is Kueue's: all pods within one such domain.
	AnnotationRequiredTopology = "kueue.x-k8s.io/podset-required-topology"
	// LabelCube names the 4x4x4 cube of a tpu7x node.
	LabelCube = "cloud.google.com/gke-tpu-partition-4x4x4-id"
	// SuperSliceController answers the admission check that forms a slice out
	// of cubes.
	SuperSliceController = "accelerator.gke.io/slice"
	// MaxSuperSliceName is the longest name of a formed slice's object.
	MaxSuperSliceName = 49
)

// SubSliceLabel is the node label that names the part of shape t a node
// belongs to: cloud.google.com/gke-tpu-slice-8x8-id.
func SubSliceLabel(t Topology) string {
	return "cloud.google.com/gke-tpu-slice-" + t.String() + "-id"
}

// SubSliceTopologies are the parts that a job can ask for inside this slice,
// largest first: smaller multi-host shapes of v6e. Other generations have none.
func (s Slice) SubSliceTopologies() []Topology {
	if s.Generation != V6e || !s.MultiHost {
		return nil
	}
	var parts []Topology
	for _, t := range shapes[V6e]().all {
		if t.Chips() > s.ChipsPerHost && t.Chips() < s.Chips {
			parts = append(parts, t)
		}
	}
	slices.Reverse(parts)
	return parts
}

// SubSlice is a part of a slice that a job runs on.
type SubSlice struct {
	Parent, Part Slice
	PerParent    int // parts in one parent
	// Levels of the Kueue Topology of the parent's flavor, outermost first.
	Levels []string
	// PodAnnotations of a job that wants the part. Such a job must not carry
	// JobSet's exclusive-topology annotation: parts share one node pool.
	PodAnnotations map[string]string
}

// SubSlice works out how a job runs on a part of this slice. Errors are *Error
// of kind NoSuchTopology.
func (s Slice) SubSlice(part Topology) (SubSlice, error) {
	parts := s.SubSliceTopologies()
	if !slices.Contains(parts, part) {
		e := &Error{Kind: NoSuchTopology, Input: part.String(), Reason: fmt.Sprintf("%s is not a part of a %s %s slice", part, s.Generation, s.Topology)}
		for _, p := range parts {
			e.Choices = append(e.Choices, p.String())
		}
		if len(parts) == 0 {
			e.Reason += ", which cannot be divided"
		}
		return SubSlice{}, e
	}
	p, err := Lookup(s.Generation, part, s.MachineType)
	if err != nil {
		return SubSlice{}, err
	}
	return SubSlice{
		Parent: s, Part: p, PerParent: s.Chips / p.Chips, Levels: s.TopologyLevels(),
		PodAnnotations: map[string]string{
			AnnotationRequiredTopology: SubSliceLabel(part),
			AnnotationSliceTopology:    part.String(),
		},
	}, nil
}

// TopologyLevels are the levels of a Kueue Topology for such slices, outermost
// first; nil where neither sub- nor super-slicing applies.
func (s Slice) TopologyLevels() []string {
	switch {
	case s.Cubes() > 0:
		return []string{LabelBlock, LabelCube, LabelHostname}
	case len(s.SubSliceTopologies()) > 0:
		levels := []string{SubSliceLabel(s.Topology)}
		for _, t := range s.SubSliceTopologies() {
			levels = append(levels, SubSliceLabel(t))
		}
		return append(levels, LabelHostname)
	}
	return nil
}

// Cubes is the number of 4x4x4 cubes that a super-slice of tpu7x is formed of;
// 0 where super-slicing does not apply.
func (s Slice) Cubes() int {
	if s.Generation != TPU7x || s.Chips%(cube*cube*cube) != 0 {
		return 0
	}
	return s.Chips / (cube * cube * cube)
}
