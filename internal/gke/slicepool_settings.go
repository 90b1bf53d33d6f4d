package gke

import (
	"cmp"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// ProvisioningModel is how the machines of a slice are got.
type ProvisioningModel string

// The models. A pool without one is on demand.
const (
	OnDemand        ProvisioningModel = "on_demand"
	Spot            ProvisioningModel = "spot"
	FlexStart       ProvisioningModel = "flex_start"
	Queued          ProvisioningModel = "queued"
	FromReservation ProvisioningModel = "reservation"
	reservationKey                    = "compute.googleapis.com/reservation-name"
	maxFlexStartRun                   = 7 * 24 * time.Hour

	// DefaultLocationPolicy of autoscaled slices: wherever there is capacity.
	DefaultLocationPolicy = "ANY"

	// DefaultServiceAccount is what GKE calls the project's Compute Engine
	// default account.
	DefaultServiceAccount = "default"
)

// Provisioning is a model with what belongs to it.
type Provisioning struct {
	Model ProvisioningModel
	// Reservation is NAME, projects/P/reservations/NAME (shared), and either
	// with /reservationBlocks/B and /reservationSubBlocks/S; "" with the model
	// FromReservation takes any reservation that fits.
	Reservation    string
	MaxRunDuration time.Duration // 0 is without limit
}

// Autoscaling of each slice between none and all of its hosts.
type Autoscaling struct {
	Min, Max       int    // hosts; Max 0 is the slice's
	LocationPolicy string // "" is GKE's default
}

// Taint of nodes. Effect is as in Kubernetes: NoSchedule and so on.
type Taint struct{ Key, Value, Effect string }

// Upgrade is how GKE brings nodes to a new version.
type Upgrade struct {
	Strategy                 string // "surge" or "blue_green"
	MaxSurge, MaxUnavailable int
}

// DefaultUpgrade is GKE's where nothing is said.
var DefaultUpgrade = Upgrade{Strategy: "surge", MaxSurge: 1}

var (
	taintEffects = map[string]containerpb.NodeTaint_Effect{
		"NoSchedule": containerpb.NodeTaint_NO_SCHEDULE, "PreferNoSchedule": containerpb.NodeTaint_PREFER_NO_SCHEDULE, "NoExecute": containerpb.NodeTaint_NO_EXECUTE,
	}
	strategies = map[string]containerpb.NodePoolUpdateStrategy{
		"surge": containerpb.NodePoolUpdateStrategy_SURGE, "blue_green": containerpb.NodePoolUpdateStrategy_BLUE_GREEN,
	}
)

func (u *Upgrade) settings() *containerpb.NodePool_UpgradeSettings {
	if u == nil {
		return nil
	}
	return &containerpb.NodePool_UpgradeSettings{Strategy: strategies[u.Strategy].Enum(), MaxSurge: int32(u.MaxSurge), MaxUnavailable: int32(u.MaxUnavailable)}
}

func upgradeOf(s *containerpb.NodePool_UpgradeSettings) Upgrade {
	return Upgrade{Strategy: nameOf(strategies, s.GetStrategy()), MaxSurge: int(s.GetMaxSurge()), MaxUnavailable: int(s.GetMaxUnavailable())}
}

func nameOf[V comparable](names map[string]V, v V) string {
	for name, other := range names {
		if v == other {
			return name
		}
	}
	return ""
}

func taintsOf(taints []Taint) []*containerpb.NodeTaint {
	var out []*containerpb.NodeTaint
	for _, t := range taints {
		out = append(out, &containerpb.NodeTaint{Key: t.Key, Value: t.Value, Effect: taintEffects[t.Effect]})
	}
	return out
}

// userTaints are those that GKE did not add by itself.
func userTaints(taints []*containerpb.NodeTaint) []Taint {
	out := []Taint{}
	for _, t := range taints {
		if t.GetKey() != accelerator.TaintKey {
			out = append(out, Taint{t.GetKey(), t.GetValue(), nameOf(taintEffects, t.GetEffect())})
		}
	}
	return out
}

func secondaryDisksOf(np *containerpb.NodePool) []string {
	images := []string{}
	for _, d := range np.GetConfig().GetSecondaryBootDisks() {
		images = append(images, d.GetDiskImage())
	}
	return images
}

// Scaling is the autoscaling that the pool has: flex-start and queued
// machines come only when a job asks for them.
func (p SlicePool) Scaling() *Autoscaling {
	s := p.Autoscaling
	if s == nil {
		if p.Provisioning.Model != FlexStart && p.Provisioning.Model != Queued {
			return nil
		}
		s = &Autoscaling{}
	}
	c := *s
	c.Max = cmp.Or(c.Max, p.Shape.Hosts)
	c.LocationPolicy = cmp.Or(c.LocationPolicy, DefaultLocationPolicy)
	return &c
}

func (s *Autoscaling) settings() *containerpb.NodePoolAutoscaling {
	return &containerpb.NodePoolAutoscaling{Enabled: true, TotalMinNodeCount: int32(s.Min), TotalMaxNodeCount: int32(s.Max),
		LocationPolicy: containerpb.NodePoolAutoscaling_LocationPolicy(containerpb.NodePoolAutoscaling_LocationPolicy_value[s.LocationPolicy])}
}

// autoscalingOf reads either form of the limits: a slice is in one zone.
func autoscalingOf(np *containerpb.NodePool) *Autoscaling {
	a := np.GetAutoscaling()
	if !a.GetEnabled() {
		return nil
	}
	return &Autoscaling{Min: int(max(a.GetMinNodeCount(), a.GetTotalMinNodeCount())), Max: int(max(a.GetMaxNodeCount(), a.GetTotalMaxNodeCount())),
		LocationPolicy: a.GetLocationPolicy().String()}
}

// management is GKE's default unless set; flex-start nodes are not repaired.
func (p SlicePool) management() *containerpb.NodeManagement {
	m := &containerpb.NodeManagement{AutoRepair: p.Provisioning.Model != FlexStart, AutoUpgrade: true}
	if p.AutoRepair != nil {
		m.AutoRepair = *p.AutoRepair
	}
	if p.AutoUpgrade != nil {
		m.AutoUpgrade = *p.AutoUpgrade
	}
	return m
}

// affinity is nil for on-demand and spot: GKE's default.
func (pr Provisioning) affinity() *containerpb.ReservationAffinity {
	switch {
	case pr.Model == FlexStart || pr.Model == Queued:
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_NO_RESERVATION}
	case pr.Reservation != "":
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_SPECIFIC_RESERVATION,
			Key: reservationKey, Values: []string{pr.Reservation}}
	case pr.Model == FromReservation:
		return &containerpb.ReservationAffinity{ConsumeReservationType: containerpb.ReservationAffinity_ANY_RESERVATION}
	}
	return nil
}

// provisioningOf reads a node pool.
func provisioningOf(np *containerpb.NodePool) Provisioning {
	cfg := np.GetConfig()
	pr := Provisioning{Model: OnDemand, MaxRunDuration: cfg.GetMaxRunDuration().AsDuration()}
	switch affinity := cfg.GetReservationAffinity(); {
	case cfg.GetSpot():
		pr.Model = Spot
	case cfg.GetFlexStart():
		pr.Model = FlexStart
	case np.GetQueuedProvisioning().GetEnabled():
		pr.Model = Queued
	case affinity.GetConsumeReservationType() == containerpb.ReservationAffinity_SPECIFIC_RESERVATION && len(affinity.GetValues()) > 0:
		pr.Model, pr.Reservation = FromReservation, affinity.GetValues()[0]
	case affinity.GetConsumeReservationType() == containerpb.ReservationAffinity_ANY_RESERVATION:
		pr.Model = FromReservation
	}
	return pr
}
