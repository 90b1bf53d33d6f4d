// Package cluster is the resource tpu_training_cluster: a GKE cluster fit for
// TPU training. It translates between Terraform and internal/gke, which does
// the work; it knows no other resource.
package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/private"
)

// Default timeouts.
const (
	createTimeout = 40 * time.Minute
	updateTimeout = 60 * time.Minute
	deleteTimeout = 40 * time.Minute
)

// Statuses that decide something; GKE's own names.
const (
	statusProvisioning = "PROVISIONING"
	statusRunning      = "RUNNING"
	statusError        = "ERROR"
	statusStopping     = "STOPPING"
)

// Resource is tpu_training_cluster.
type Resource struct {
	data *conn.Data
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
)

// NewResource makes the resource.
func NewResource() resource.Resource { return &Resource{} }

// Metadata implements resource.Resource.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_training_cluster"
}

// Configure implements resource.ResourceWithConfigure.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

// wanted is what a configuration asks for, at apply, when all of it is known.
// The plan gets what it left to the provider.
func (r *Resource) wanted(ctx context.Context, config model, plan *model, diags *diag.Diagnostics) gke.TrainingCluster {
	r.derive(config, plan, diags)
	t := spec(ctx, config, plan.clusterName(), r.data.Owner, diags)
	t.ResourceLabels, _ = knownMap(plan.EffectiveLabels)
	return t
}

// Create implements resource.Resource.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m, config model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	timeout, d := m.Timeouts.Create(ctx, createTimeout)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec := r.wanted(ctx, config, &m, &resp.Diagnostics)
	spec.Object = private.NewObject()
	resp.Diagnostics.Append(private.Set(ctx, resp.Private, private.Object, spec.Object)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer r.data.Forget(spec.Name)
	defer r.data.Coming.Done(spec.Name.String())
	found, adopted, err := r.data.GKE.CreateTrainingCluster(ctx, spec)
	if adopted && err == nil {
		resp.Diagnostics.AddWarning("Cluster "+spec.Name.Cluster+" is taken over",
			gke.TakenOver("cluster "+spec.Name.Cluster, spec.Owner))
		// What the earlier run asked for may differ in what can change in place.
		if err = r.data.GKE.UpdateTrainingCluster(ctx, spec, nil); err == nil {
			found, err = r.data.GKE.GetCluster(ctx, spec.Name)
		}
	}
	if found != nil {
		m.complete(ctx, found, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
	switch {
	case err == nil:
	case found != nil && (errors.Is(err, gke.Interrupted) || errors.Is(err, gke.TimedOut)):
		// No error: that would taint a cluster that GKE is still making well.
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, takingKey, adopted)...)
		resp.Diagnostics.AddWarning("Cluster "+spec.Name.Cluster+" is not ready yet",
			err.Error()+"\nGKE goes on making it. The next plan shows an update, and the next apply waits for it.")
	default:
		resp.Diagnostics.AddError("Could not create cluster "+spec.Name.Cluster, err.Error())
	}
}

// Read implements resource.Resource. It never waits.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	n, err := gke.ParseClusterName(m.ID.ValueString())
	if err != nil {
		resp.Diagnostics.AddError("Invalid state", err.Error())
		return
	}
	found, err := r.data.GKE.GetCluster(ctx, n)
	if errors.Is(err, gke.NotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("Could not read cluster "+n.Cluster, err.Error())
		return
	}
	importing := m.CPUPools.IsNull()
	if importing {
		if found.GetAutopilot().GetEnabled() {
			resp.Diagnostics.AddError("Cluster "+n.Cluster+" cannot be managed here",
				n.String()+" is an Autopilot cluster, whose nodes are GKE's alone: it takes neither cpu_pools nor slice pools. The data source tpu_training_cluster reads it.")
			return
		}
		if resp.Private != nil { // a list has none
			resp.Diagnostics.Append(private.Set(ctx, resp.Private, private.Object, gke.OwnershipOf(found.GetResourceLabels()).Object)...)
		}
		m.imported(ctx, n, found, r.data.DefaultLabels, &resp.Diagnostics)
	} else {
		m.refresh(ctx, found, r.data.Owner, &resp.Diagnostics)
	}
	if resp.Private != nil {
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, foreignKey, gke.ForeignPools(found))...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update implements resource.Resource.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, config, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, d := m.Timeouts.Update(ctx, updateTimeout)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec := r.wanted(ctx, config, &m, &resp.Diagnostics)
	object, d := private.Get[string](ctx, req.Private, private.Object)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec.Object = object
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer r.data.Coming.Done(spec.Name.String())
	defer r.data.Forget(spec.Name) // control_plane may have another address now
	err := r.data.GKE.UpdateTrainingCluster(ctx, spec, state.ownedPools())
	if err == nil {
		found, getErr := r.data.GKE.GetCluster(ctx, spec.Name)
		if err = getErr; err == nil {
			m.complete(ctx, found, &resp.Diagnostics)
			resp.Diagnostics.Append(private.Set(ctx, resp.Private, takingKey, false)...)
			resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		}
	}
	if err != nil {
		// The state stays as it was; the next refresh finds out how far this came.
		resp.Diagnostics.AddError("Could not update cluster "+spec.Name.Cluster, err.Error())
	}
}

// Delete implements resource.Resource.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	timeout, d := m.Timeouts.Delete(ctx, deleteTimeout)
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	n, err := gke.ParseClusterName(m.ID.ValueString())
	if err != nil {
		resp.Diagnostics.AddError("Invalid state", err.Error())
		return
	}
	if m.protected() { // ModifyPlan says so earlier; a replacement by taint gets here
		resp.Diagnostics.AddError("Cluster "+n.Cluster+" is protected from deletion",
			"Its deletion_protection is true. Set deletion_protection = false, apply, and then destroy.")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	object, d := private.Get[string](ctx, req.Private, private.Object)
	resp.Diagnostics.Append(d...)
	if r.taken(ctx, n, object, &resp.Diagnostics) || resp.Diagnostics.HasError() {
		return
	}
	if r.guard(ctx, n, m, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	defer r.data.Forget(n)
	if err := r.data.GKE.DeleteCluster(ctx, n); err != nil {
		resp.Diagnostics.AddError("Could not delete cluster "+n.Cluster, err.Error())
	}
}

// ImportState implements resource.ResourceWithImportState. The id is the
// cluster's path.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	n, err := gke.ParseClusterName(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), n.String())...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("deletion_protection"), types.BoolValue(true))...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("force"), types.BoolValue(false))...)
}
