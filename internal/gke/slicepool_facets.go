package gke

import (
	"context"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// facet is one setting of a slice's node pool that can change: GKE takes one
// of them per operation.
type facet struct {
	name string // as the user writes it
	// same tells whether the node pool is as p wants it. What p leaves out is
	// not managed, and the same.
	same func(p SlicePool, np *containerpb.NodePool) bool
	// update is the request that changes it; nil where apply does, or where
	// only another node pool can have it.
	update func(p SlicePool, np *containerpb.NodePool) *containerpb.UpdateNodePoolRequest
	apply  func(ctx context.Context, c *Client, p SlicePool, np *containerpb.NodePool) error
	// nodes: the change needs new nodes, which ends what runs on them. It is
	// made slice by slice.
	nodes bool
}

// again tells whether only another node pool can have it.
func (f facet) again() bool { return f.update == nil && f.apply == nil }

// facets of a slice in the order in which they are changed.
var facets = []facet{
	{name: "node.labels",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.NodeLabels == nil || maps.Equal(UserNodeLabels(np.GetConfig().GetLabels()), p.NodeLabels)
		},
		update: func(p SlicePool, _ *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{Labels: &containerpb.NodeLabels{Labels: p.NodeLabels}}
		}},
	{name: "resource_labels",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return maps.Equal(UserLabels(np.GetConfig().GetResourceLabels()), p.ResourceLabels)
		},
		update: relabel},
	{name: "owner", // of the provider's configuration
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			o := OwnershipOf(np.GetConfig().GetResourceLabels())
			return o.Kind == "" || o.Owner == p.Owner
		},
		update: relabel},
	{name: "object", // that holds it: taken over by this one, or by one that came to nothing
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			o := OwnershipOf(np.GetConfig().GetResourceLabels())
			return o.Kind == "" || o.Object == p.Object
		},
		update: relabel},
	{name: "node.taints",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.Taints == nil || slices.Equal(userTaints(np.GetConfig().GetTaints()), p.Taints)
		},
		update: func(p SlicePool, _ *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{Taints: &containerpb.NodeTaints{Taints: taintsOf(p.Taints)}}
		}},
	{name: "node.tags",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.Tags == nil || slices.Equal(slices.Sorted(slices.Values(np.GetConfig().GetTags())), slices.Sorted(slices.Values(p.Tags)))
		},
		update: func(p SlicePool, _ *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{Tags: &containerpb.NetworkTags{Tags: p.Tags}}
		}},
	{name: "upgrade",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.Upgrade == nil || *p.Upgrade == upgradeOf(np.GetUpgradeSettings())
		},
		update: func(p SlicePool, _ *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{UpgradeSettings: p.Upgrade.settings()}
		}},
	{name: "management",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			m := np.GetManagement()
			return is(p.AutoRepair, m.GetAutoRepair()) && is(p.AutoUpgrade, m.GetAutoUpgrade())
		},
		apply: func(ctx context.Context, c *Client, p SlicePool, np *containerpb.NodePool) error {
			return c.setManagement(ctx, p.Cluster, np.GetName(), p.management())
		}},
	{name: "autoscaling",
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			want, have := p.Scaling(), autoscalingOf(np)
			return want == nil && have == nil || want != nil && have != nil && *want == *have
		},
		apply: func(ctx context.Context, c *Client, p SlicePool, np *containerpb.NodePool) error {
			return c.setAutoscaling(ctx, p, np)
		}},
	{name: "hosts",
		same: func(p SlicePool, np *containerpb.NodePool) bool { return p.hosted(np) || autoscalingOf(np) != nil },
		apply: func(ctx context.Context, c *Client, p SlicePool, np *containerpb.NodePool) error {
			return c.ResizeNodePool(ctx, p.Cluster, np.GetName(), int32(p.Shape.Hosts))
		}},
	{name: "version", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.Version == "" || !OlderVersion(np.GetVersion(), p.Version)
		},
		update: func(p SlicePool, _ *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{NodeVersion: p.Version}
		}},
	{name: "node.image_type", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.ImageType == "" || strings.EqualFold(p.ImageType, np.GetConfig().GetImageType())
		},
		update: func(p SlicePool, np *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{ImageType: p.ImageType, NodeVersion: np.GetVersion()}
		}},
	{name: "node.boot_disk", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			c := np.GetConfig()
			return (p.DiskType == "" || p.DiskType == c.GetDiskType()) && (p.DiskSizeGB == 0 || p.DiskSizeGB == int(c.GetDiskSizeGb()))
		},
		update: func(p SlicePool, np *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			size := int64(p.DiskSizeGB)
			if size == 0 {
				size = int64(np.GetConfig().GetDiskSizeGb())
			}
			return &containerpb.UpdateNodePoolRequest{DiskType: p.diskType(), DiskSizeGb: size}
		}},
	{name: "node.image_streaming", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return is(p.ImageStreaming, np.GetConfig().GetGcfsConfig().GetEnabled())
		},
		update: func(p SlicePool, _ *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
			return &containerpb.UpdateNodePoolRequest{GcfsConfig: &containerpb.GcfsConfig{Enabled: *p.ImageStreaming}}
		}},
	{name: "node.service_account", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.ServiceAccount == "" || p.ServiceAccount == np.GetConfig().GetServiceAccount()
		}},
	{name: "node.private", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return is(p.Private, np.GetNetworkConfig().GetEnablePrivateNodes())
		}},
	{name: "node.network_profile", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.NetworkProfile == "" || p.NetworkProfile == np.GetNetworkConfig().GetAcceleratorNetworkProfile()
		}},
	{name: "node.max_pods", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.MaxPods == 0 || p.MaxPods == int(np.GetMaxPodsConstraint().GetMaxPodsPerNode())
		}},
	{name: "node.secondary_boot_disks", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return p.SecondaryDisks == nil || slices.Equal(p.SecondaryDisks, secondaryDisksOf(np))
		}},
	{name: "node_pool_overrides", nodes: true,
		same: func(p SlicePool, np *containerpb.NodePool) bool {
			return np.GetConfig().GetResourceLabels()[LabelOverrides] == p.overridesHash()
		}},
}

// relabel asks for all resource labels, for GKE replaces them as a whole.
func relabel(p SlicePool, np *containerpb.NodePool) *containerpb.UpdateNodePoolRequest {
	labels := map[string]string{}
	for k, v := range np.GetConfig().GetResourceLabels() {
		if strings.HasPrefix(k, LabelPrefix) {
			labels[k] = v
		}
	}
	if labels[LabelKind] != "" {
		for label, value := range map[string]string{LabelOwner: p.Owner, LabelObject: p.Object} {
			if labels[label] = value; value == "" {
				delete(labels, label)
			}
		}
	}
	maps.Copy(labels, p.ResourceLabels)
	return &containerpb.UpdateNodePoolRequest{ResourceLabels: &containerpb.ResourceLabels{Labels: labels}}
}

// is compares a setting that may be left out.
func is(want *bool, have bool) bool { return want == nil || *want == have }

// differing lists the facets in which a node pool is not as p wants it.
func (p SlicePool) differing(np *containerpb.NodePool, nodes bool) []facet {
	var out []facet
	for _, f := range facets {
		if f.nodes == nodes && !f.same(p, np) {
			out = append(out, f)
		}
	}
	return out
}

// outdated names everything in which a node pool is not as p wants it.
func (p SlicePool) outdated(np *containerpb.NodePool) []string {
	var names []string
	for _, f := range facets {
		if !f.same(p, np) {
			names = append(names, f.name)
		}
	}
	return names
}

// change makes facets as p wants them, one operation each.
func (a *slicePoolApply) change(ctx context.Context, np *containerpb.NodePool, list []facet) error {
	for _, f := range list {
		var err error
		if f.apply != nil {
			err = f.apply(ctx, a.c, a.p, np)
		} else {
			err = a.c.UpdateNodePool(ctx, a.p.Cluster, np.GetName(), f.update(a.p, np))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) setManagement(ctx context.Context, cluster ClusterName, pool string, m *containerpb.NodeManagement) error {
	return c.write(ctx, cluster, poolTarget("updating", cluster, pool, nil), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.SetNodePoolManagement(ctx, &containerpb.SetNodePoolManagementRequest{Name: cluster.NodePool(pool), Management: m})
	})
}

// hosted tells whether a node pool has the hosts that p wants: all of a
// slice's, unless it is autoscaled.
func (p SlicePool) hosted(np *containerpb.NodePool) bool {
	return p.Scaling() != nil || int(np.GetInitialNodeCount()) == p.Shape.Hosts
}

// setAutoscaling turns it on or off. A slice that is not autoscaled has all of
// its hosts: GKE refuses to turn autoscaling off while it has none.
func (c *Client) setAutoscaling(ctx context.Context, p SlicePool, np *containerpb.NodePool) error {
	scaling := &containerpb.NodePoolAutoscaling{}
	if s := p.Scaling(); s != nil {
		scaling = s.settings()
	} else if err := c.ResizeNodePool(ctx, p.Cluster, np.GetName(), int32(p.Shape.Hosts)); err != nil {
		return err
	}
	return c.write(ctx, p.Cluster, poolTarget("updating", p.Cluster, np.GetName(), nil), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.SetNodePoolAutoscaling(ctx, &containerpb.SetNodePoolAutoscalingRequest{Name: p.Cluster.NodePool(np.GetName()), Autoscaling: scaling})
	})
}
