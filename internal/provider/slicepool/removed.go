package slicepool

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// What becomes of a setting that is taken out of the configuration. One with a
// default goes back to it, in place or slice by slice like any other change. One
// whose default only GKE knows stays what it is, in state too: a plan would
// promise what cannot be done.

// restored is a setting that has a default.
type restored struct {
	name  string
	set   func(p gke.SlicePool) bool
	reset func(p *gke.SlicePool)
}

var withDefault = []restored{
	{"node.labels", func(p gke.SlicePool) bool { return p.NodeLabels != nil }, func(p *gke.SlicePool) { p.NodeLabels = map[string]string{} }},
	{"node.taints", func(p gke.SlicePool) bool { return p.Taints != nil }, func(p *gke.SlicePool) { p.Taints = []gke.Taint{} }},
	{"node.tags", func(p gke.SlicePool) bool { return p.Tags != nil }, func(p *gke.SlicePool) { p.Tags = []string{} }},
	{"node.secondary_boot_disks", func(p gke.SlicePool) bool { return p.SecondaryDisks != nil }, func(p *gke.SlicePool) { p.SecondaryDisks = []string{} }},
	{"node.image_streaming", func(p gke.SlicePool) bool { return p.ImageStreaming != nil }, func(p *gke.SlicePool) { p.ImageStreaming = new(bool) }},
	{"node.max_pods", func(p gke.SlicePool) bool { return p.MaxPods != 0 }, func(p *gke.SlicePool) { p.MaxPods = p.Shape.MaxPodsPerNode }},
	{"node.service_account", func(p gke.SlicePool) bool { return p.ServiceAccount != "" }, func(p *gke.SlicePool) { p.ServiceAccount = gke.DefaultServiceAccount }},
	{"node.boot_disk.type", func(p gke.SlicePool) bool { return p.DiskType != "" }, func(p *gke.SlicePool) { p.DiskType = p.Shape.BootDisk }},
	{"management.auto_repair", func(p gke.SlicePool) bool { return p.AutoRepair != nil }, func(p *gke.SlicePool) {
		repair := p.Provisioning.Model != gke.FlexStart
		p.AutoRepair = &repair
	}},
	{"management.auto_upgrade", func(p gke.SlicePool) bool { return p.AutoUpgrade != nil }, func(p *gke.SlicePool) {
		yes := true
		p.AutoUpgrade = &yes
	}},
	{"upgrade", func(p gke.SlicePool) bool { return p.Upgrade != nil }, func(p *gke.SlicePool) {
		usual := gke.DefaultUpgrade
		p.Upgrade = &usual
	}},
}

// removed names the settings that had has and want has no more, and those of
// earlier removals that still wait for a slice.
func removed(had, want gke.SlicePool, waiting []string) (names []string) {
	for _, s := range withDefault {
		if !s.set(want) && (s.set(had) || slices.Contains(waiting, s.name)) {
			names = append(names, s.name)
		}
	}
	return names
}

// restore asks for the defaults of removed settings.
func restore(p *gke.SlicePool, names []string) {
	for _, s := range withDefault {
		if slices.Contains(names, s.name) && !s.set(*p) {
			s.reset(p)
		}
	}
}

// removedKey is where private state keeps the removed settings that not every
// slice has got rid of: state has null for them, which says nothing.
const removedKey = "removed"

// keep plans the settings of nodes: what is configured, and what the pool has
// of those whose default only GKE knows.
func (m *model) keep(ctx context.Context, config model, state *model, diags *diag.Diagnostics) {
	m.Node = config.Node
	if state == nil || config.Node.IsUnknown() {
		return
	}
	n, had := noNode(), state.node(ctx, diags)
	if !config.Node.IsNull() {
		n = config.node(ctx, diags)
	}
	for to, was := range map[*types.String]types.String{&n.ImageType: had.ImageType, &n.NetworkProfile: had.NetworkProfile} {
		if to.IsNull() {
			*to = was
		}
	}
	if n.Private.IsNull() {
		n.Private = had.Private
	}
	if size := had.disk(ctx, diags).SizeGB; !size.IsNull() && !n.BootDisk.IsUnknown() {
		d := n.disk(ctx, diags)
		if d.SizeGB.IsNull() {
			d.SizeGB = size
		}
		n.BootDisk = types.ObjectValueMust(bootDiskType, map[string]attr.Value{"type": d.Type, "size_gb": d.SizeGB})
	}
	if !config.Node.IsNull() || !n.empty() {
		m.Node = n.object()
	}
}

// noNode sets nothing.
func noNode() node {
	return node{Labels: types.MapNull(types.StringType), BootDisk: types.ObjectNull(bootDiskType), Tags: types.ListNull(types.StringType),
		Taints: types.ListNull(taintType), SecondaryBootDisks: types.ListNull(types.StringType)}
}
