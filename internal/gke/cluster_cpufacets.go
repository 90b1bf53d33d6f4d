package gke

import (
	"context"
	"maps"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// cpuFacet is what of a CPU pool one operation changes. What want leaves out is
// the same whatever it is.
type cpuFacet struct {
	name      string // as the user writes it
	operation string
	nodes     string // what happens to the nodes; "" nothing
	same      func(want, have CPUPool) bool
	apply     func(ctx context.Context, c *Client, n ClusterName, pool string, want, have CPUPool) error // nil: only another pool can have it
}

func (f cpuFacet) how() string {
	switch {
	case f.apply == nil:
		return "the pool is made anew, while another one stands in for it: GKE cannot change it"
	case f.nodes != "":
		return "in place; " + f.nodes
	}
	return "in place"
}

const newNodes = "its nodes are replaced one after the other"

// either is the first value unless it is zero: GKE changes machine and disk
// together.
func either[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}

func changesPool(request func(want, have CPUPool) *containerpb.UpdateNodePoolRequest) func(context.Context, *Client, ClusterName, string, CPUPool, CPUPool) error {
	return func(ctx context.Context, c *Client, n ClusterName, pool string, want, have CPUPool) error {
		return c.UpdateNodePool(ctx, n, pool, request(want, have))
	}
}

// cpuFacets in the order in which they are changed: what touches no node comes
// first, and the number of nodes last, when they are as they should be.
var cpuFacets = []cpuFacet{
	{name: "labels", operation: "UpdateNodePool: labels",
		same: func(want, have CPUPool) bool { return want.Labels == nil || maps.Equal(want.Labels, have.Labels) },
		apply: changesPool(func(want, _ CPUPool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{Labels: &containerpb.NodeLabels{Labels: want.Labels}}
		})},
	{name: "taints", operation: "UpdateNodePool: taints",
		same: func(want, have CPUPool) bool { return want.Taints == nil || slices.Equal(want.Taints, have.Taints) },
		apply: changesPool(func(want, _ CPUPool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{Taints: &containerpb.NodeTaints{Taints: taintsOf(want.Taints)}}
		})},
	{name: "version", operation: "UpdateNodePool: node_version", nodes: newNodes,
		same: func(want, have CPUPool) bool {
			return want.Version == "" || !OlderVersion(have.Version, want.Version)
		},
		apply: changesPool(func(want, _ CPUPool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{NodeVersion: want.Version}
		})},
	{name: "machine_type, disk_type, disk_size_gb", operation: "UpdateNodePool: machine_type, disk_type, disk_size_gb", nodes: newNodes,
		same: func(want, have CPUPool) bool {
			return either(want.MachineType, have.MachineType) == have.MachineType &&
				either(want.DiskType, have.DiskType) == have.DiskType && either(want.DiskSizeGB, have.DiskSizeGB) == have.DiskSizeGB
		},
		apply: changesPool(func(want, have CPUPool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{MachineType: either(want.MachineType, have.MachineType),
				DiskType: either(want.DiskType, have.DiskType), DiskSizeGb: int64(either(want.DiskSizeGB, have.DiskSizeGB))}
		})},
	{name: "zones", operation: "UpdateNodePool: locations", nodes: "nodes are added and removed",
		same: func(want, have CPUPool) bool { return want.Zones == nil || slices.Equal(want.Zones, have.Zones) },
		apply: changesPool(func(want, _ CPUPool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{Locations: want.Zones}
		})},
	{name: "autoscaling", operation: "SetNodePoolAutoscaling",
		same: func(want, have CPUPool) bool {
			a, b := want.Autoscaling, have.Autoscaling
			if a == nil || b == nil {
				return a == b || a == nil && want.NodeCount == nil
			}
			w := *a
			w.LocationPolicy = either(w.LocationPolicy, b.LocationPolicy)
			return w == *b
		},
		apply: func(ctx context.Context, c *Client, n ClusterName, pool string, want, have CPUPool) error {
			s := want.Autoscaling.settings()
			if have.Autoscaling != nil && want.Autoscaling != nil && want.Autoscaling.LocationPolicy == "" {
				s.LocationPolicy = have.Autoscaling.settings().LocationPolicy
			}
			return c.operate(ctx, n, poolTarget("updating", n, pool, nil), nil, func(ctx context.Context) (*containerpb.Operation, error) {
				return c.api.SetNodePoolAutoscaling(ctx, &containerpb.SetNodePoolAutoscalingRequest{Name: n.NodePool(pool), Autoscaling: s})
			})
		}},
	{name: "node_count", operation: "SetNodePoolSize", nodes: "nodes are added and removed",
		same: func(want, have CPUPool) bool {
			return want.NodeCount == nil || have.NodeCount != nil && *want.NodeCount == *have.NodeCount
		},
		apply: func(ctx context.Context, c *Client, n ClusterName, pool string, want, _ CPUPool) error {
			return c.ResizeNodePool(ctx, n, pool, int32(*want.NodeCount))
		}},
	{name: "spot", operation: remade,
		same: func(want, have CPUPool) bool { return is(want.Spot, have.Spot != nil && *have.Spot) }},
	{name: "service_account", operation: remade,
		same: func(want, have CPUPool) bool {
			return either(want.ServiceAccount, have.ServiceAccount) == have.ServiceAccount
		}},
	{name: "oauth_scopes", operation: remade,
		same: func(want, have CPUPool) bool { return want.Scopes == nil || slices.Equal(want.Scopes, have.Scopes) }},
	{name: "max_pods_per_node", operation: remade,
		same: func(want, have CPUPool) bool { return either(want.MaxPods, have.MaxPods) == have.MaxPods }},
}

// or is p with what it leaves out as another pool has it. The version stays
// open: a new pool begins with the control plane's, which is never too old.
func (p CPUPool) or(have CPUPool) CPUPool {
	p.MachineType, p.ServiceAccount = either(p.MachineType, have.MachineType), either(p.ServiceAccount, have.ServiceAccount)
	p.DiskType, p.DiskSizeGB = either(p.DiskType, have.DiskType), either(p.DiskSizeGB, have.DiskSizeGB)
	p.MaxPods, p.Spot = either(p.MaxPods, have.MaxPods), either(p.Spot, have.Spot)
	if p.Labels == nil {
		p.Labels = have.Labels
	}
	if p.Taints == nil {
		p.Taints = have.Taints
	}
	if p.Zones == nil {
		p.Zones = have.Zones
	}
	if p.Scopes == nil {
		p.Scopes = have.Scopes
	}
	switch {
	case p.Autoscaling != nil && have.Autoscaling != nil:
		a := *p.Autoscaling
		a.LocationPolicy = either(a.LocationPolicy, have.Autoscaling.LocationPolicy)
		p.Autoscaling = &a
	case p.Autoscaling == nil && p.NodeCount == nil:
		p.Autoscaling, p.NodeCount = have.Autoscaling, have.NodeCount
	}
	return p
}

const remade = "CreateNodePool of a stand-in, DeleteNodePool, CreateNodePool, DeleteNodePool of the stand-in"

// Fixed names what of p only another node pool can have.
func (p CPUPool) Fixed(have CPUPool) []string {
	var out []string
	for _, f := range cpuFacets {
		if f.apply == nil && !f.same(p, have) {
			out = append(out, f.name)
		}
	}
	return out
}
