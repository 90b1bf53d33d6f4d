package gke

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// OwnCPUPools names the CPU pools of a cluster that were made for a
// configuration with this owner, those included that a run made which did not
// live to tell.
func OwnCPUPools(c *containerpb.Cluster, owner string) []string {
	var names []string
	for _, np := range c.GetNodePools() {
		if o := OwnershipOf(np.GetConfig().GetResourceLabels()); o.Kind == KindCPUPool && o.Owner == owner {
			names = append(names, np.GetName())
		}
	}
	return names
}

// ForeignPools names the node pools of a cluster that nothing of ours made: no
// CPU pool can be made under their names, and none of them is deleted when
// cpu_pools names it no more. Pools that GKE makes and removes by itself are
// left out.
func ForeignPools(c *containerpb.Cluster) []string {
	names := []string{}
	for _, np := range c.GetNodePools() {
		if OwnershipOf(np.GetConfig().GetResourceLabels()).Kind == "" && !np.GetAutoscaling().GetAutoprovisioned() {
			names = append(names, np.GetName())
		}
	}
	return names
}

func madeAsCPUPool(np *containerpb.NodePool) bool {
	return OwnershipOf(np.GetConfig().GetResourceLabels()).Kind == KindCPUPool
}

// UnfinishedPools names the node pools of a cluster that are being made or
// removed, or did not come up.
func UnfinishedPools(c *containerpb.Cluster) []string {
	var names []string
	for _, np := range c.GetNodePools() {
		if changing(np) || np.GetStatus() == containerpb.NodePool_ERROR {
			names = append(names, np.GetName())
		}
	}
	return names
}

// cpuUpdate is one run that makes the CPU pools of a cluster what t wants.
type cpuUpdate struct {
	c *Client
	t TrainingCluster
	// Every node pool of the cluster as it was last seen; nil is as it was asked for.
	have map[string]*containerpb.NodePool
}

// updateCPUPools makes the CPU pools what t wants: first those that are new,
// then changes, and last those that go, so that the system's pods always have
// somewhere to be.
func (c *Client) updateCPUPools(ctx context.Context, t TrainingCluster, owned []string) error {
	list, err := c.ListNodePools(ctx, t.Name)
	if err != nil {
		return err
	}
	u := &cpuUpdate{c: c, t: t, have: map[string]*containerpb.NodePool{}}
	for _, np := range list {
		u.have[np.GetName()] = np
	}
	wanted := slices.Sorted(maps.Keys(t.CPUPools))
	for _, name := range wanted {
		if np := u.have[name]; np != nil && !slices.Contains(owned, name) && !madeAsCPUPool(np) {
			return &Error{Verb: "creating node pool", Object: t.Name.NodePool(name), Zone: t.Name.Location, Cause: AlreadyExists, Message: t.Name.TakenPool(name)}
		}
	}
	for _, name := range wanted {
		if err := u.present(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range wanted {
		if err := u.change(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.have)) {
		np := u.have[name]
		o := OwnershipOf(np.GetConfig().GetResourceLabels())
		leftover := o.Pool != "" && o.Owner == t.Owner // a stand-in, which nobody asked for
		if _, keep := t.CPUPools[name]; keep || !madeAsCPUPool(np) || !slices.Contains(owned, name) && !leftover {
			continue
		}
		if err := c.DeleteNodePool(ctx, t.Name, name); err != nil {
			return err
		}
	}
	return nil
}

// TakenPool says why no CPU pool of this name can be made.
func (n ClusterName) TakenPool(pool string) string {
	return fmt.Sprintf("a node pool of this name exists, and nothing says that it was made as a CPU pool of this cluster. Choose another name in cpu_pools, or hand the node pool over: "+
		"gcloud container node-pools update %s --cluster %s --location %s --project %s --labels %s=%s", pool, n.Cluster, n.Location, n.Project, LabelKind, KindCPUPool)
}

// present makes a wanted pool that is not there. One that an earlier run began
// to make, or to remove, is waited for.
func (u *cpuUpdate) present(ctx context.Context, name string) error {
	if np := u.have[name]; changing(np) {
		np, err := u.c.settledPool(ctx, u.t.Name, name, np.GetLocations())
		if err != nil {
			return err
		}
		u.have[name] = np
	}
	if u.have[name] != nil {
		return nil
	}
	spec := u.t.CPUPools[name]
	if stand := u.standIn(name); stand != nil { // what the pool was like that it stands in for
		spec = spec.or(CPUPoolOf(stand))
	}
	return u.create(ctx, name, spec, "")
}

// create makes a pool. What an earlier run made under the name, and no list
// showed yet, is the pool that there is.
func (u *cpuUpdate) create(ctx context.Context, name string, spec CPUPool, standsFor string) (err error) {
	defer func() { err = amend(err, func(e *Error) { e.Facts.CPU = true }) }()
	own := u.t.ownershipOfPool(standsFor, time.Now())
	np := u.t.cpuPool(name, spec, own)
	found, _, err := u.c.createPool(ctx, u.t.Name, np, own, nil)
	if err != nil {
		return err
	}
	if found.GetStatus() == containerpb.NodePool_ERROR {
		return troubleOf("creating node pool", u.t.Name.NodePool(name), found)
	}
	u.have[name] = found
	return nil
}

// change changes one pool, one operation per facet. What GKE cannot change, and
// a pool that an earlier run did not bring up, is made anew under its name.
func (u *cpuUpdate) change(ctx context.Context, name string) error {
	np := u.have[name]
	if np == nil { // made just now
		return nil
	}
	want, have := u.t.CPUPools[name], CPUPoolOf(np)
	if np.GetStatus() == containerpb.NodePool_ERROR { // nothing runs there
		if err := u.c.DeleteNodePool(ctx, u.t.Name, name); err != nil {
			return err
		}
		return u.create(ctx, name, want.or(have), "")
	}
	if fixed := want.Fixed(have); len(fixed) > 0 {
		return u.remake(ctx, np, want.or(have), fixed)
	}
	for _, f := range cpuFacets {
		if f.apply == nil || f.same(want, have) {
			continue
		}
		if err := f.apply(ctx, u.c, u.t.Name, name, want, have); err != nil {
			return amend(err, func(e *Error) { e.Verb = "updating " + f.name + " of node pool" })
		}
	}
	return nil
}
