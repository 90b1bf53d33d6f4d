package jobset

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

const typeName = "tpu_training_jobset"

// NewResource makes the resource.
func NewResource() resource.Resource { return &jobsetResource{} }

type jobsetResource struct {
	conn.Child
}

var (
	_ resource.ResourceWithConfigure      = (*jobsetResource)(nil)
	_ resource.ResourceWithImportState    = (*jobsetResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*jobsetResource)(nil)
	_ resource.ResourceWithValidateConfig = (*jobsetResource)(nil)
)

func (*jobsetResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName
}

// ValidateConfig checks offline what the JobSet and Kueue webhooks would, as
// far as values are known.
func (r *jobsetResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec, unknown := m.spec(ctx, "", &resp.Diagnostics)
	m.neverEnds(spec, &resp.Diagnostics)
	for _, e := range training.FieldErrors(spec.Validate()) {
		steps := strings.Split(e.Field, ".")
		if unknown[steps[0]] || e.Field == "slices" && m.Slices.ValueInt64() < 1 {
			continue // not known yet, or the attribute's own validator says so
		}
		at := path.Root(steps[0])
		for _, step := range steps[1:] {
			at = at.AtName(step)
		}
		resp.Diagnostics.AddAttributeError(at, "Invalid "+strings.ReplaceAll(steps[len(steps)-1], "_", " "), fmt.Sprintf("Job %s: %s.", spec.Name, e.Problem))
	}
}

// neverEnds refuses to wait for the end of a job that has none.
func (m model) neverEnds(s training.Spec, diags *diag.Diagnostics) {
	if s.Pathways != nil && s.Pathways.Headless && s.MaxRunTime == nil && !m.MaxRunTime.IsUnknown() && m.WaitFor.ValueString() == string(training.LevelCompleted) {
		diags.AddAttributeError(path.Root("wait_for"), "Invalid wait for", fmt.Sprintf("Job %s: a headless job runs until it is deleted, and its end would be waited for in vain: wait until it is running, or set max_run_time.", s.Name))
	}
}

// ModifyPlan shows the id and run id already in the plan, when they can be
// known, keeps the result of a job that has finished, and says why a job would be
// run anew.
func (r *jobsetResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.RunID.IsUnknown() && !m.Name.IsUnknown() {
		m.RunID = m.Name
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("run_id"), m.Name)...)
	}
	if m.Proxy.IsUnknown() {
		m.Proxy = m.proxyAddress()
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("proxy_address"), m.Proxy)...)
	}
	if req.State.Raw.IsNull() {
		return
	}
	var had model
	resp.Diagnostics.Append(req.State.Get(ctx, &had)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.Equal(req.State.Raw) {
		// Nothing changes; but what an interrupt left undone is done.
		if waiting(ctx, req.Private, &resp.Diagnostics) && !had.finished() && !had.level().Reached(training.State(had.Status.ValueString())) {
			m.awaited()
			resp.Diagnostics.Append(resp.Plan.Set(ctx, &m)...)
		}
		return
	}
	why := strings.Join(m.replaces(ctx, had), ", ")
	switch {
	case why == "" && had.finished():
		m.keep(had)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &m)...)
	case why == "":
	case !had.finished():
		resp.Diagnostics.AddWarning("A job that has not finished will be replaced", fmt.Sprintf(
			"Job %s is %s. A job cannot change what it runs: the change of %s deletes it and starts a new one from the beginning, or from its last checkpoint if the program finds it.",
			had.Name.ValueString(), had.Status.ValueString(), why))
	default:
		resp.Diagnostics.AddWarning("A job that has ended will be run again", fmt.Sprintf(
			"Job %s is %s. The change of %s deletes what is left of it and runs a new one.",
			had.Name.ValueString(), had.Status.ValueString(), why))
	}
}

// ImportState reads cluster, namespace and name out of the id; Read does the
// rest.
func (*jobsetResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, names, err := conn.ParseID(req.ID, "namespaces", "jobsets")
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Invalid import id", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("namespace"), names[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), names[1])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), req.ID)...)
}
