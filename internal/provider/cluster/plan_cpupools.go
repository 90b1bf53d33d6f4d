package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// foreignKey is where private state keeps the names of the cluster's node pools
// that were not made as its CPU pools, as of the last refresh: a plan asks no
// API, and has to say what becomes of them.
const foreignKey = "foreign_pools"

// changesOfPools says what becomes of node pools that were not made as CPU
// pools: one that the state has and the plan has not is forgotten, and none can
// be made under the name of another.
func changesOfPools(state, plan model, foreign []string, diags *diag.Diagnostics) {
	if plan.CPUPools.IsUnknown() {
		return
	}
	before, after, n := state.ownedPools(), plan.ownedPools(), state.clusterName()
	var forgotten []string
	for _, name := range foreign {
		had, has := slices.Contains(before, name), slices.Contains(after, name)
		switch {
		case had && !has:
			forgotten = append(forgotten, name)
		case has && !had:
			diags.AddAttributeError(path.Root("cpu_pools").AtMapKey(name), "There is a node pool "+name+" already",
				fmt.Sprintf("cpu_pools[%q] cannot be made: %s", name, n.TakenPool(name)))
		}
	}
	if len(forgotten) > 0 {
		diags.AddAttributeWarning(path.Root("cpu_pools"), "Node pools are forgotten, not deleted",
			fmt.Sprintf("cpu_pools does not name %s, and no label says that this provider made it. What somebody else made stays in cluster %s, with its nodes and their cost, and is no longer managed here. "+
				"To keep it managed, name it in cpu_pools. To delete it: gcloud container node-pools delete NAME --cluster %s --location %s --project %s",
				strings.Join(forgotten, ", "), n.Cluster, n.Cluster, n.Location, n.Project))
	}
}

// remade warns of CPU pools that are made anew because GKE cannot change them.
func remade(ctx context.Context, state, config model, diags *diag.Diagnostics) {
	before := state.pools(ctx, diags)
	after := config.pools(ctx, diags)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, ok := before[name]
		if !ok {
			continue
		}
		if fixed := after[name].spec().Fixed(was.spec()); len(fixed) > 0 {
			diags.AddAttributeWarning(path.Root("cpu_pools"), fmt.Sprintf("CPU pool %s is made anew", name),
				fmt.Sprintf("GKE cannot change %s of a node pool. So the apply first makes a pool like the new cpu_pools[%q] that stands in for it, then deletes the old one, makes it anew, and deletes the stand-in. "+
					"Its pods always have nodes, and move twice; for that time there has to be room for both. If GKE refuses the stand-in, nothing is changed. "+
					"To have the pods move only once, add a pool of another name in place of this one.", strings.Join(fixed, " and "), name))
		}
	}
}
