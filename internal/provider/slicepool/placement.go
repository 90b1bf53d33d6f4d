package slicepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/compute"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// Some generations' multi-host slices are placed by a workload policy of
// Compute Engine, which has to be there before the node pools and can go only
// after them. Unless the configuration names one, the pool has its own. Its
// name follows from the pool, so that whatever is interrupted or killed in
// between is found again.

// choosePolicy plans placement_policy. A pool that has one keeps it for as
// long as it keeps its shape, also one that the configuration named earlier or
// that was imported.
func (m *model) choosePolicy(config model, state *model) {
	if !config.PlacementPolicy.IsNull() {
		return
	}
	s, known, err := shape(config.Accelerator, config.Topology, config.MachineType)
	m.PlacementPolicy = types.StringUnknown()
	switch {
	case err != nil || !known:
	case s.Placement != accelerator.PlacementWorkloadPolicy:
		m.PlacementPolicy = types.StringNull()
	case state != nil && !state.PlacementPolicy.IsNull() && state.Topology.Equal(m.Topology) && state.Cluster.Equal(m.Cluster) && state.Name.Equal(m.Name):
		m.PlacementPolicy = state.PlacementPolicy
	default:
		if own, ok := m.ownPolicy("", s); ok {
			m.PlacementPolicy = types.StringValue(own.Name)
		}
	}
}

// ownPolicy is the policy that this pool makes for slices of a shape; false
// while its cluster or name is unknown.
func (m *model) ownPolicy(owner string, s accelerator.Slice) (compute.Policy, bool) {
	cluster, err := gke.ParseClusterName(m.Cluster.ValueString())
	if err != nil || m.Name.IsUnknown() {
		return compute.Policy{}, false
	}
	return compute.PolicyFor(compute.Owner{Config: owner, Cluster: cluster, Pool: m.Name.ValueString()}, s.Topology.String()), true
}

// settlePolicy fills in the name that the plan could not know.
func (m *model) settlePolicy() {
	if m.PlacementPolicy.IsUnknown() {
		m.choosePolicy(model{Accelerator: m.Accelerator, Topology: m.Topology, MachineType: m.MachineType}, nil)
	}
}

// place sees to it that the pool's own policy is there before its node pools.
// One that the configuration names is the user's, and is not looked at; nor is
// one of a pool that has all its slices: they hold it.
func (r *Resource) place(ctx context.Context, m, state *model, spec gke.SlicePool, diags *diag.Diagnostics) bool {
	own, ok := m.ownPolicy(spec.Owner, spec.Shape)
	if !ok || spec.Shape.Placement != accelerator.PlacementWorkloadPolicy || spec.PlacementPolicy != own.Name {
		return true
	}
	if spec.Count == 0 || state != nil && state.ReadySlices.ValueInt64() >= int64(spec.Count) {
		return true
	}
	err := r.data.Compute.EnsureWorkloadPolicy(ctx, own)
	if err == nil {
		return true
	}
	diags.AddError(fmt.Sprintf("Could not make the workload policy of slice pool %s", spec.Name), err.Error())
	if state == nil && (errors.Is(err, gke.Interrupted) || errors.Is(err, gke.TimedOut)) {
		r.unplace(ctx, m, spec, diags) // it may be there all the same
	}
	return false
}

// aftermath is how long clearing up may take after an interrupt: Terraform
// expects an answer soon.
const aftermath = 1200 * time.Millisecond

// unplace removes the policy of a pool whose creation left nothing to keep in
// state: nobody would remove it later.
func (r *Resource) unplace(ctx context.Context, m *model, spec gke.SlicePool, diags *diag.Diagnostics) {
	own, ok := m.ownPolicy(spec.Owner, spec.Shape)
	if !ok || spec.PlacementPolicy != own.Name {
		return
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), aftermath)
		defer cancel()
	}
	if _, err := r.data.Compute.DeleteWorkloadPolicy(ctx, own); err != nil {
		diags.AddWarning("A workload policy may be left",
			fmt.Sprintf("%s was made for slice pool %s. The next apply uses it again. To be rid of it: gcloud compute resource-policies delete %s --region %s --project %s\n\n%v",
				own.Name, spec.Name, own.Name, own.Region, own.Project, err))
	}
}

// statePolicy is the policy that a state names, if its pool may have made it.
func (r *Resource) statePolicy(m *model) (p compute.Policy, own, ok bool) {
	s, known, err := shape(m.Accelerator, m.Topology, m.MachineType)
	name := m.PlacementPolicy.ValueString()
	if name == "" || err != nil || !known {
		return compute.Policy{}, false, false
	}
	p, ok = m.ownPolicy(r.data.Owner, s)
	own, p.Name = p.Name == name, name
	return p, own, ok
}

// noAccess tells whether err says that the account may not use Compute Engine:
// it then did not make a policy either.
func noAccess(err error) bool {
	return errors.Is(err, gke.Permission) || errors.Is(err, gke.APINotEnabled)
}

// removePolicy removes the policy of a pool that is gone, if it was the pool's
// own.
func (r *Resource) removePolicy(ctx context.Context, m *model, diags *diag.Diagnostics) {
	p, own, ok := r.statePolicy(m)
	if !ok {
		return
	}
	kept, err := r.data.Compute.DeleteWorkloadPolicy(ctx, p)
	switch {
	case err != nil && (own || !noAccess(err)):
		diags.AddError(fmt.Sprintf("Could not remove the workload policy of slice pool %s", m.Name.ValueString()),
			err.Error()+"\n\nThe slices are gone. Destroy again to remove the policy.")
	case kept:
		diags.AddWarning(fmt.Sprintf("Workload policy %s stays", p.Name),
			"The slice pool it was made for is gone, and other instances use it. When they are gone too: gcloud compute resource-policies delete "+
				p.Name+" --region "+p.Region+" --project "+p.Project)
	}
}

// holdsPolicy tells whether a pool without slices still has its policy. Such a
// pool stays in state: the next apply makes its slices, or a destroy removes
// the policy.
func (r *Resource) holdsPolicy(ctx context.Context, m *model, diags *diag.Diagnostics) bool {
	p, own, ok := r.statePolicy(m)
	if !ok {
		return false
	}
	held, err := r.data.Compute.Owned(ctx, p)
	if err != nil && (own || !noAccess(err)) {
		diags.AddError("Could not read slice pool "+m.Name.ValueString(), err.Error())
		return true
	}
	return held
}
