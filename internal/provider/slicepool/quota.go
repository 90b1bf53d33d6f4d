package slicepool

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// lowerForUpdate takes the quotas of the queues that follow the pool down to
// what will be left of it, before it shrinks. Terraform changes a queue only
// after the pool that it refers to; until then Kueue would admit jobs to slices
// that are going. A cluster that does not answer is no reason to keep slices:
// what runs on them is asked for anyway before one goes.
func (r *Resource) lowerForUpdate(ctx context.Context, m, state model, diags *diag.Diagnostics) {
	left := m.SliceCount.ValueInt64()
	if left >= max(state.SliceCount.ValueInt64(), int64(len(state.Slices.Elements()))) {
		return
	}
	if err := r.lower(ctx, state, left); err != nil && !(kube.Unreachable(err) && !m.Force.ValueBool()) {
		diags.AddWarning(fmt.Sprintf("Slice pool %s shrinks before the quotas that follow it", m.Name.ValueString()),
			err.Error()+"\n\nUntil the queues of the pool are applied, Kueue may admit jobs to slices that are going.")
	}
}

// lowerForDelete is the same before the pool goes altogether. A queue stays
// where the pool is replaced, or leaves the configuration alone.
func (r *Resource) lowerForDelete(ctx context.Context, state model, diags *diag.Diagnostics) {
	err := r.lower(ctx, state, 0)
	if err == nil || kube.Unreachable(err) || errors.Is(err, gke.NotFound) {
		return
	}
	diags.AddWarning(fmt.Sprintf("Slice pool %s goes before the quotas that follow it", state.Name.ValueString()),
		err.Error()+"\n\nUntil the queues of the pool are applied or deleted, Kueue may admit jobs to slices that are not there.")
}

func (r *Resource) lower(ctx context.Context, state model, left int64) error {
	if r.data.Clusters == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	k, err := r.data.Cluster(ctx, state.Cluster.ValueString())
	if err != nil {
		return err
	}
	lowered, err := queue.Lower(ctx, k, state.ID.ValueString(), left, state.ChipsPerSlice.ValueInt64())
	if left == 0 {
		r.data.Shares.Lower(samePool(state), lowered)
	}
	return err
}

// raise puts the quotas back that this run has lowered before it deleted the
// very same pool. Terraform does not: nothing that the queues refer to has
// changed. What was not put back is drift of the queue in the next plan.
func (r *Resource) raise(ctx context.Context, m model, diags *diag.Diagnostics) {
	lowered := r.data.Shares.Lowered(samePool(m))
	if len(lowered) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	k, err := r.data.Cluster(ctx, m.Cluster.ValueString())
	if err == nil {
		err = queue.Raise(ctx, k, lowered)
	}
	if err != nil {
		diags.AddWarning(fmt.Sprintf("Quotas that follow slice pool %s are still lowered", m.Name.ValueString()),
			err.Error()+"\n\nThey were lowered before the pool was replaced. Apply again: the plan shows the queues with their quotas.")
	}
}

// samePool is a pool by its name and by what its queues refer to.
func samePool(m model) string {
	return fmt.Sprintf("%s %s %d x %d", m.ID.ValueString(), m.Accelerator.ValueString(), m.SliceCount.ValueInt64(), m.ChipsPerSlice.ValueInt64())
}
