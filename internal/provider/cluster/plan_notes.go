package cluster

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// announce notes for others of this run (tpu_cluster_credentials) that the
// cluster is going to be made, or to be finished.
func (r *Resource) announce(state *model, plan model) {
	if r.data == nil || plan.ID.IsUnknown() {
		return
	}
	if state == nil || state.Status.ValueString() == statusProvisioning {
		r.data.Coming.Add(plan.ID.ValueString())
	}
}

// dropped warns of fields that cluster_overrides sets no more: that changes
// nothing of the cluster.
func dropped(state, plan model, diags *diag.Diagnostics) {
	if plan.Overrides.IsUnknown() {
		return
	}
	names := gke.TrainingCluster{Overrides: plan.Overrides.ValueString()}.DroppedOverrides(gke.TrainingCluster{Overrides: state.Overrides.ValueString()})
	if len(names) == 0 {
		return
	}
	list := strings.Join(names, ", ")
	diags.AddAttributeWarning(path.Root("cluster_overrides"), "GKE keeps "+list,
		fmt.Sprintf("cluster_overrides does not set %s any more. Of cluster %s that stays as GKE has it, and nothing looks at it from now on. "+
			"To turn it back, set it to the value it should have, apply, and take it out then.", list, state.Name.ValueString()))
}
