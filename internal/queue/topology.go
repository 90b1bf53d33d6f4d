package queue

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Topology is how Kueue sees where a flavor's hosts are, for topology-aware
// scheduling, sub-slices and super-slices.
type Topology struct {
	// Name of a Topology that exists; "" makes one of the flavor's name.
	Name string
	// Levels are node labels, the widest first. nil = those of the slice.
	Levels []string
}

// DefaultLevels are the levels of a slice's Topology unless it is told others:
// the parts that it can be divided in or is formed of, or else where Compute
// Engine has put the hosts.
func DefaultLevels(s accelerator.Slice) []string {
	if levels := s.TopologyLevels(); levels != nil {
		return levels
	}
	return []string{accelerator.LabelBlock, accelerator.LabelSubblock, accelerator.LabelHostname}
}

// TopologyName is the Topology that the flavor names, or "".
func (f Flavor) TopologyName() string {
	switch {
	case f.Topology == nil:
		return ""
	case f.Topology.Name != "":
		return f.Topology.Name
	}
	return f.Name
}

// TopologyObject renders the Topology that the flavor has for itself, or nil.
func (f Flavor) TopologyObject() *kueue.Topology {
	if f.Topology == nil || f.Topology.Name != "" {
		return nil
	}
	o := &kueue.Topology{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Topology"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Labels: managed()},
	}
	levels := f.Topology.Levels
	if levels == nil {
		levels = DefaultLevels(f.Slice)
	}
	for _, l := range levels {
		o.Spec.Levels = append(o.Spec.Levels, kueue.TopologyLevel{NodeLabel: l})
	}
	return o
}

// topologyOf reads a live flavor's back.
func topologyOf(live *kueue.ResourceFlavor, s accelerator.Slice, topology *kueue.Topology) *Topology {
	if live.Spec.TopologyName == nil {
		return nil
	}
	if name := string(*live.Spec.TopologyName); name != live.Name {
		return &Topology{Name: name}
	}
	t := &Topology{Levels: []string{}}
	if topology != nil {
		for _, l := range topology.Spec.Levels {
			t.Levels = append(t.Levels, l.NodeLabel)
		}
	}
	if slices.Equal(t.Levels, DefaultLevels(s)) {
		t.Levels = nil
	}
	return t
}

// Kueue's limits (TopologySpec).
const (
	maxLevels      = 16
	maxLevelLength = 316
)

var levelLabel = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

func (t Topology) check() error {
	if t.Name != "" {
		if t.Levels != nil {
			return fmt.Errorf("Topology %s has its own levels: leave out either the name or the levels", t.Name)
		}
		return checkName("Topology", t.Name)
	}
	if t.Levels != nil && len(t.Levels) == 0 {
		return errors.New("a Topology without levels: leave them out for those of the slice")
	}
	if n := len(t.Levels); n > maxLevels {
		return fmt.Errorf("a Topology of %d levels; Kueue allows %d", n, maxLevels)
	}
	for i, l := range t.Levels {
		switch {
		case len(l) > maxLevelLength || !levelLabel.MatchString(l):
			return fmt.Errorf("topology level %q is not a node label's key", l)
		case slices.Contains(t.Levels[:i], l):
			return fmt.Errorf("topology level %s is there twice", l)
		case l == accelerator.LabelHostname && i < len(t.Levels)-1:
			return fmt.Errorf("topology level %s is a single host: it can only be the last", l)
		}
	}
	return nil
}

// Frozen tells whether Kueue refuses to change the flavor from before in place:
// with a Topology, what a flavor stands for is fixed.
func (f Flavor) Frozen(before Flavor) bool {
	if before.Topology == nil {
		return false
	}
	was, is := before.Object().Spec, f.Object().Spec
	if before.TopologyName() != f.TopologyName() || !equality.Semantic.DeepEqual(was.NodeLabels, is.NodeLabels) || !equality.Semantic.DeepEqual(was.Tolerations, is.Tolerations) {
		return true
	}
	had, has := before.TopologyObject(), f.TopologyObject()
	if had == nil || has == nil || len(had.Spec.Levels) == 0 { // nothing to change, or somebody deleted it
		return false
	}
	return !slices.Equal(had.Spec.Levels, has.Spec.Levels)
}
