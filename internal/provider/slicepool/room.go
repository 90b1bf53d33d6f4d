package slicepool

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// grows tells whether a plan makes node pools that are not there, or others, or
// asks for what the cluster may not allow.
func grows(state *model, plan model) bool {
	return state == nil || plan.SliceCount.ValueInt64() > state.SliceCount.ValueInt64() || !plan.Node.Equal(state.Node) || !plan.Overrides.Equal(state.Overrides) ||
		!plan.Version.Equal(state.Version) || !plan.Management.Equal(state.Management) ||
		!plan.Topology.Equal(state.Topology) || !plan.Zone.Equal(state.Zone) || !plan.Cluster.Equal(state.Cluster)
}

// checkRoom refuses what does not fit into the cluster, and warns of what may
// not fit.
func (r *Resource) checkRoom(ctx context.Context, p gke.SlicePool, diags *diag.Diagnostics) {
	if r.data == nil || r.data.GKE == nil || r.data.Partial {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, planAsks)
	defer cancel()
	warnings, err := r.data.GKE.CheckRoom(ctx, p)
	for _, w := range warnings {
		diags.AddWarning("Slice pool "+p.Name+" may not fit", w)
	}
	if err != nil {
		diags.AddError("Slice pool "+p.Name+" does not fit into its cluster", err.Error()+".")
	}
}

// moves tells whether the plan makes a pool where there was none of its kind.
func moves(state *model, plan model) bool {
	return state == nil || !plan.Zone.Equal(state.Zone) || !plan.Accelerator.Equal(state.Accelerator) || !plan.Cluster.Equal(state.Cluster)
}

// warnOfZone tells of a zone that is not in Google's documentation for the
// generation. Google adds zones without notice, so it is no error.
func warnOfZone(p gke.SlicePool, diags *diag.Diagnostics) {
	c := p.Shape.Describe().Capacity
	if offered, known := c.Offered(p.Zone); offered || !known || p.Zone == "" {
		return
	}
	diags.AddAttributeWarning(path.Root("zone"), fmt.Sprintf("%s may not be offered in %s", p.Shape.Generation, p.Zone),
		fmt.Sprintf("Google's documentation of %s names these zones: %s. If the zone is new, ignore this; otherwise GKE will refuse the pool. See: gcloud compute machine-types list --filter=\"name=%s\" --project %s",
			c.AsOf, strings.Join(c.Zones, ", "), p.Shape.MachineType, p.Cluster.Project))
}
