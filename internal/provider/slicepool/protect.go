package slicepool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// busyTimeout is how long the cluster may take to say what runs on it.
const busyTimeout = 20 * time.Second

// busy asks the cluster which slices run jobs, or takes an answer to a question
// that was asked at most age ago.
func (r *Resource) busy(cluster gke.ClusterName, age time.Duration) gke.Busy {
	return func(ctx context.Context) (map[string][]string, error) {
		ctx, cancel := context.WithTimeout(ctx, busyTimeout)
		defer cancel()
		uses, err := r.data.Occupancy(ctx, cluster.String(), age)
		if err != nil {
			return nil, err
		}
		jobs := map[string][]string{}
		for pool, use := range uses {
			for _, o := range use.Jobs {
				jobs[pool] = append(jobs[pool], o.String())
			}
		}
		return jobs, nil
	}
}

// protect refuses to delete or replace a protected pool.
func protect(state model, why path.Paths, diags *diag.Diagnostics) {
	if !state.DeletionProtection.ValueBool() {
		return
	}
	if len(why) == 0 {
		diags.AddError("Slice pool "+state.Name.ValueString()+" is protected from deletion",
			"Its deletion_protection is true. To delete it with everything that runs on it, set deletion_protection = false, apply, and then destroy.")
		return
	}
	diags.AddAttributeError(why[0], "Slice pool "+state.Name.ValueString()+" is protected from replacement",
		fmt.Sprintf("The change of %s needs new slices, which would remove all %d of this pool with everything that runs on them, and its deletion_protection is true. "+
			"Undo the change, or set deletion_protection = false and apply before it.", why[0], len(state.Slices.Elements())))
}

const (
	// planAsks is how long a plan waits for a cluster that may be out of its reach.
	planAsks = 5 * time.Second
	// planShares is for how long the pools of one plan share the answer.
	planShares = time.Minute
)

// warnOfJobs names the jobs that a deletion or replacement would kill. A cluster
// that does not answer is no reason to stop a plan.
func (r *Resource) warnOfJobs(ctx context.Context, state model, what string, diags *diag.Diagnostics) {
	cluster, err := gke.ParseClusterName(state.Cluster.ValueString())
	if r.data == nil || r.data.Clusters == nil || err != nil || len(state.Slices.Elements()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, planAsks)
	defer cancel()
	jobs, err := r.busy(cluster, planShares)(ctx)
	if err != nil {
		return
	}
	running := map[string]bool{}
	for _, name := range state.known() {
		for _, j := range jobs[name] {
			running[j] = true
		}
	}
	if len(running) > 0 {
		diags.AddWarning(fmt.Sprintf("%s slice pool %s kills running jobs", what, state.Name.ValueString()),
			strings.Join(slices.Sorted(maps.Keys(running)), "\n"))
	}
}
