package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/private"
)

// ModifyPlan implements resource.ResourceWithModifyPlan: it fills in the
// provider's defaults, leaves what is not configured as it is, decides what
// needs another cluster, and holds deletion_protection against a destroy and a
// replacement alike. It asks no API.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state *model
	if !req.State.Raw.IsNull() {
		state = &model{}
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if req.Plan.Raw.IsNull() {
		if state != nil && state.protected() {
			resp.Diagnostics.AddError("Cluster "+state.Name.ValueString()+" is protected from deletion",
				"Its deletion_protection is true. To delete it with everything that runs on it, set deletion_protection = false, apply, and then destroy.")
		}
		return
	}
	var config, plan model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.derive(config, &plan, &resp.Diagnostics)
	if config.Location.IsNull() { // else ValidateConfig has seen it
		check(spec(ctx, config, plan.clusterName(), "", &resp.Diagnostics), true, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if state != nil {
		plan.keep(config, *state)
	} else {
		checkNew(spec(ctx, config, plan.clusterName(), "", &resp.Diagnostics), &resp.Diagnostics)
		plan.identify(config)
	}
	r.announce(state, plan)
	plan.countNodes(config)
	if state != nil {
		paths := r.replaces(ctx, *state, plan, config, &resp.Diagnostics)
		resp.RequiresReplace.Append(paths...)
		if len(paths) > 0 {
			checkNew(spec(ctx, config, plan.clusterName(), "", &resp.Diagnostics), &resp.Diagnostics)
		}
		if resp.Diagnostics.HasError() {
			return
		}
		foreign, d := private.Get[[]string](ctx, req.Private, foreignKey)
		resp.Diagnostics.Append(d...)
		if len(paths) == 0 {
			remade(ctx, *state, config, &resp.Diagnostics)
			changesOfPools(*state, plan, foreign, &resp.Diagnostics)
			dropped(*state, plan, &resp.Diagnostics)
		}
		plan.open(*state)
		taking, d := private.Get[bool](ctx, req.Private, takingKey)
		resp.Diagnostics.Append(d...)
		if taking {
			plan.Status = types.StringUnknown()
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

func (m *model) clusterName() gke.ClusterName {
	return gke.ClusterName{Project: m.Project.ValueString(), Location: m.Location.ValueString(), Cluster: m.Name.ValueString()}
}

// keep leaves what the configuration leaves out as it is in the state.
func (m *model) keep(config, state model) {
	for _, name := range settingFields() {
		m.setTop(name, kept(config.top(name), m.top(name), state.top(name)))
	}
	for _, s := range gke.ClusterSettings() {
		v := config.setting(s.Name)
		before, _ := plain(state.setting(s.Name))
		want, known := plain(v)
		if v.IsNull() || known && s.Same(want, before) {
			continue
		}
		if before == nil {
			m.forget(config, s.Wakes)
		}
		if !s.Unsettles(before) {
			continue
		}
		// One window takes the place of the other: what the rest of the group
		// will be is known afterwards only.
		group, _, _ := strings.Cut(s.Name, ".")
		configured, _ := config.top(group).(types.Object)
		planned, _ := m.top(group).(types.Object)
		if configured.IsUnknown() || planned.IsNull() || planned.IsUnknown() {
			continue
		}
		m.setTop(group, eachAttribute(planned, func(name string, v attr.Value) attr.Value {
			if configured.Attributes()[name].IsNull() {
				return unknown(settingType(group + "." + name))
			}
			return v
		}))
	}
	if pools, ok := kept(config.CPUPools, m.CPUPools, state.CPUPools).(types.Map); ok {
		m.CPUPools = pools
	}
}

// forget makes settings that the configuration leaves out unknown.
func (m *model) forget(config model, names []string) {
	for _, path := range names {
		group, name, _ := strings.Cut(path, ".")
		planned, _ := m.top(group).(types.Object)
		if config.top(group).IsUnknown() || planned.IsNull() || planned.IsUnknown() || !config.setting(path).IsNull() {
			continue
		}
		m.setTop(group, eachAttribute(planned, func(one string, v attr.Value) attr.Value {
			if one == name {
				return unknown(settingType(path))
			}
			return v
		}))
	}
}

// unknown is a value of a type that is not known yet.
func unknown(t attr.Type) attr.Value {
	ctx := context.Background()
	v, err := t.ValueFromTerraform(ctx, tftypes.NewValue(t.TerraformType(ctx), tftypes.UnknownValue))
	if err != nil {
		panic("a type of the schema has no unknown value: " + err.Error())
	}
	return v
}

// countNodes: a pool that does not say how many nodes it has has one, unless
// the autoscaler decides.
func (m *model) countNodes(config model) {
	pools := eachObject(m.CPUPools, func(name string, p types.Object) attr.Value {
		c, ok := config.CPUPools.Elements()[name].(types.Object)
		if !ok || c.IsNull() || c.IsUnknown() || !c.Attributes()["node_count"].IsNull() {
			return p
		}
		count := types.Int64Value(defaultNodes)
		if scaled := c.Attributes()["autoscaling"]; scaled.IsUnknown() {
			count = types.Int64Unknown()
		} else if !scaled.IsNull() {
			count = types.Int64Null()
		}
		return eachAttribute(p, func(name string, v attr.Value) attr.Value {
			if name == "node_count" {
				return count
			}
			return v
		})
	})
	if pools, ok := pools.(types.Map); ok {
		m.CPUPools = pools
	}
}

// open marks what a change of the control plane may give another value.
func (m *model) open(state model) {
	switch status := state.Status.ValueString(); {
	case status == statusProvisioning:
		m.Version, m.Endpoint, m.DNSEndpoint, m.CACertificate = types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		m.Status = types.StringUnknown()
	case status != statusRunning: // whoever changes it waits until it is done
		m.Status = types.StringUnknown()
		if m.same(state) {
			m.Status = state.Status
		}
	}
	if !state.ReleaseChannel.Equal(m.ReleaseChannel) || !state.MinVersion.Equal(m.MinVersion) {
		m.Version = types.StringUnknown()
	}
	for _, name := range []string{"control_plane.ip_endpoint", "control_plane.private_endpoint"} {
		if !state.setting(name).Equal(m.setting(name)) {
			m.Endpoint = types.StringUnknown()
		}
	}
	if !state.WorkloadIdentity.Equal(m.WorkloadIdentity) {
		m.WorkloadPool = types.StringUnknown()
	}
}

// same tells whether the plan asks for nothing that the state does not have.
func (m *model) same(state model) bool {
	for _, name := range settingFields() {
		if !m.top(name).Equal(state.top(name)) {
			return false
		}
	}
	return m.CPUPools.Equal(state.CPUPools) && m.EffectiveLabels.Equal(state.EffectiveLabels) && m.MinVersion.Equal(state.MinVersion) &&
		m.Overrides.Equal(state.Overrides) && m.DeletionProtection.Equal(state.DeletionProtection) && m.Force.Equal(state.Force) && m.Timeouts.Equal(state.Timeouts)
}

// protected: a cluster that never came up protects nothing.
func (m *model) protected() bool {
	return m.DeletionProtection.ValueBool() && m.Status.ValueString() != statusError
}

// derive fills in what needs no API: the provider's project and location, the
// labels, the id.
func (r *Resource) derive(config model, plan *model, diags *diag.Diagnostics) {
	fill := func(name string, configured types.String, from func() string) types.String {
		switch {
		case !configured.IsNull():
			return configured
		case r.data == nil:
			return types.StringUnknown()
		case from() != "":
			return types.StringValue(from())
		case r.data.Partial:
			return types.StringUnknown()
		}
		diags.AddAttributeError(path.Root(name), "Missing "+name,
			fmt.Sprintf("Set %s here or in the provider's configuration, or in the environment (the provider's documentation lists the variables).", name))
		return types.StringUnknown()
	}
	plan.Project = fill("project", config.Project, func() string { return r.data.Project })
	plan.Location = fill("location", config.Location, func() string { return r.data.Location })
	plan.EffectiveLabels = types.MapUnknown(types.StringType)
	if own, ok := knownMap(config.ResourceLabels); ok && r.data != nil && !r.data.Partial {
		plan.EffectiveLabels = stringMap(r.data.Labels(own))
	}
	plan.ID = types.StringUnknown()
	if n := plan.clusterName(); n.Project != "" && n.Location != "" && n.Cluster != "" {
		plan.ID = types.StringValue(n.String())
	}
}

// identify says which Workload Identity pool a new cluster will have. One that
// is there has what it has: open knows when that changes.
func (m *model) identify(config model) {
	switch on, n := config.WorkloadIdentity, m.clusterName(); {
	case on.IsUnknown():
	case !on.IsNull() && !on.ValueBool():
		m.WorkloadPool = types.StringValue("")
	case n.Project != "":
		m.WorkloadPool = types.StringValue(n.WorkloadPool())
	}
}

// replaces lists the attributes whose change needs another cluster, and says
// why. A protected cluster is an error instead.
func (r *Resource) replaces(ctx context.Context, state, plan, config model, diags *diag.Diagnostics) path.Paths {
	var paths path.Paths
	var reasons []string
	add := func(name, why string) {
		steps := strings.Split(name, ".")
		at := path.Root(steps[0])
		for _, s := range steps[1:] {
			at = at.AtName(s)
		}
		paths.Append(at)
		reasons = append(reasons, fmt.Sprintf("%s: %s", name, why))
	}
	for _, p := range []struct {
		name string
		a, b attr.Value
	}{{"name", state.Name, plan.Name}, {"project", state.Project, plan.Project}, {"location", state.Location, plan.Location}} {
		if !p.a.Equal(p.b) {
			add(p.name, "it is part of the cluster's path")
		}
	}
	for _, s := range gke.ClusterSettings() {
		why, fixed := s.Replaces()
		want, ok := plain(config.setting(s.Name))
		have, _ := plain(state.setting(s.Name))
		if fixed && (!ok || want != nil && !s.Same(want, have)) {
			add(s.Name, why)
		}
	}
	now, before := spec(ctx, config, gke.ClusterName{}, "", diags), spec(ctx, state, gke.ClusterName{}, "", diags)
	for _, name := range now.FixedOverrides(before) {
		add("cluster_overrides", "GKE sets "+name+" when it makes a cluster and cannot change it")
	}
	if len(paths) == 0 {
		return nil
	}
	name, because := state.Name.ValueString(), strings.Join(reasons, "\n")
	if state.protected() {
		diags.AddAttributeError(paths[0], "Cluster "+name+" is protected from replacement",
			fmt.Sprintf("The change of %s needs another cluster, which would delete this one with everything that runs on it, and its deletion_protection is true. "+
				"Undo the change, or set deletion_protection = false and apply before it.\n%s", paths[0], because))
		return paths
	}
	diags.AddAttributeWarning(paths[0], "Cluster "+name+" is replaced by another one",
		"Everything that runs on it goes with it. GKE cannot change this of a cluster:\n"+because)
	return paths
}
