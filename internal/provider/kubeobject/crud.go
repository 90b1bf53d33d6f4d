package kubeobject

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// Create implements resource.Resource.
func (r *object[M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := P(&m).Base().Timeouts.Create(ctx, r.kind.Wait)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.write(ctx, &m, nil, &resp.State, &resp.Diagnostics)
}

// Update implements resource.Resource.
func (r *object[M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var before, m M
	resp.Diagnostics.Append(req.State.Get(ctx, &before)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := P(&m).Base().Timeouts.Update(ctx, r.kind.Wait)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.write(ctx, &m, &before, &resp.State, &resp.Diagnostics)
}

func (r *object[M, P]) write(ctx context.Context, m P, before *M, state *tfsdk.State, diags *diag.Diagnostics) {
	if m.Check(ctx, diags); diags.HasError() {
		return
	}
	k, err := r.MustReach(ctx, m.Base().Cluster.ValueString())
	if err != nil {
		conn.AddError(diags, "Cannot reach the cluster", err)
		return
	}
	m.Base().ID = types.StringValue(r.id(m))
	w := &Writer[M]{Client: k, Before: before, Diags: diags, child: &r.Child, kind: r.kind, id: r.id(m),
		save: func() { diags.Append(state.Set(ctx, m)...) }}
	if err := m.Write(ctx, w); err != nil {
		verb := "create "
		if before != nil || w.made {
			verb = "apply "
		}
		conn.AddError(diags, "Cannot "+verb+r.called(m), conn.NeedsControllers(err))
		return
	}
	w.save()
}

// Read implements resource.Resource. What is gone, or going, leaves the state,
// and so does what was on a cluster that is gone.
func (r *object[M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model M
	m := P(&model)
	resp.Diagnostics.Append(req.State.Get(ctx, m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cluster := m.Base().Cluster.ValueString()
	k, gone, err := r.Reach(ctx, cluster)
	found := false
	if err == nil && !gone {
		found, err = m.Read(ctx, k, &resp.Diagnostics)
	}
	switch {
	case err != nil && r.Data != nil && r.Data.Gone(ctx, cluster, err), err == nil && !found:
		resp.State.RemoveResource(ctx)
	case err != nil:
		conn.AddError(&resp.Diagnostics, "Cannot read "+r.called(m), err)
	default:
		m.Base().ID = types.StringValue(r.id(m))
		resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	}
}

// Delete implements resource.Resource.
func (r *object[M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model M
	m := P(&model)
	resp.Diagnostics.Append(req.State.Get(ctx, m)...)
	limit, diags := m.Base().Timeouts.Delete(ctx, r.kind.WaitDelete)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cluster := m.Base().Cluster.ValueString()
	k, gone, err := r.Reach(ctx, cluster)
	if gone {
		return
	}
	if err == nil {
		err = m.Remove(ctx, k, &resp.Diagnostics)
	}
	if err != nil && !(r.Data != nil && r.Data.Gone(asked, cluster, err)) {
		conn.AddDeleteError(&resp.Diagnostics, r.called(m), err)
	}
}
