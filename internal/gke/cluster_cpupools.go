package gke

import (
	"context"
	"fmt"
	"maps"
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

func (t TrainingCluster) cpuPool(name string, now time.Time) *containerpb.NodePool {
	p := t.CPUPools[name]
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
			ResourceLabels:         Ownership{Kind: KindCPUPool, Owner: t.Owner, Spec: t.Hash(), Created: now}.Labels(t.ResourceLabels),
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

// updateCPUPools makes the CPU pools what t wants: first those that are new,
// then changes, and last those that go, so that the system's pods always have
// somewhere to be.
func (c *Client) updateCPUPools(ctx context.Context, t TrainingCluster, owned []string) error {
	list, err := c.ListNodePools(ctx, t.Name)
	if err != nil {
		return err
	}
	have := map[string]*containerpb.NodePool{}
	for _, np := range list {
		have[np.GetName()] = np
	}
	now := time.Now()
	wanted := slices.Sorted(maps.Keys(t.CPUPools))
	for _, name := range wanted {
		np, ok := have[name]
		mine := slices.Contains(owned, name) || OwnershipOf(np.GetConfig().GetResourceLabels()).Kind == KindCPUPool
		switch {
		case ok && !mine:
			return &Error{Verb: "creating node pool", Object: t.Name.NodePool(name), Zone: t.Name.Location, Cause: AlreadyExists,
				Message: "a node pool of this name exists and was not made as a CPU pool of this cluster; choose another name in cpu_pools"}
		case !ok:
			if err := c.CreateNodePool(ctx, t.Name, t.cpuPool(name, now), nil); err != nil {
				return err
			}
		}
	}
	for _, name := range wanted {
		if have[name] == nil {
			continue
		}
		if err := c.updateCPUPool(ctx, t, have[name]); err != nil {
			return err
		}
	}
	for _, name := range owned {
		if _, keep := t.CPUPools[name]; !keep && have[name] != nil {
			if err := c.DeleteNodePool(ctx, t.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// updateCPUPool changes one pool, one operation per facet. What GKE cannot
// change makes the pool anew under its name.
func (c *Client) updateCPUPool(ctx context.Context, t TrainingCluster, np *containerpb.NodePool) error {
	name := np.GetName()
	want, have := t.CPUPools[name], CPUPoolOf(np)
	// In ERROR is what an earlier run could not finish.
	if len(want.Fixed(have)) > 0 || np.GetStatus() == containerpb.NodePool_ERROR {
		t.CPUPools = maps.Clone(t.CPUPools)
		t.CPUPools[name] = want.or(have)
		if err := c.DeleteNodePool(ctx, t.Name, name); err != nil {
			return err
		}
		return c.CreateNodePool(ctx, t.Name, t.cpuPool(name, time.Now()), nil)
	}
	for _, f := range cpuFacets {
		if f.apply == nil || f.same(want, have) {
			continue
		}
		if err := f.apply(ctx, c, t.Name, name, want, have); err != nil {
			return amend(err, func(e *Error) { e.Verb = "updating " + f.name + " of node pool" })
		}
	}
	return nil
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
