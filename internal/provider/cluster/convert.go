package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// setting is the value of a setting, which is a top-level attribute or one of a
// group: null where the group is null, unknown where it is unknown.
func (m *shared) setting(name string) attr.Value {
	outer, inner, nested := strings.Cut(name, ".")
	v := m.top(outer)
	group, ok := v.(types.Object)
	if !nested || !ok || group.IsNull() || group.IsUnknown() {
		return v
	}
	return group.Attributes()[inner]
}

// settings are the values that a configuration has; unknown names those that
// are not known yet.
func (m *shared) settings() (known gke.Settings, unknown []string) {
	known = gke.Settings{}
	for _, s := range gke.ClusterSettings() {
		v, ok := plain(m.setting(s.Name))
		if !ok {
			unknown = append(unknown, s.Name)
		} else if v != nil {
			known[s.Name] = v
		}
	}
	return known, unknown
}

// spec is what a configuration asks for, as far as it is known. What the
// configuration leaves out is left as it is.
func spec(ctx context.Context, config model, n gke.ClusterName, owner string, diags *diag.Diagnostics) gke.TrainingCluster {
	t := gke.TrainingCluster{
		Name: n, Owner: owner, MinVersion: config.MinVersion.ValueString(), Overrides: config.Overrides.ValueString(),
		CPUPools: map[string]gke.CPUPool{},
	}
	t.Settings, t.Unknown = config.settings()
	for name, p := range config.pools(ctx, diags) {
		t.CPUPools[name] = p.spec()
	}
	return t
}

// spec is a CPU pool as it is configured.
func (p cpuPool) spec() gke.CPUPool {
	out := gke.CPUPool{
		MachineType: p.MachineType.ValueString(), DiskType: p.DiskType.ValueString(), DiskSizeGB: int(p.DiskSizeGB.ValueInt64()),
		Labels: goMap(p.Labels), Zones: goSet(p.Zones), Scopes: goSet(p.Scopes),
		ServiceAccount: p.ServiceAccount.ValueString(), MaxPods: int(p.MaxPods.ValueInt64()), Version: p.Version.ValueString(),
	}
	if !p.Spot.IsNull() && !p.Spot.IsUnknown() {
		spot := p.Spot.ValueBool()
		out.Spot = &spot
	}
	if !p.NodeCount.IsNull() && !p.NodeCount.IsUnknown() {
		n := int(p.NodeCount.ValueInt64())
		out.NodeCount = &n
	} else if p.NodeCount.IsNull() && p.Autoscaling.IsNull() {
		n := defaultNodes
		out.NodeCount = &n
	}
	if a := p.Autoscaling; !a.IsNull() && !a.IsUnknown() {
		out.Autoscaling = autoscaling(a)
	}
	if !p.Taints.IsNull() && !p.Taints.IsUnknown() {
		out.Taints = []gke.Taint{}
		for _, e := range p.Taints.Elements() {
			o, _ := e.(types.Object)
			text := func(name string) string { s, _ := o.Attributes()[name].(types.String); return s.ValueString() }
			out.Taints = append(out.Taints, gke.Taint{Key: text("key"), Value: text("value"), Effect: text("effect")})
		}
	}
	return out
}

// defaultNodes is how many nodes a zone has of a pool that does not say it.
const defaultNodes = 1

func autoscaling(a types.Object) *gke.CPUAutoscaling {
	get := func(name string) any { v, _ := plain(a.Attributes()[name]); return v }
	least, _ := get("min_nodes").(int)
	most, _ := get("max_nodes").(int)
	policy, _ := get("location_policy").(string)
	if total, _ := get("total").(bool); total {
		return &gke.CPUAutoscaling{TotalMin: least, TotalMax: most, LocationPolicy: policy}
	}
	return &gke.CPUAutoscaling{Min: least, Max: most, LocationPolicy: policy}
}

func (m *shared) pools(ctx context.Context, diags *diag.Diagnostics) map[string]cpuPool {
	pools := map[string]cpuPool{}
	if !m.CPUPools.IsNull() && !m.CPUPools.IsUnknown() {
		diags.Append(m.CPUPools.ElementsAs(ctx, &pools, false)...)
	}
	return pools
}

// ownedPools names the CPU pools of a state.
func (m *shared) ownedPools() []string {
	return slices.Sorted(maps.Keys(m.CPUPools.Elements()))
}

// read makes m what GKE has. Where the state means the same in other words, its
// words stay. Of the node pools only those named are read.
func (m *shared) read(ctx context.Context, c *containerpb.Cluster, pools []string, diags *diag.Diagnostics) {
	groups := map[string]map[string]attr.Value{}
	for _, s := range gke.ClusterSettings() {
		outer, inner, nested := strings.Cut(s.Name, ".")
		t := settingType(s.Name)
		before := m.setting(s.Name)
		v := value(t, s.Of(c))
		if had, ok := plain(before); ok && had != nil && !v.IsNull() && s.Same(had, s.Of(c)) && before.Type(ctx).Equal(t) {
			v = before
		}
		if !nested {
			m.setTop(outer, v)
			continue
		}
		if groups[outer] == nil {
			groups[outer] = map[string]attr.Value{}
		}
		groups[outer][inner] = v
	}
	for name, attrs := range groups {
		m.setTop(name, types.ObjectValueMust(groupType(name).AttrTypes, attrs))
	}
	before := m.pools(ctx, diags)
	live := map[string]attr.Value{}
	for _, np := range c.GetNodePools() {
		if slices.Contains(pools, np.GetName()) {
			live[np.GetName()] = readPool(np, before[np.GetName()])
		}
	}
	m.CPUPools = types.MapValueMust(cpuPoolType, live)
	m.results(c, diags)
}

// results fills in what GKE decides.
func (m *shared) results(c *containerpb.Cluster, diags *diag.Diagnostics) {
	ca, err := gke.CA(c)
	if err != nil {
		diags.AddError("Unexpected answer from GKE", "cluster "+c.GetName()+": "+err.Error())
	}
	m.Version = types.StringValue(c.GetCurrentMasterVersion())
	m.Endpoint = types.StringValue(c.GetEndpoint())
	m.DNSEndpoint = types.StringValue(c.GetControlPlaneEndpointsConfig().GetDnsEndpointConfig().GetEndpoint())
	m.CACertificate = types.StringValue(string(ca))
	m.Status = types.StringValue(c.GetStatus().String())
	m.WorkloadPool = types.StringValue(c.GetWorkloadIdentityConfig().GetWorkloadPool())
}

// complete fills in what the plan left open, after GKE has done its work. What
// the plan said stays, results too: GKE or a colleague may have upgraded the
// cluster since, or begun another change, and the next refresh shows that.
func (m *shared) complete(ctx context.Context, c *containerpb.Cluster, diags *diag.Diagnostics) {
	live := shared{CPUPools: types.MapNull(cpuPoolType)}
	live.read(ctx, c, m.ownedPools(), diags)
	for _, name := range slices.Concat(settingFields(), slices.Collect(maps.Keys(computedAttributes()))) {
		m.setTop(name, known(m.top(name), live.top(name)))
	}
	pools, ok := known(m.CPUPools, live.CPUPools).(types.Map)
	if ok {
		m.CPUPools = pools
	}
}

// cpuPoolsOf names the CPU pools of a cluster that is imported or only read:
// those that were made as such, or else every pool without TPUs.
func cpuPoolsOf(c *containerpb.Cluster) []string {
	var made, cpu []string
	for _, np := range c.GetNodePools() {
		if gke.OwnershipOf(np.GetConfig().GetResourceLabels()).Kind == gke.KindCPUPool {
			made = append(made, np.GetName())
		}
		if cpuMachineError(np.GetConfig().GetMachineType()) == nil && !np.GetAutoscaling().GetAutoprovisioned() {
			cpu = append(cpu, np.GetName())
		}
	}
	if len(made) > 0 {
		return made
	}
	return cpu
}

// imported fills in a state that has only an id.
func (m *model) imported(ctx context.Context, n gke.ClusterName, c *containerpb.Cluster, defaults map[string]string, diags *diag.Diagnostics) {
	m.Name, m.Project, m.Location = types.StringValue(n.Cluster), types.StringValue(n.Project), types.StringValue(n.Location)
	labels := gke.UserLabels(c.GetResourceLabels())
	m.EffectiveLabels, m.ResourceLabels = stringMap(labels), types.MapNull(types.StringType)
	maps.DeleteFunc(labels, func(k, v string) bool { return defaults[k] == v })
	if len(labels) > 0 {
		m.ResourceLabels = stringMap(labels)
	}
	m.read(ctx, c, cpuPoolsOf(c), diags)
}

// refresh takes over what differs from the state. A node pool that is neither in
// cpu_pools nor made for it is no business of ours.
func (m *model) refresh(ctx context.Context, c *containerpb.Cluster, owner string, diags *diag.Diagnostics) {
	if v := m.MinVersion.ValueString(); v != "" && gke.OlderVersion(c.GetCurrentMasterVersion(), v) {
		m.MinVersion = types.StringValue(c.GetCurrentMasterVersion()) // shows as a change to make
	}
	if m.Overrides.ValueString() != "" {
		m.Overrides = types.StringValue(gke.TrainingCluster{Overrides: m.Overrides.ValueString()}.DriftedOverrides(c))
	}
	m.refreshLabels(c)
	m.read(ctx, c, slices.Concat(m.ownedPools(), gke.OwnCPUPools(c, owner)), diags)
	if c.GetStatus() != containerpb.Cluster_PROVISIONING { // else its status shows it
		m.unfinished(c)
	}
}

// unfinished shows the CPU pools that are being made or removed, or did not come
// up, as pools without nodes: as a change to make, which the next apply finishes.
func (m *model) unfinished(c *containerpb.Cluster) {
	names := gke.UnfinishedPools(c)
	pools := eachObject(m.CPUPools, func(pool string, p types.Object) attr.Value {
		if !slices.Contains(names, pool) {
			return p
		}
		return eachAttribute(p, func(name string, v attr.Value) attr.Value {
			switch name {
			case "node_count":
				return types.Int64Value(0)
			case "autoscaling":
				return types.ObjectNull(autoscalingType.AttrTypes)
			}
			return v
		})
	})
	if pools, ok := pools.(types.Map); ok {
		m.CPUPools = pools
	}
}

// refreshLabels shows labels that somebody changed or added where the user
// wrote them: in resource_labels, without the provider's defaults.
func (m *model) refreshLabels(c *containerpb.Cluster) {
	live := gke.UserLabels(c.GetResourceLabels())
	effective, ok := knownMap(m.EffectiveLabels)
	own, ok2 := knownMap(m.ResourceLabels)
	m.EffectiveLabels = stringMap(live)
	if !ok || !ok2 || maps.Equal(live, effective) {
		return
	}
	for k := range maps.Clone(own) {
		if _, there := live[k]; !there {
			delete(own, k)
		}
	}
	for k, v := range live {
		if effective[k] != v {
			own[k] = v
		}
	}
	m.ResourceLabels = stringMap(own)
}

// readPool is a CPU pool as GKE has it; what before says in other words stays.
func readPool(np *containerpb.NodePool, before cpuPool) attr.Value {
	p := gke.CPUPoolOf(np)
	version := types.StringValue(p.Version)
	if v := before.Version.ValueString(); v != "" && !gke.OlderVersion(p.Version, v) {
		version = before.Version
	}
	scaling, count := types.ObjectNull(autoscalingType.AttrTypes), types.Int64Null()
	if a := p.Autoscaling; a != nil {
		v, _ := value(autoscalingType, map[string]any{"min_nodes": a.Min + a.TotalMin, "max_nodes": a.Max + a.TotalMax,
			"total": a.TotalMax > 0, "location_policy": orNil(a.LocationPolicy)}).(types.Object)
		scaling = v
	} else if p.NodeCount != nil {
		count = types.Int64Value(int64(*p.NodeCount))
	}
	taints := make([]attr.Value, 0, len(p.Taints))
	for _, t := range p.Taints {
		taints = append(taints, value(taintType, map[string]any{"key": t.Key, "value": t.Value, "effect": t.Effect}))
	}
	return types.ObjectValueMust(cpuPoolType.AttrTypes, map[string]attr.Value{
		"machine_type": types.StringValue(p.MachineType), "node_count": count, "autoscaling": scaling,
		"disk_type": types.StringValue(p.DiskType), "disk_size_gb": types.Int64Value(int64(p.DiskSizeGB)),
		"labels": stringMap(p.Labels), "taints": types.ListValueMust(taintType, taints), "zones": stringSet(p.Zones),
		"spot": types.BoolValue(*p.Spot), "service_account": types.StringValue(p.ServiceAccount), "oauth_scopes": stringSet(p.Scopes),
		"max_pods_per_node": types.Int64Value(int64(p.MaxPods)), "version": version,
	})
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func stringMap(m map[string]string) types.Map {
	elems := map[string]attr.Value{}
	for k, v := range m {
		elems[k] = types.StringValue(v)
	}
	return types.MapValueMust(types.StringType, elems)
}

func stringSet(list []string) types.Set {
	elems := make([]attr.Value, 0, len(list))
	for _, s := range list {
		elems = append(elems, types.StringValue(s))
	}
	return types.SetValueMust(types.StringType, elems)
}

// knownMap is a map whose every value is known; null is empty.
func knownMap(m types.Map) (map[string]string, bool) {
	out := map[string]string{}
	for k, v := range m.Elements() {
		s, ok := v.(types.String)
		if !ok || s.IsUnknown() {
			return nil, false
		}
		out[k] = s.ValueString()
	}
	return out, !m.IsUnknown()
}

// goSet is nil for a null set: not managed here.
func goSet(s types.Set) []string {
	list, _ := plain(s)
	out, _ := list.([]string)
	return out
}

// goMap is nil for a null map: not managed here.
func goMap(m types.Map) map[string]string {
	if m.IsNull() {
		return nil
	}
	if out, ok := knownMap(m); ok {
		return out
	}
	return nil // while planning
}
