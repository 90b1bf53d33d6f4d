package gke

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// CPUPool is one node pool without TPUs. What is zero or nil is GKE's to choose
// when the pool is made, and is left as it is afterwards.
type CPUPool struct {
	MachineType    string
	NodeCount      *int // per zone; nil with Autoscaling
	Autoscaling    *CPUAutoscaling
	DiskType       string
	DiskSizeGB     int
	Labels         map[string]string // of the Kubernetes nodes
	Taints         []Taint
	Zones          []string
	Spot           *bool
	ServiceAccount string
	Scopes         []string // nil is cloud-platform
	MaxPods        int
	Version        string // the lowest; "" is the control plane's
}

// CPUAutoscaling bounds a CPU pool, either in each zone or over all of them.
type CPUAutoscaling struct {
	Min, Max           int // per zone
	TotalMin, TotalMax int
	LocationPolicy     string // "" is GKE's default
}

func (a *CPUAutoscaling) settings() *containerpb.NodePoolAutoscaling {
	if a == nil {
		return &containerpb.NodePoolAutoscaling{}
	}
	return &containerpb.NodePoolAutoscaling{Enabled: true, MinNodeCount: int32(a.Min), MaxNodeCount: int32(a.Max),
		TotalMinNodeCount: int32(a.TotalMin), TotalMaxNodeCount: int32(a.TotalMax),
		LocationPolicy: enum[containerpb.NodePoolAutoscaling_LocationPolicy](containerpb.NodePoolAutoscaling_LocationPolicy_value, a.LocationPolicy)}
}

func cpuAutoscalingOf(np *containerpb.NodePool) *CPUAutoscaling {
	a := np.GetAutoscaling()
	if !a.GetEnabled() {
		return nil
	}
	return &CPUAutoscaling{Min: int(a.GetMinNodeCount()), Max: int(a.GetMaxNodeCount()),
		TotalMin: int(a.GetTotalMinNodeCount()), TotalMax: int(a.GetTotalMaxNodeCount()), LocationPolicy: named(a.GetLocationPolicy())}
}

// CPUPoolOf reads a node pool: every field as GKE has it.
func CPUPoolOf(np *containerpb.NodePool) CPUPool {
	cfg, count, spot := np.GetConfig(), int(np.GetInitialNodeCount()), np.GetConfig().GetSpot()
	p := CPUPool{
		MachineType: cfg.GetMachineType(), DiskType: cfg.GetDiskType(), DiskSizeGB: int(cfg.GetDiskSizeGb()),
		Labels: UserNodeLabels(cfg.GetLabels()), Taints: userTaints(cfg.GetTaints()), Spot: &spot,
		Zones: slices.Sorted(slices.Values(np.GetLocations())), ServiceAccount: cfg.GetServiceAccount(),
		Scopes:  slices.Sorted(slices.Values(cfg.GetOauthScopes())),
		MaxPods: int(np.GetMaxPodsConstraint().GetMaxPodsPerNode()), Version: np.GetVersion(),
		Autoscaling: cpuAutoscalingOf(np),
	}
	if p.Autoscaling == nil {
		p.NodeCount = &count
	}
	return p
}

// ownershipOfPool is what the labels of a CPU pool say. standsFor is the pool
// that it stands in for, or "".
func (t TrainingCluster) ownershipOfPool(standsFor string, now time.Time) Ownership {
	return Ownership{Kind: KindCPUPool, Owner: t.Owner, Spec: t.Hash(), Pool: standsFor, Created: now}
}

// cpuPool is the request for a CPU pool.
func (t TrainingCluster) cpuPool(name string, p CPUPool, own Ownership) *containerpb.NodePool {
	np := &containerpb.NodePool{
		Name:      name,
		Locations: p.Zones,
		Version:   p.Version,
		Config: &containerpb.NodeConfig{
			MachineType:            p.MachineType,
			DiskType:               p.DiskType,
			DiskSizeGb:             int32(p.DiskSizeGB),
			Labels:                 p.Labels,
			Taints:                 taintsOf(p.Taints),
			Spot:                   p.Spot != nil && *p.Spot,
			ServiceAccount:         p.ServiceAccount,
			OauthScopes:            p.Scopes,
			ResourceLabels:         own.Labels(t.ResourceLabels),
			WorkloadMetadataConfig: &containerpb.WorkloadMetadataConfig{Mode: containerpb.WorkloadMetadataConfig_GKE_METADATA},
		},
		Management: &containerpb.NodeManagement{AutoRepair: true, AutoUpgrade: true},
	}
	if p.Scopes == nil {
		np.Config.OauthScopes = []string{scope}
	}
	if v, ok := t.Settings["workload_identity"].(bool); ok && !v { // GKE refuses its metadata server without
		np.Config.WorkloadMetadataConfig = nil
	}
	if p.MaxPods > 0 {
		np.MaxPodsConstraint = &containerpb.MaxPodsConstraint{MaxPodsPerNode: int64(p.MaxPods)}
	}
	switch {
	case p.Autoscaling != nil:
		np.Autoscaling = p.Autoscaling.settings()
		np.InitialNodeCount = int32(p.Autoscaling.first(len(p.Zones)))
	case p.NodeCount != nil:
		np.InitialNodeCount = int32(*p.NodeCount)
	default:
		np.InitialNodeCount = 1
	}
	return np
}

// first is how many nodes per zone a new pool begins with: the least that it
// may have, and one where it may have any, so that the system's pods start.
func (a *CPUAutoscaling) first(zones int) int {
	if a.TotalMax > 0 {
		zones = max(1, zones)
		return min(max(1, (a.TotalMin+zones-1)/zones), max(1, a.TotalMax/zones))
	}
	return min(max(1, a.Min), a.Max)
}

// OtherPools describes the node pools of a cluster that are not among its CPU
// pools, those left out that GKE's node auto-provisioning made and removes by
// itself.
func (c *Client) OtherPools(ctx context.Context, n ClusterName, own []string) ([]string, error) {
	list, err := c.ListNodePools(ctx, n)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, np := range list {
		o := OwnershipOf(np.GetConfig().GetResourceLabels())
		switch {
		case slices.Contains(own, np.GetName()) || np.GetAutoscaling().GetAutoprovisioned() || o.Kind == KindCPUPool:
		case o.Kind == KindSlice:
			out = append(out, fmt.Sprintf("%s: a slice of slice pool %s (%s)", np.GetName(), o.Pool, np.GetConfig().GetMachineType()))
		default:
			out = append(out, fmt.Sprintf("%s (%s)", np.GetName(), np.GetConfig().GetMachineType()))
		}
	}
	return out, nil
}
