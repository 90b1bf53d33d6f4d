package slicepool

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/private"
)

// Two resources with one cluster and name would both hold the same node pools,
// and the deletion of one would take the other's slices. What one run can know
// of that is decided here.

// plannedKey marks the private data of a plan that has a prior state. Terraform
// plans a replacement a second time, without the prior state but with this: it
// is how a replacement is told from a creation.
const plannedKey = "planned"

// claimPlan refuses a plan that gives a name to a second resource.
func (r *Resource) claimPlan(ctx context.Context, state *model, plan model, before, after private.State, diags *diag.Diagnostics) {
	if r.data == nil || plan.ID.IsUnknown() {
		return
	}
	what := conn.PlannedKept
	if state == nil {
		what = conn.PlannedNew
		data, d := before.GetKey(ctx, plannedKey)
		diags.Append(d...)
		if len(data) > 0 {
			return // the same resource, which has planned its replacement
		}
	} else {
		diags.Append(after.SetKey(ctx, plannedKey, []byte("true"))...)
	}
	switch other := r.data.Names.Plan(plan.ID.ValueString(), what); {
	case other == conn.PlannedNothing:
	case other == conn.PlannedNew || what == conn.PlannedNew:
		twoName(plan, diags)
	default: // made by an earlier version: what is there must stay changeable
		diags.AddWarning("Two resources name slice pool "+plan.Name.ValueString(),
			fmt.Sprintf("Two resources in the state have the id %s and manage the same node pools: deleting one of them deletes the other's slices. "+
				"Take one of them out of the state before you take it out of the configuration: terraform state rm ADDRESS", plan.ID.ValueString()))
	}
}

func twoName(m model, diags *diag.Diagnostics) {
	diags.AddError("Two resources name slice pool "+m.Name.ValueString(),
		fmt.Sprintf("Another resource of this configuration is %s too. Both would manage the same node pools, and deleting one would delete the other's slices. "+
			"Give each a name of its own; with count, name = \"%s${count.index}\" for example. If it is one resource that has got another address, say so in a moved block.",
			m.ID.ValueString(), m.Name.ValueString()))
}

// noTurn says that the run ended before it was this resource's turn. After an
// interrupt it may be that nobody held the name.
func noTurn(holder string, err error) string {
	if errors.Is(err, context.Canceled) {
		return "Interrupted before anything was asked of GKE. Apply again to go on."
	}
	return fmt.Sprintf("%s, and was waited for: %v. Apply again.", holder, err)
}

// claimCreation keeps a creation apart from others of the same name in this
// run. end must be called with whether the pool is kept in state; it is nil
// when the creation must not be.
func (r *Resource) claimCreation(ctx context.Context, m model, diags *diag.Diagnostics) (end func(kept bool)) {
	end, ok, err := r.data.Names.Make(ctx, m.ID.ValueString())
	switch {
	case err != nil:
		diags.AddError("Could not create slice pool "+m.Name.ValueString(), noTurn(fmt.Sprintf("Another resource of this run holds %s", m.ID.ValueString()), err))
		return nil
	case !ok:
		twoName(m, diags)
		return nil
	}
	return end
}

// claimDeletion is claimCreation for a deletion. What another resource of this
// run has made or taken over stays: end is nil, with a warning.
func (r *Resource) claimDeletion(ctx context.Context, m model, diags *diag.Diagnostics) (end func()) {
	end, ok, err := r.data.Names.Remove(ctx, m.ID.ValueString())
	switch {
	case err != nil:
		diags.AddError("Could not delete slice pool "+m.Name.ValueString(), noTurn(fmt.Sprintf("Another resource of this run makes %s", m.ID.ValueString()), err))
		return nil
	case !ok:
		diags.AddWarning("The node pools of slice pool "+m.Name.ValueString()+" stay",
			fmt.Sprintf("%s is only forgotten here: another object of this run, which was made before this one was deleted, has taken its node pools over. "+
				"They were not made again. If that was meant, take create_before_destroy off the resource, or use tpuctl slices recreate.", m.ID.ValueString()))
		return nil
	}
	return end
}
