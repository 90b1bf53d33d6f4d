// Package slicepool is the resource tpu_slice_pool: N equal TPU slices, each of
// which is one GKE node pool. It translates between Terraform and
// internal/gke, which does the work; it knows no other resource.
package slicepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/private"
)

// Resource is tpu_slice_pool.
type Resource struct {
	data *conn.Data
}

var (
	_ resource.ResourceWithConfigure   = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan  = (*Resource)(nil)
	_ resource.ResourceWithImportState = (*Resource)(nil)
)

// NewResource makes the resource.
func NewResource() resource.Resource { return &Resource{} }

// Metadata implements resource.Resource.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_slice_pool"
}

// Configure implements resource.ResourceWithConfigure.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

// Create implements resource.Resource.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	timeout, d := m.Timeouts.Create(ctx, m.defaultTimeout(applyTimeout))
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.settle(&m)
	end := r.claimCreation(ctx, m, &resp.Diagnostics)
	if end == nil {
		return
	}
	object := private.NewObject()
	operations, keep := r.apply(ctx, timeout, &m, nil, object, nil, gke.SlicePoolRun{}, &resp.Diagnostics)
	end(keep)
	if keep {
		r.raise(ctx, m, &resp.Diagnostics)
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, ownersKey, []string{r.data.Owner})...)
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, private.Object, object)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, operationsKey, operations)...)
	}
}

// Update implements resource.Resource.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, d := m.Timeouts.Update(ctx, m.defaultTimeout(applyTimeout))
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	running, d := private.Get[map[string]string](ctx, req.Private, operationsKey)
	resp.Diagnostics.Append(d...)
	owners, d := private.Get[[]string](ctx, req.Private, ownersKey)
	resp.Diagnostics.Append(d...)
	object, d := private.Get[string](ctx, req.Private, private.Object)
	resp.Diagnostics.Append(d...)
	waiting, d := private.Get[[]string](ctx, req.Private, removedKey)
	resp.Diagnostics.Append(d...)
	var broken diag.Diagnostics // apply says what is wrong with the plan
	gone := removed(state.spec(ctx, "", &broken), m.spec(ctx, "", &broken), waiting)
	r.lowerForUpdate(ctx, m, state, &resp.Diagnostics)
	run := gke.SlicePoolRun{Known: state.known(), Owners: owners, Operations: running}
	if operations, keep := r.apply(ctx, timeout, &m, &state, object, gone, run, &resp.Diagnostics); keep {
		if m.Status.ValueString() == gke.PoolReady && !resp.Diagnostics.HasError() {
			gone = nil // every slice has the defaults
		}
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, ownersKey, r.ownersAfter(m, owners))...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, operationsKey, operations)...)
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, removedKey, gone)...)
	}
}

// apply makes GKE be what m says, with the defaults of the settings that are
// gone from it and the id of the object, and fills in the results. It returns the
// operations that go on in GKE, and whether there is something to keep in state.
func (r *Resource) apply(ctx context.Context, timeout time.Duration, m, state *model, object string, gone []string, run gke.SlicePoolRun, diags *diag.Diagnostics) (operations map[string]string, keep bool) {
	r.settle(m)
	spec := m.spec(ctx, r.data.Owner, diags)
	spec.Object = object
	if diags.HasError() {
		return nil, false
	}
	run.Busy = r.busy(spec.Cluster, 0)
	if state != nil {
		restore(&spec, gone)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if !r.place(ctx, m, state, spec, diags) {
		return nil, false
	}
	res, err := r.data.GKE.ApplySlicePool(ctx, spec, run)
	if err != nil {
		what := "create"
		if state != nil {
			what = "update"
		}
		problem(diags, fmt.Sprintf("Could not %s slice pool %s", what, spec.Name), err)
		if state == nil {
			r.unplace(ctx, m, spec, diags)
		}
		return nil, false
	}
	m.setSlices(res.Slices)
	report(diags, spec, res, state != nil)
	return res.Operations, true
}

// settle fills in what the plan could not know because the cluster was not
// known then.
func (r *Resource) settle(m *model) {
	cluster, err := gke.ParseClusterName(m.Cluster.ValueString())
	if err != nil {
		return // spec reports it
	}
	plan := *m
	if plan.Zone.IsUnknown() && cluster.Zonal() {
		m.Zone = stringValue(cluster.Location)
	}
	m.ID = stringValue(cluster.NodePool(m.Name.ValueString()))
	if m.EffectiveLabels.IsUnknown() {
		own, _ := knownMap(m.ResourceLabels)
		m.EffectiveLabels = stringMap(r.data.Labels(own))
	}
	if s, ok, err := shape(m.Accelerator, knownOrNull(m.Topology), knownOrNull(m.MachineType)); ok && err == nil {
		m.setShape(s)
	}
	m.settlePolicy()
}

// Read implements resource.Resource. It never waits, and never fails because
// of a status: status is data.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, err := r.ref(m)
	if err != nil {
		resp.Diagnostics.AddError("Invalid state", err.Error())
		return
	}
	importing := m.Status.IsNull() // or moved here: then the slice is known
	ref.Any = m.Slices.IsNull()
	owners, d := private.Get[[]string](ctx, req.Private, ownersKey)
	resp.Diagnostics.Append(d...)
	ref.Owners = owners
	object, d := private.Get[string](ctx, req.Private, private.Object)
	resp.Diagnostics.Append(d...)
	info, err := r.data.GKE.ReadSlicePool(ctx, ref)
	none := errors.Is(err, gke.NotFound) || err == nil && len(info.Slices) == 0 && m.SliceCount.ValueInt64() > 0
	switch {
	case importing && ref.Any && (errors.Is(err, gke.NotFound) || err == nil && len(info.Slices) == 0):
		nothingToImport(ref, err, &resp.Diagnostics)
		return
	case none && !importing && r.holdsPolicy(ctx, &m, &resp.Diagnostics):
		// Nothing of the pool is left but what places its slices.
	case errors.Is(err, gke.NotFound):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		problem(&resp.Diagnostics, "Could not read slice pool "+ref.Name, err)
		return
	case len(info.Slices) == 0 && (importing || m.SliceCount.ValueInt64() > 0):
		resp.State.RemoveResource(ctx)
		return
	}
	if importing {
		if err := info.Alike(); ref.Any && err != nil {
			resp.Diagnostics.AddError("Could not import slice pool "+ref.Name,
				err.Error()+".\nGive the ones that differ another name, which takes new node pools, or keep them out of Terraform.")
			return
		}
		if resp.Private != nil { // a list has none
			resp.Diagnostics.Append(private.Set(ctx, resp.Private, private.Object, info.Object)...)
		}
		m.imported(info, r.data.DefaultLabels)
	} else if len(info.Slices) > 0 {
		gone, d := private.Get[[]string](ctx, req.Private, removedKey)
		resp.Diagnostics.Append(d...)
		want := m.spec(ctx, r.ownerNow(owners), &resp.Diagnostics)
		want.Object = object
		restore(&want, gone)
		info.Compare(want)
		m.refresh(ctx, info, &resp.Diagnostics)
	}
	if owners == nil && len(info.Slices) > 0 && resp.Private != nil { // a list has no private state
		resp.Diagnostics.Append(private.Set(ctx, resp.Private, ownersKey, info.Owners())...)
	}
	m.setSlices(info.Slices)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// ref names the pool's own node pools.
func (r *Resource) ref(m model) (gke.SlicePoolRef, error) {
	cluster, err := gke.ParseClusterName(m.Cluster.ValueString())
	topology := func(ctx context.Context, policy string) (string, error) {
		if policy == m.PlacementPolicy.ValueString() && m.Topology.ValueString() != "" {
			return m.Topology.ValueString(), nil
		}
		return r.data.Topology(cluster)(ctx, policy)
	}
	return gke.SlicePoolRef{Cluster: cluster, Name: m.Name.ValueString(), Owner: r.data.Owner, Known: m.known(), Topology: topology}, err
}

// Delete implements resource.Resource.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	timeout, d := m.Timeouts.Delete(ctx, m.defaultTimeout(deleteTimeout))
	resp.Diagnostics.Append(d...)
	if resp.Diagnostics.HasError() {
		return
	}
	ref, err := r.ref(m)
	if err != nil {
		resp.Diagnostics.AddError("Invalid state", err.Error())
		return
	}
	ref.Owners, d = private.Get[[]string](ctx, req.Private, ownersKey)
	resp.Diagnostics.Append(d...)
	ref.Object, d = private.Get[string](ctx, req.Private, private.Object)
	resp.Diagnostics.Append(d...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end := r.claimDeletion(ctx, m, &resp.Diagnostics)
	if end == nil {
		return
	}
	defer end()
	r.lowerForDelete(ctx, m, &resp.Diagnostics)
	left, taken, err := r.data.GKE.DeleteSlicePool(ctx, ref)
	if err != nil {
		problem(&resp.Diagnostics, fmt.Sprintf("Could not delete slice pool %s, %d of its slices are left", ref.Name, len(left)), err)
		return
	}
	if len(taken) > 0 { // and so is the policy that places them
		warnOfTaken(ref, taken, &resp.Diagnostics)
		return
	}
	r.removePolicy(ctx, &m, &resp.Diagnostics)
}

// ImportState implements resource.ResourceWithImportState. The id is
// CLUSTER_PATH/nodePools/NAME.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, name, err := gke.ParseNodePoolName(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", err.Error()+", with the name of the slice pool, without an index.")
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), cluster.NodePool(name))...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster.String())...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
}

// nothingToImport says what an import looked for, where Terraform itself would
// say only that there is nothing.
func nothingToImport(ref gke.SlicePoolRef, err error, diags *diag.Diagnostics) {
	detail := fmt.Sprintf("Cluster %s has no TPU node pool called %s-0, %[2]s-1 and so on, which is what the slices of a pool %[2]s are called. "+
		"A node pool without TPUs, or of another name, is not part of a slice pool.", ref.Cluster, ref.Name)
	if errors.Is(err, gke.NotFound) {
		detail = fmt.Sprintf("There is no cluster %s.", ref.Cluster)
	} else if m := indexed.FindStringSubmatch(ref.Name); m != nil {
		detail += fmt.Sprintf(" If %s is one slice, import its whole pool, by the name without the index: %s", ref.Name, ref.Cluster.NodePool(m[1]))
	}
	diags.AddError("No slice pool "+ref.Name+" to import", detail)
}
