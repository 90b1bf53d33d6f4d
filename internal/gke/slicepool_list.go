package gke

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// ListedPool is a slice pool as found on a cluster, whoever manages it.
type ListedPool struct {
	Name  string
	Owner string // name of the configuration that made it, or ""
	// Managed: this provider made it. A TPU node pool made by anything else is
	// a pool of its own name with one slice, index 0.
	Managed bool
	// Shape is the zero value when the catalogue does not know it, or when the
	// workload policy that says it cannot be read.
	Shape  accelerator.Slice
	Zone   string
	Spot   bool
	Slices Slices
}

// ListSlicePools reads every TPU slice of a cluster with one call, grouped by
// the pool it belongs to, in order of name and owner. Slices that only their
// workload policy describes are looked up by topology, each policy once. A
// cluster that is gone is an error that is NotFound.
func (c *Client) ListSlicePools(ctx context.Context, cluster ClusterName, topology PolicyTopology) ([]ListedPool, error) {
	all, err := c.ListNodePools(ctx, cluster)
	if err != nil {
		return nil, err
	}
	placed := make([]*containerpb.NodePool, 0, len(all))
	policies := newPolicies(topology)
	for _, np := range all {
		if tpuMachine(np) {
			if np, err = policies.complete(ctx, np); err != nil && !unreadable(err) {
				return nil, err
			}
		}
		placed = append(placed, np)
	}
	return groupSlicePools(placed), nil
}

// unreadable tells whether a policy stays unknown however often it is asked
// for. What else is on the cluster is no less worth knowing.
func unreadable(err error) bool {
	return errors.Is(err, NotFound) || errors.Is(err, Permission) || errors.Is(err, APINotEnabled) || errors.Is(err, Invalid)
}

// tpuMachine tells whether a node pool is of TPU hosts. Others may have
// placement policies too, which say nothing of slices.
func tpuMachine(np *containerpb.NodePool) bool {
	_, err := accelerator.ParseMachineType(np.GetConfig().GetMachineType())
	return err == nil
}

func groupSlicePools(all []*containerpb.NodePool) []ListedPool {
	type key struct{ owner, name string }
	pools := map[key]*ListedPool{}
	for _, np := range all {
		o := OwnershipOf(np.GetConfig().GetResourceLabels())
		index, managed := SliceIndex(o.Pool, np.GetName())
		managed = managed && o.Kind == KindSlice
		shape, err := shapeOf(np)
		if err != nil && !managed && !tpuMachine(np) {
			continue
		}
		k := key{o.Owner, o.Pool}
		if !managed {
			k, index = key{"", np.GetName()}, 0
		}
		p := pools[k]
		if p == nil {
			p = &ListedPool{Name: k.name, Owner: k.owner, Managed: managed, Slices: Slices{}}
			pools[k] = p
		}
		if p.Shape.Name == "" {
			p.Shape, p.Spot = shape, np.GetConfig().GetSpot()
			if zones := np.GetLocations(); len(zones) > 0 {
				p.Zone = zones[0]
			}
		}
		p.Slices[index] = sliceOf(np)
	}
	found := make([]ListedPool, 0, len(pools))
	for _, p := range pools {
		found = append(found, *p)
	}
	slices.SortFunc(found, func(a, b ListedPool) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
	return found
}
