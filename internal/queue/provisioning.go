package queue

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/naming"
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
	FlexStart       Provisioning = "flex_start"
	Queued          Provisioning = "queued"
	Reserved        Provisioning = "reservation"
)

// Provisionings are the models a flavor can name.
var Provisionings = []string{string(OnDemand), string(Spot), string(FlexStart), string(Queued), string(Reserved)}

// labels are those that GKE puts on nodes of the model and on no others, as far
// as there are such: nodes of a reservation carry "standard" as well, and so do
// queued ones.
func (p Provisioning) labels(reservation string) map[string]string {
	switch p {
	case OnDemand:
		return map[string]string{accelerator.LabelProvisioning: "standard"}
	case Spot:
		return map[string]string{accelerator.LabelSpot: "true"}
	case FlexStart:
		return map[string]string{accelerator.LabelFlexStart: "true"}
	case Queued:
		return map[string]string{accelerator.LabelQueued: "true"}
	case Reserved:
		return map[string]string{accelerator.LabelReservation: reservation}
	}
	return nil
}

// provisioningOf is the model that node labels stand for. The more particular
// label decides.
func provisioningOf(labels map[string]string) Provisioning {
	switch {
	case labels[accelerator.LabelReservation] != "":
		return Reserved
	case labels[accelerator.LabelSpot] == "true":
		return Spot
	case labels[accelerator.LabelFlexStart] == "true":
		return FlexStart
	case labels[accelerator.LabelQueued] == "true":
		return Queued
	case labels[accelerator.LabelProvisioning] == "standard":
		return OnDemand
	}
	return AnyProvisioning
}

// tolerations of the taints that TPU nodes of the model may have.
func (p Provisioning) tolerations() []corev1.Toleration {
	all := []corev1.Toleration{{Key: accelerator.TaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	if p == AnyProvisioning {
		p = Spot
	}
	return append(all, p.hostTolerations()...)
}

// hostTolerations are those of the taints that the model itself brings.
func (p Provisioning) hostTolerations() []corev1.Toleration {
	yes := func(key string) []corev1.Toleration {
		return []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	switch p {
	case Spot:
		return yes(accelerator.LabelSpot)
	case Queued:
		return yes(accelerator.LabelQueued)
	}
	return nil
}

// Check says what is wrong with a capacity model and the name of a reservation.
func (p Provisioning) Check(reservation string) error {
	switch {
	case p == Reserved && reservation == "":
		return errors.New("provisioning \"reservation\" needs the name of the reservation: only by it do nodes of a reservation differ from others")
	case p != Reserved && reservation != "":
		return fmt.Errorf("reservation %q goes with provisioning = \"reservation\" only", reservation)
	case strings.Contains(reservation, "/"):
		return fmt.Errorf("reservation %q is a path: nodes carry the last part of it, %q", reservation, reservation[strings.LastIndexByte(reservation, '/')+1:])
	}
	if problems := naming.LabelValue(reservation); len(problems) > 0 {
		return fmt.Errorf("reservation %q: nodes carry the name as a label: %s", reservation, strings.Join(problems, "; "))
	}
	return nil
}
