// Package queue turns slices, quotas and namespaces into Kueue objects: the
// flavors that name a kind of slice, the queues that share it out, and the
// namespaces that jobs are submitted in. It knows Kueue's rules (v1beta2) and
// TPU shapes; it knows nothing of GKE, Terraform or the command line.
package queue

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Provisioning is the capacity model that a flavor is restricted to.
type Provisioning string

// AnyProvisioning leaves the model open: a flavor of a cluster that has only
// one model. Flavors of one topology on a cluster with both spot and on-demand
// slices overlap, and over-admit, unless each names its own.
const (
	AnyProvisioning Provisioning = ""
	OnDemand        Provisioning = "on_demand"
	Spot            Provisioning = "spot"
)

// Provisionings are the models a flavor can name.
var Provisionings = []string{string(OnDemand), string(Spot)}

// Flavor is one kind of slice: a generation and topology, and optionally a
// capacity model. Its name does not depend on how many slices there are.
type Flavor struct {
	Name         string
	Slice        accelerator.Slice
	Provisioning Provisioning
	NodeLabels   map[string]string // further labels of the nodes it stands for
}

// Labels are the node labels that the flavor selects. Kueue allows 8.
func (f Flavor) Labels() map[string]string {
	// The chips per host tell the two machines apart that 2x4 is made of.
	labels := f.Slice.NodeLabels()
	switch f.Provisioning {
	case Spot:
		labels[accelerator.LabelSpot] = "true"
	case OnDemand:
		labels[accelerator.LabelProvisioning] = "standard"
	}
	maps.Copy(labels, f.NodeLabels)
	return labels
}

// Object renders the ResourceFlavor.
func (f Flavor) Object() *kueue.ResourceFlavor {
	// Kueue adds these to the pods it admits, so a job needs to know neither.
	tolerations := []corev1.Toleration{{
		Key: accelerator.TaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
	}}
	if f.Provisioning != OnDemand {
		tolerations = append(tolerations, corev1.Toleration{
			Key: accelerator.LabelSpot, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		})
	}
	return &kueue.ResourceFlavor{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "ResourceFlavor"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Labels: managed()},
		Spec:       kueue.ResourceFlavorSpec{NodeLabels: f.Labels(), Tolerations: tolerations},
	}
}

// maxFlavorLabels is Kueue's limit (ResourceFlavorSpec.nodeLabels).
const maxFlavorLabels = 8

// Validate checks what the CRD and Kueue's webhook would refuse.
func (f Flavor) Validate() error {
	if err := checkName("flavor", f.Name); err != nil {
		return err
	}
	own := Flavor{Slice: f.Slice, Provisioning: f.Provisioning}.Labels()
	for key, value := range f.NodeLabels {
		if had, ok := own[key]; ok && had != value {
			return fmt.Errorf("flavor %s: node label %s follows from the accelerator (%s); leave it out of node_labels", f.Name, key, had)
		}
		if err := checkLabel(key, value); err != nil {
			return fmt.Errorf("flavor %s: %w", f.Name, err)
		}
	}
	if n := len(f.Labels()); n > maxFlavorLabels {
		return fmt.Errorf("flavor %s: %d node labels, of which the accelerator takes %d; Kueue allows %d", f.Name, n, len(own), maxFlavorLabels)
	}
	return nil
}
