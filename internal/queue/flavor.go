package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Flavor is one kind of slice: a generation and topology, and optionally a
// capacity model. Its name does not depend on how many slices there are. Without
// a slice it is of hosts: it counts cpu and memory, and selects only the nodes
// that its labels say.
type Flavor struct {
	Name         string
	Slice        accelerator.Slice // the zero value = hosts
	Provisioning Provisioning
	Reservation  string              // name of the reservation; with Reserved only
	NodeLabels   map[string]string   // further labels of the nodes it stands for
	NodeTaints   []corev1.Taint      // that a job must tolerate by itself to get the flavor
	Tolerations  []corev1.Toleration // further ones that jobs get with the flavor
	Topology     *Topology           // nil = Kueue does not look at where the hosts are
}

// Kueue's limits (ResourceFlavorSpec).
const (
	maxFlavorLabels      = 8
	maxFlavorTaints      = 8
	maxFlavorTolerations = 8
)

// ofHosts tells whether the flavor stands for no kind of slice.
func (f Flavor) ofHosts() bool { return f.Slice.Chips == 0 }

// Labels are the node labels that the flavor selects. Kueue allows 8.
func (f Flavor) Labels() map[string]string {
	labels := f.ownLabels()
	maps.Copy(labels, f.NodeLabels)
	return labels
}

// ownLabels follow from the slice and the capacity model. The chips per host
// tell the two machines apart that 2x4 is made of.
func (f Flavor) ownLabels() map[string]string {
	labels := map[string]string{}
	if !f.ofHosts() {
		labels = f.Slice.NodeLabels()
	}
	maps.Copy(labels, f.Provisioning.labels(f.Reservation))
	return labels
}

// AddedTolerations follow from the slice and the capacity model.
func (f Flavor) AddedTolerations() []corev1.Toleration {
	if f.ofHosts() {
		return f.Provisioning.hostTolerations()
	}
	return f.Provisioning.tolerations()
}

// AllTolerations are what Kueue adds to the pods that get the flavor, so that a
// job needs to know none of them.
func (f Flavor) AllTolerations() []corev1.Toleration {
	return slices.Concat(f.AddedTolerations(), f.Tolerations)
}

// Object renders the ResourceFlavor.
func (f Flavor) Object() *kueue.ResourceFlavor {
	o := &kueue.ResourceFlavor{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "ResourceFlavor"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Labels: managed()},
		Spec:       kueue.ResourceFlavorSpec{NodeLabels: f.Labels(), NodeTaints: f.NodeTaints, Tolerations: f.AllTolerations()},
	}
	if f.Topology != nil {
		o.Spec.TopologyName = ptr.To(kueue.TopologyReference(f.TopologyName()))
	}
	return o
}

// Validate checks what the CRDs and Kueue's webhook would refuse, and what
// would contradict the slice.
func (f Flavor) Validate() error {
	if err := checkName("flavor", f.Name); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("flavor %s: "+format, append([]any{f.Name}, args...)...)
	}
	if err := f.Provisioning.Check(f.Reservation); err != nil {
		return refuse("%w", err)
	}
	if err := f.checkHosts(); err != nil {
		return refuse("%w", err)
	}
	own := f.ownLabels()
	for _, key := range slices.Sorted(maps.Keys(f.NodeLabels)) {
		value := f.NodeLabels[key]
		if had, ok := own[key]; ok && had != value {
			return refuse("node label %s follows from the accelerator and the provisioning (%s); leave it out of node_labels", key, had)
		}
		if model := provisioningOf(map[string]string{key: value}); model != AnyProvisioning && model != f.Provisioning {
			return refuse("node label %s says provisioning %q: set provisioning instead", key, model)
		}
		if err := checkLabel(key, value); err != nil {
			return refuse("%w", err)
		}
	}
	if n := len(f.Labels()); n > maxFlavorLabels {
		return refuse("%d node labels, of which the accelerator and the provisioning take %d; Kueue allows %d", n, len(own), maxFlavorLabels)
	}
	if err := checkTaints(f.NodeTaints); err != nil {
		return refuse("%w", err)
	}
	if err := checkTolerations(f.Tolerations); err != nil {
		return refuse("%w", err)
	}
	for _, t := range f.Tolerations {
		if slices.Contains(f.AddedTolerations(), t) {
			return refuse("the toleration of %s is added by itself; leave it out", t.Key)
		}
	}
	if n := len(f.AllTolerations()); n > maxFlavorTolerations {
		return refuse("%d tolerations, of which the accelerator and the provisioning take %d; Kueue allows %d", n, n-len(f.Tolerations), maxFlavorTolerations)
	}
	if f.Topology != nil {
		if err := f.Topology.check(); err != nil {
			return refuse("%w", err)
		}
	}
	return nil
}

// checkHosts refuses what makes a flavor of hosts one of TPU slices after all.
func (f Flavor) checkHosts() error {
	if !f.ofHosts() {
		return nil
	}
	for _, key := range sliceLabels {
		if _, ok := f.NodeLabels[key]; ok {
			return fmt.Errorf("node label %s is one of TPU nodes: set accelerator instead, or leave it out for a flavor of hosts", key)
		}
	}
	if slices.ContainsFunc(f.Tolerations, func(t corev1.Toleration) bool { return t.Key == accelerator.TaintKey }) {
		return fmt.Errorf("a toleration of %s without an accelerator: pods without TPUs would land on TPU nodes", accelerator.TaintKey)
	}
	if f.Topology != nil && len(f.Labels()) == 0 {
		return errors.New("a Topology without node labels: Kueue wants at least one that says whose nodes it is of")
	}
	return nil
}

// sliceLabels say which slice a TPU node is of.
var sliceLabels = []string{accelerator.LabelAccelerator, accelerator.LabelTopology, accelerator.LabelAcceleratorCount}

// OfSlices tells whether a live flavor is one of TPU slices, known or not:
// something of what it says is about TPU nodes.
func OfSlices(live *kueue.ResourceFlavor) bool {
	return slices.ContainsFunc(sliceLabels, func(key string) bool { _, ok := live.Spec.NodeLabels[key]; return ok }) ||
		slices.ContainsFunc(live.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == accelerator.TaintKey })
}

// AddedTo are those tolerations of a live flavor that follow from what it is.
func AddedTo(live *kueue.ResourceFlavor) []corev1.Toleration {
	p := provisioningOf(live.Spec.NodeLabels)
	all := p.tolerations()
	if !OfSlices(live) {
		all = p.hostTolerations()
	}
	return slices.DeleteFunc(all, func(t corev1.Toleration) bool { return !slices.Contains(live.Spec.Tolerations, t) })
}

// FlavorOf reads a live flavor back. topology is the Topology that it names, or
// nil when it names none or there is none of that name. Without a known slice,
// Slice is the zero value and all labels are further ones.
func FlavorOf(live *kueue.ResourceFlavor, topology *kueue.Topology) Flavor {
	f := Flavor{Name: live.Name, NodeTaints: live.Spec.NodeTaints}
	labels := maps.Clone(live.Spec.NodeLabels)
	f.Provisioning = provisioningOf(labels)
	if f.Provisioning == Reserved {
		f.Reservation = labels[accelerator.LabelReservation]
	}
	maps.DeleteFunc(labels, func(k, v string) bool { return f.Provisioning.labels(f.Reservation)[k] == v })
	if s, ok := SliceOf(labels); ok {
		f.Slice = s
	}
	for _, key := range sliceLabels {
		delete(labels, key)
	}
	f.NodeLabels = labels
	added := AddedTo(live)
	for _, t := range live.Spec.Tolerations {
		if !slices.Contains(added, t) {
			f.Tolerations = append(f.Tolerations, t)
		}
	}
	f.Topology = topologyOf(live, f.Slice, topology)
	if !maps.Equal(f.Labels(), live.Spec.NodeLabels) {
		f.Slice = accelerator.Slice{} // less than its labels, such as the chips per host
	}
	return f
}
