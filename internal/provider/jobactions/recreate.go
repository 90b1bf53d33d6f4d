package jobactions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// NewRecreate is the action tpu_recreate_slice.
func NewRecreate() action.Action { return &recreate{} }

type recreate struct{ configured }

var _ action.ActionWithConfigure = (*recreate)(nil)

type recreateModel struct {
	Cluster types.String `tfsdk:"cluster"`
	Slice   types.String `tfsdk:"slice"`
	Force   types.Bool   `tfsdk:"force"`
}

// Metadata implements action.Action.
func (*recreate) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_recreate_slice"
}

// Schema implements action.Action.
func (*recreate) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Deletes the node pool of one slice and makes it again as it was, also in state ERROR: the next plan of its slice pool is empty. A slice that runs a job is refused without `force`. " +
			"Between the two the machines go back to Google: where capacity is scarce, the slice may not come back soon.",
		Attributes: map[string]schema.Attribute{
			"cluster": schema.StringAttribute{Required: true, MarkdownDescription: "The cluster: the `id` of a `tpu_training_cluster`.", Validators: []validator.String{attr.ClusterPath()}},
			"slice": schema.StringAttribute{Required: true, MarkdownDescription: "The slice: the name of its node pool, `node_pool` of one of the `slices` of its `tpu_slice_pool`.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
			"force": schema.BoolAttribute{Optional: true, MarkdownDescription: "Also when it runs a job, which ends it there, or when that is not known (default false)."},
		},
	}
}

// Invoke implements action.Action.
func (a *recreate) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m recreateModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name, err := gke.ParseClusterName(m.Cluster.ValueString())
	if err == nil && a.data == nil {
		err = errors.New("the provider is not configured")
	}
	if err == nil {
		err = a.run(ctx, name, m, func(text string) { resp.SendProgress(action.InvokeProgressEvent{Message: text}) })
	}
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Cannot recreate slice "+m.Slice.ValueString(), err)
	}
}

func (a *recreate) run(ctx context.Context, cluster gke.ClusterName, m recreateModel, say func(string)) error {
	np, err := a.data.GKE.SliceNodePool(ctx, cluster, m.Slice.ValueString())
	if err == nil {
		err = gke.MayRecreateSlice(cluster, np)
	}
	if err != nil {
		return err
	}
	if err := a.idle(ctx, cluster, m, say); err != nil {
		return err
	}
	say(np.GetName() + ": deleting")
	if err := a.data.GKE.RecreateSlice(ctx, cluster, np, func() { say(np.GetName() + ": deleted, making it again") }); err != nil {
		return fmt.Errorf("%w\nNothing is lost: the next apply of its slice pool makes what is missing", err)
	}
	say(np.GetName() + ": ready")
	return nil
}

// idle refuses a slice that runs a job, unless it is forced.
func (a *recreate) idle(ctx context.Context, cluster gke.ClusterName, m recreateModel, say func(string)) error {
	k, err := a.data.Cluster(ctx, cluster.String())
	var uses map[string]training.PoolUse
	if err == nil {
		uses, err = training.Occupancy(ctx, k)
	}
	if err != nil && !m.Force.ValueBool() {
		return fmt.Errorf("whether the slice runs a job is not known, and nothing was done (force = true recreates it all the same): %w", err)
	}
	var jobs []string
	for _, j := range uses[m.Slice.ValueString()].Jobs {
		jobs = append(jobs, j.String())
	}
	switch {
	case len(jobs) > 0 && !m.Force.ValueBool():
		return fmt.Errorf("it runs %s, which recreating it ends there; nothing was done. Wait for the end of the job, or set force = true", strings.Join(jobs, ", "))
	case len(jobs) > 0:
		say(m.Slice.ValueString() + ": ends " + strings.Join(jobs, ", ") + " there")
	}
	return nil
}
