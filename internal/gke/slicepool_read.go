package gke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// SlicePoolRef says which node pools belong to a slice pool: those that carry
// its labels and owner, and those that are known by name to be its own and do
// not say that another owner has made them since.
type SlicePoolRef struct {
	Cluster ClusterName
	Name    string
	Owner   string
	Object  string   // for a deletion, see SlicePool
	Known   []string // node pool names, from an earlier answer
	// Owners that known node pools may carry besides Owner: those that the
	// configuration had before. nil is any, for who does not know.
	Owners []string
	// Any takes every TPU node pool named NAME-INDEX, for import.
	Any bool
	// Topology finds that of a workload policy. A node pool that was not made
	// here does not say which slice it is; its policy does.
	Topology PolicyTopology
}

func (r SlicePoolRef) owns(np *containerpb.NodePool) (index int, mine bool) {
	index, ok := SliceIndex(r.Name, np.GetName())
	if !ok {
		return 0, false
	}
	o := OwnershipOf(np.GetConfig().GetResourceLabels())
	if slices.Contains(r.Known, np.GetName()) {
		foreign := o.Kind != "" && o.Owner != r.Owner && r.Owners != nil && !slices.Contains(r.Owners, o.Owner)
		return index, !foreign
	}
	if r.Any {
		_, err := shapeOf(np)
		return index, err == nil && (o.Pool == r.Name || o.Kind == "")
	}
	return index, o.Kind == KindSlice && o.Pool == r.Name && o.Owner == r.Owner
}

// SlicePoolInfo is a slice pool as GKE has it. The specification is that of one
// slice, see Compare; all slices of a pool are alike, or on the way to be.
type SlicePoolInfo struct {
	SlicePool
	Slices Slices

	pools map[int]*containerpb.NodePool
}

// ReadSlicePool picks the pool's own out of the cluster's node pools, with one
// list for all pools that are read in the same minute, unless this client wrote
// meanwhile. There may be none. A cluster that is gone is an error that is NotFound.
func (c *Client) ReadSlicePool(ctx context.Context, r SlicePoolRef) (SlicePoolInfo, error) {
	mine, _, err := c.slicesOf(ctx, r, listForRefresh)
	if err != nil || len(mine) == 0 {
		return SlicePoolInfo{}, err
	}
	info := SlicePoolInfo{Slices: Slices{}, pools: mine}
	for i, np := range mine {
		info.Slices[i] = sliceOf(np)
	}
	first := mine[info.Slices.Indices()[0]]
	if info.SlicePool, err = observe(first); err != nil {
		return info, &Error{Verb: "reading slice pool", Object: r.Cluster.NodePool(first.GetName()), Zone: r.Cluster.Location, Message: err.Error(), Err: err}
	}
	return info, nil
}

// Owners are those that the labels of the slices name; one without labels names
// none.
func (info SlicePoolInfo) Owners() []string {
	owners := []string{}
	for _, np := range info.pools {
		if o := OwnershipOf(np.GetConfig().GetResourceLabels()); o.Kind != "" && !slices.Contains(owners, o.Owner) {
			owners = append(owners, o.Owner)
		}
	}
	return owners
}

// Compare tells what is left to do for the pool to be as p wants it: each slice
// that differs is outdated. Settings that no slice has are drift, and become
// those of info; those that only some lack are drift of those slices, or the
// rest of a change that did not finish.
func (info *SlicePoolInfo) Compare(p SlicePool) {
	for _, i := range info.Slices.Indices() {
		np := info.pools[i]
		if len(p.outdated(np)) > 0 {
			continue
		}
		if like, err := observe(np); err == nil {
			info.SlicePool = like
			break
		}
	}
	for i, np := range info.pools {
		info.Slices[i] = p.slice(np)
	}
}

// observe reads the specification of a slice out of its node pool.
func observe(np *containerpb.NodePool) (p SlicePool, err error) {
	if p.Shape, err = shapeOf(np); err != nil {
		return p, err
	}
	cfg, management := np.GetConfig(), np.GetManagement()
	p.Object = OwnershipOf(cfg.GetResourceLabels()).Object
	if len(np.GetLocations()) > 0 {
		p.Zone = np.GetLocations()[0]
	}
	p.Provisioning, p.Autoscaling = provisioningOf(np), autoscalingOf(np)
	p.PlacementPolicy = np.GetPlacementPolicy().GetPolicyName()
	p.ServiceAccount, p.ImageType, p.Version = cfg.GetServiceAccount(), cfg.GetImageType(), np.GetVersion()
	p.DiskType, p.DiskSizeGB = cfg.GetDiskType(), int(cfg.GetDiskSizeGb())
	p.NodeLabels, p.ResourceLabels = UserNodeLabels(cfg.GetLabels()), UserLabels(cfg.GetResourceLabels())
	p.Tags, p.Taints, p.SecondaryDisks = cfg.GetTags(), userTaints(cfg.GetTaints()), secondaryDisksOf(np)
	streaming, private := cfg.GetGcfsConfig().GetEnabled(), np.GetNetworkConfig().GetEnablePrivateNodes()
	p.ImageStreaming, p.Private, p.NetworkProfile = &streaming, &private, np.GetNetworkConfig().GetAcceleratorNetworkProfile()
	p.MaxPods = int(np.GetMaxPodsConstraint().GetMaxPodsPerNode())
	repair, upgrade := management.GetAutoRepair(), management.GetAutoUpgrade()
	strategy := upgradeOf(np.GetUpgradeSettings())
	p.AutoRepair, p.AutoUpgrade, p.Upgrade = &repair, &upgrade, &strategy
	return p, nil
}

// slicesOf takes one list: the pool's own node pools by index, and all others
// by name, as they were at most age ago.
func (c *Client) slicesOf(ctx context.Context, r SlicePoolRef, age time.Duration) (mine map[int]*containerpb.NodePool, others map[string]*containerpb.NodePool, err error) {
	all, err := c.listNodePools(ctx, r.Cluster, age)
	if err != nil {
		return nil, nil, err
	}
	mine, others = map[int]*containerpb.NodePool{}, map[string]*containerpb.NodePool{}
	policies := newPolicies(r.Topology)
	for _, np := range all {
		if _, named := SliceIndex(r.Name, np.GetName()); named {
			if np, err = policies.complete(ctx, np); err != nil {
				return nil, nil, err
			}
		}
		if i, ok := r.owns(np); ok {
			mine[i] = np
		} else {
			others[np.GetName()] = np
		}
	}
	return mine, others, nil
}

// topologyOf is what a node pool itself says, or "".
func topologyOf(np *containerpb.NodePool) string {
	return cmp.Or(np.GetPlacementPolicy().GetTpuTopology(), np.GetConfig().GetLabels()[accelerator.LabelTopology], np.GetConfig().GetResourceLabels()[LabelTopology])
}

// Alike tells whether all slices have for life what the first has; a pool is
// made of equal slices. The answer is nil or says which differ, and in what.
func (info SlicePoolInfo) Alike() error {
	indices := info.Slices.Indices()
	for _, i := range indices {
		np := info.pools[i]
		other, err := observe(np)
		if err != nil {
			return err
		}
		for _, c := range []struct{ what, a, b string }{
			{"accelerator", info.Shape.Name + " on " + info.Shape.MachineType, other.Shape.Name + " on " + other.Shape.MachineType},
			{"zone", info.Zone, other.Zone},
			{"placement policy", info.PlacementPolicy, other.PlacementPolicy},
			{"provisioning model", string(info.Provisioning.Model), string(other.Provisioning.Model)},
			{"reservation", info.Provisioning.Reservation, other.Provisioning.Reservation},
			{"longest run", info.Provisioning.MaxRunDuration.String(), other.Provisioning.MaxRunDuration.String()},
		} {
			if c.a != c.b {
				return fmt.Errorf("node pools %s and %s are no slices of one pool: their %s differs (%q and %q)",
					info.pools[indices[0]].GetName(), np.GetName(), c.what, c.a, c.b)
			}
		}
	}
	return nil
}

// shapeOf finds the slice that a node pool is. A single host's pool carries no
// topology: the machine type then says it.
func shapeOf(np *containerpb.NodePool) (accelerator.Slice, error) {
	machine := np.GetConfig().GetMachineType()
	text := topologyOf(np)
	if text != "" {
		t, err := accelerator.ParseTopology(text)
		if err != nil {
			return accelerator.Slice{}, err
		}
		return accelerator.Lookup("", t, machine)
	}
	hosts := max(1, int(np.GetInitialNodeCount()))
	for _, g := range accelerator.Generations() {
		facts, _ := g.Facts()
		for _, m := range facts.Machines {
			if m.Name != machine {
				continue
			}
			for _, t := range facts.Small {
				if t.Chips() == m.Chips*hosts {
					return accelerator.Lookup(g, t, machine)
				}
			}
		}
	}
	return accelerator.Slice{}, errors.New("node pool " + np.GetName() + " of machine type " + machine + " is not a TPU slice")
}
