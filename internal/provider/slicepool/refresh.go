package slicepool

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

func stringValue(s string) types.String { return types.StringValue(s) }

func knownOrNull(s types.String) types.String {
	if s.IsUnknown() {
		return types.StringNull()
	}
	return s
}

// imported fills in a state that has only a name: what is as it would be
// without being configured stays null, so that a short configuration fits.
func (m *model) imported(info gke.SlicePoolInfo, defaults map[string]string) {
	m.SliceCount = types.Int64Value(int64(len(info.Slices)))
	m.Accelerator = types.StringValue(info.Shape.Name)
	m.setShape(info.Shape)
	m.Zone = types.StringValue(info.Zone)
	m.PlacementPolicy = orNull(info.PlacementPolicy)
	m.EffectiveLabels = stringMap(info.ResourceLabels)
	m.ResourceLabels = types.MapNull(types.StringType)
	own := maps.Clone(info.ResourceLabels)
	maps.DeleteFunc(own, func(k, v string) bool { return defaults[k] == v })
	if len(own) > 0 {
		m.ResourceLabels = stringMap(own)
	}
	m.OnStockout = types.StringValue(string(gke.StockoutWait))
	m.Force, m.DeletionProtection = types.BoolValue(false), types.BoolValue(false)
	m.MaxUnavailable = types.Int64Value(1)
	m.Version, m.Overrides = types.StringNull(), types.StringNull()
	m.Management, m.Upgrade = types.ObjectNull(managementType), types.ObjectNull(upgradeType)
	m.Provisioning, m.Autoscaling = types.ObjectNull(provisioningType), types.ObjectNull(autoscalingType)
	m.refreshProvisioning(info)
	n := noNode()
	if info.ServiceAccount != gke.DefaultServiceAccount {
		n.ServiceAccount = orNull(info.ServiceAccount)
	}
	if info.DiskType != "" && info.DiskType != info.Shape.BootDisk {
		n.BootDisk = types.ObjectValueMust(bootDiskType, map[string]attr.Value{"type": types.StringValue(info.DiskType), "size_gb": types.Int64Null()})
	}
	if len(info.NodeLabels) > 0 {
		n.Labels = stringMap(info.NodeLabels)
	}
	if len(info.Tags) > 0 {
		n.Tags = stringList(info.Tags)
	}
	if len(info.Taints) > 0 {
		n.Taints = taintList(info.Taints)
	}
	if len(info.SecondaryDisks) > 0 {
		n.SecondaryBootDisks = stringList(info.SecondaryDisks)
	}
	if info.MaxPods != info.Shape.MaxPodsPerNode {
		n.MaxPods = types.Int64Value(int64(info.MaxPods))
	}
	m.Node = types.ObjectNull(nodeType)
	if !n.empty() {
		m.Node = n.object()
	}
}

// refreshProvisioning takes over the model and the autoscaling, if they are not
// those of the state.
func (m *model) refreshProvisioning(info gke.SlicePoolInfo) {
	var diags diag.Diagnostics
	had := gke.SlicePool{Shape: info.Shape}
	m.settings(context.Background(), &had, &diags)
	if have := info.Provisioning; cmp.Or(had.Provisioning.Model, gke.OnDemand) != have.Model || had.Provisioning.Reservation != have.Reservation ||
		had.Provisioning.MaxRunDuration != have.MaxRunDuration {
		run := types.StringNull()
		if have.MaxRunDuration > 0 {
			run = types.StringValue(durationText(have.MaxRunDuration))
		}
		m.Provisioning = types.ObjectValueMust(provisioningType, map[string]attr.Value{
			"model": types.StringValue(string(have.Model)), "reservation": orNull(have.Reservation), "max_run_duration": run})
		had.Provisioning = have
	}
	if want, have := had.Scaling(), info.Autoscaling; have == nil {
		if want != nil && had.Autoscaling != nil {
			m.Autoscaling = types.ObjectNull(autoscalingType)
		}
	} else if want == nil || *want != *have {
		m.Autoscaling = scalingObject(*have, info.Shape.Hosts)
	}
}

// scalingObject leaves out what is as it would be without being configured.
func scalingObject(s gke.Autoscaling, hosts int) types.Object {
	values := map[string]attr.Value{"min_hosts": types.Int64Null(), "max_hosts": types.Int64Null(), "location_policy": types.StringNull()}
	if s.Min != 0 {
		values["min_hosts"] = types.Int64Value(int64(s.Min))
	}
	if s.Max != hosts {
		values["max_hosts"] = types.Int64Value(int64(s.Max))
	}
	if s.LocationPolicy != gke.DefaultLocationPolicy {
		values["location_policy"] = types.StringValue(s.LocationPolicy)
	}
	return types.ObjectValueMust(autoscalingType, values)
}

// durationText is the shortest way to write whole hours or minutes: 24h, where
// Go says 24h0m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// refresh takes over what differs from the state, as far as it is managed
// here: a null attribute is not.
func (m *model) refresh(ctx context.Context, info gke.SlicePoolInfo, diags *diag.Diagnostics) {
	if s, ok, err := shape(m.Accelerator, m.Topology, m.MachineType); err != nil || !ok || s != info.Shape {
		m.Accelerator = types.StringValue(info.Shape.Name)
	}
	m.setShape(info.Shape)
	m.Zone = types.StringValue(info.Zone)
	m.PlacementPolicy = orNull(info.PlacementPolicy)
	m.EffectiveLabels = stringMap(info.ResourceLabels)
	m.refreshProvisioning(info)
	if !m.Version.IsNull() && gke.OlderVersion(info.Version, m.Version.ValueString()) {
		m.Version = types.StringValue(info.Version)
	}
	m.refreshManagement(ctx, info, diags)
	if m.Node.IsNull() {
		return
	}
	n := m.node(ctx, diags)
	n.refresh(ctx, info, diags)
	m.Node = n.object()
}

func (m *model) refreshManagement(ctx context.Context, info gke.SlicePoolInfo, diags *diag.Diagnostics) {
	if !m.Management.IsNull() {
		var a management
		diags.Append(m.Management.As(ctx, &a, basetypes.ObjectAsOptions{})...)
		m.Management = types.ObjectValueMust(managementType, map[string]attr.Value{
			"auto_repair": taken(a.AutoRepair, info.AutoRepair), "auto_upgrade": taken(a.AutoUpgrade, info.AutoUpgrade)})
	}
	if !m.Upgrade.IsNull() {
		var a upgrade
		diags.Append(m.Upgrade.As(ctx, &a, basetypes.ObjectAsOptions{})...)
		number := func(was types.Int64, now int) types.Int64 {
			if was.IsNull() && (now == 0 || a.unlimited() && info.Upgrade != nil && *info.Upgrade == gke.DefaultUpgrade) {
				return was
			}
			return types.Int64Value(int64(now))
		}
		m.Upgrade = types.ObjectValueMust(upgradeType, map[string]attr.Value{"strategy": types.StringValue(info.Upgrade.Strategy),
			"max_surge": number(a.MaxSurge, info.Upgrade.MaxSurge), "max_unavailable": number(a.MaxUnavailable, info.Upgrade.MaxUnavailable)})
	}
}

// taken is the live value of a setting that is managed.
func taken(was types.Bool, now *bool) types.Bool {
	if was.IsNull() || now == nil {
		return was
	}
	return types.BoolValue(*now)
}

func orNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
