package slicepool

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// ModifyPlan implements resource.ResourceWithModifyPlan: it works out what
// follows from the configuration, refuses what GKE would refuse, decides what
// needs new slices, and plans the repair of a pool that is not READY. It asks
// an API only for what runs on a pool that is about to go, and whether there is
// room for one that is to come or grow.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state *model
	if !req.State.Raw.IsNull() {
		state = &model{}
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if req.Plan.Raw.IsNull() { // destroy
		protect(*state, nil, &resp.Diagnostics)
		r.warnOfJobs(ctx, *state, "Deleting", &resp.Diagnostics)
		return
	}
	var config, plan model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.derive(config, &plan, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.choosePolicy(config, state)
	plan.keep(ctx, config, state, &resp.Diagnostics)
	if r.claimPlan(ctx, state, plan, req.Private, resp.Private, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	if p, ok := checkPlan(ctx, plan, &resp.Diagnostics); ok && grows(state, plan) {
		if moves(state, plan) {
			warnOfZone(p, &resp.Diagnostics)
		}
		r.checkRoom(ctx, p, &resp.Diagnostics)
	}
	if state != nil {
		if paths := replaces(ctx, *state, plan, &resp.Diagnostics); len(paths) > 0 {
			resp.RequiresReplace.Append(paths...)
			protect(*state, paths, &resp.Diagnostics)
			r.warnOfJobs(ctx, *state, "Replacing", &resp.Diagnostics)
		}
		if state.Status.ValueString() != gke.PoolReady {
			plan.forgetResults()
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if state != nil && !resp.Plan.Raw.Equal(req.State.Raw) {
		plan.forgetResults()
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// derive fills in the computed attributes that need no API.
func (r *Resource) derive(config model, plan *model, diags *diag.Diagnostics) {
	s, known := configuredShape(config, diags)
	if diags.HasError() {
		return
	}
	if known {
		plan.setShape(s)
		for _, w := range s.Warnings() {
			diags.AddAttributeWarning(path.Root("accelerator"), s.Name, w)
		}
	} else {
		plan.Topology, plan.MachineType = orUnknown(config.Topology), orUnknown(config.MachineType)
		plan.HostsPerSlice, plan.ChipsPerSlice, plan.Chips = types.Int64Unknown(), types.Int64Unknown(), types.Int64Unknown()
		plan.NodeSelector, plan.Tolerations = types.MapUnknown(types.StringType), types.ListUnknown(tolerationType)
	}
	plan.EffectiveLabels = types.MapUnknown(types.StringType)
	if own, ok := knownMap(config.ResourceLabels); ok && (r.data == nil || !r.data.Partial) {
		plan.EffectiveLabels = stringMap(r.data.Labels(own))
	}
	plan.ID, plan.Zone = types.StringUnknown(), orUnknown(config.Zone)
	if cluster, err := gke.ParseClusterName(plan.Cluster.ValueString()); err == nil {
		if !plan.Name.IsUnknown() {
			plan.ID = types.StringValue(cluster.NodePool(plan.Name.ValueString()))
		}
		if config.Zone.IsNull() && cluster.Zonal() {
			plan.Zone = types.StringValue(cluster.Location)
		}
	}
}

func orUnknown(s types.String) types.String {
	if s.IsNull() {
		return types.StringUnknown()
	}
	return s
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

// checkPlan refuses what can be refused before the API is asked: with unknown
// values there is less to check, and the rest is checked when it is applied.
func checkPlan(ctx context.Context, plan model, diags *diag.Diagnostics) (p gke.SlicePool, ok bool) {
	cluster, err := gke.ParseClusterName(plan.Cluster.ValueString())
	regional := err == nil && !cluster.Zonal()
	if plan.Accelerator.IsUnknown() || plan.MachineType.IsUnknown() || plan.Topology.IsUnknown() || plan.SliceCount.IsUnknown() || plan.PlacementPolicy.IsUnknown() || err != nil {
		return p, false
	}
	if plan.Zone.IsUnknown() && !regional || !known(ctx, plan.Node, plan.Provisioning, plan.Autoscaling, plan.Management, plan.Upgrade, plan.Version, plan.Overrides, plan.EffectiveLabels) {
		return p, false
	}
	p = plan.spec(ctx, "", diags)
	if diags.HasError() {
		return p, false
	}
	if err := p.Check(); err != nil {
		diags.AddError("Invalid slice pool", err.Error())
		return p, false
	}
	return p, true
}

// known tells whether nothing in the values is unknown.
func known(ctx context.Context, values ...attr.Value) bool {
	for _, v := range values {
		if raw, err := v.ToTerraformValue(ctx); err != nil || !raw.IsFullyKnown() {
			return false
		}
	}
	return true
}

// replaces lists the attributes whose change needs new slices.
func replaces(ctx context.Context, state, plan model, diags *diag.Diagnostics) path.Paths {
	var paths path.Paths
	differ := func(at path.Path, a, b attr.Value) {
		if !a.Equal(b) {
			paths.Append(at)
		}
	}
	differ(path.Root("topology"), state.Topology, plan.Topology)
	differ(path.Root("machine_type"), state.MachineType, plan.MachineType)
	differ(path.Root("zone"), state.Zone, plan.Zone)
	differ(path.Root("placement_policy"), state.PlacementPolicy, plan.PlacementPolicy)
	if a, ok, err := shape(state.Accelerator, state.Topology, state.MachineType); err == nil && ok {
		b, ok, err := shape(plan.Accelerator, plan.Topology, plan.MachineType)
		if err != nil || !ok || a.Generation != b.Generation {
			paths.Append(path.Root("accelerator"))
		}
	}
	a, b := state.provisioning(ctx, diags), plan.provisioning(ctx, diags)
	if a.Model.IsNull() {
		a.Model = types.StringValue(string(gke.OnDemand))
	}
	if b.Model.IsNull() {
		b.Model = types.StringValue(string(gke.OnDemand))
	}
	differ(path.Root("provisioning"), a.Model, b.Model)
	differ(path.Root("provisioning"), a.Reservation, b.Reservation)
	if !sameDuration(a.MaxRunDuration, b.MaxRunDuration) {
		paths.Append(path.Root("provisioning"))
	}
	return paths
}

// sameDuration: 24h and 1440m are the same machines.
func sameDuration(a, b types.String) bool {
	if a.Equal(b) || a.IsNull() || b.IsNull() || b.IsUnknown() {
		return a.Equal(b)
	}
	x, err := time.ParseDuration(a.ValueString())
	y, err2 := time.ParseDuration(b.ValueString())
	return err == nil && err2 == nil && x == y
}

// forgetResults marks what an apply will find out.
func (m *model) forgetResults() {
	m.Slices, m.ReadySlices, m.Status = types.MapUnknown(sliceType), types.Int64Unknown(), types.StringUnknown()
}
