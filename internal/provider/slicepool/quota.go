package slicepool

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// lowerQuotas takes the quotas of the queues that follow the pool down to what
// will be left of it, before it shrinks. Terraform changes a queue only after
// the pool that it refers to; until then Kueue would admit jobs to slices that
// are going. A cluster that does not answer is no reason to keep slices: what
// runs on them is asked for anyway before one goes.
func (r *Resource) lowerQuotas(ctx context.Context, m, state model, diags *diag.Diagnostics) {
	if r.data.Clusters == nil || m.SliceCount.ValueInt64() >= max(state.SliceCount.ValueInt64(), int64(len(state.Slices.Elements()))) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	k, err := r.data.Cluster(ctx, m.Cluster.ValueString())
	if err == nil {
		_, err = queue.Lower(ctx, k, state.ID.ValueString(), m.SliceCount.ValueInt64()*state.ChipsPerSlice.ValueInt64())
	}
	if err == nil || kube.Unreachable(err) && !m.Force.ValueBool() {
		return
	}
	diags.AddWarning(fmt.Sprintf("Slice pool %s shrinks before the quotas that follow it", m.Name.ValueString()),
		err.Error()+"\n\nUntil the queues of the pool are applied, Kueue may admit jobs to slices that are going.")
}
