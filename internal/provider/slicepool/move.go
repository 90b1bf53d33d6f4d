package slicepool

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

var _ resource.ResourceWithMoveState = (*Resource)(nil)

// indexed is a node pool's name of the form NAME-INDEX.
var indexed = regexp.MustCompile(`^(.+)-(0|[1-9][0-9]*)$`)

// MoveState implements resource.ResourceWithMoveState: a slice that a
// google_container_node_pool manages becomes a slice pool of one slice.
func (r *Resource) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{StateMover: fromNodePool}}
}

// fromNodePool leaves the rest to Read, as an import does. Unlike an import it
// takes the one node pool alone: others of its kind may be in other states.
func fromNodePool(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
	provider := req.SourceProviderAddress
	if req.SourceTypeName != "google_container_node_pool" ||
		!strings.HasSuffix(provider, "/hashicorp/google") && !strings.HasSuffix(provider, "/hashicorp/google-beta") {
		return
	}
	var source struct {
		ID    string   `json:"id"`
		Zones []string `json:"node_locations"`
	}
	if err := json.Unmarshal(req.SourceRawState.JSON, &source); err != nil {
		resp.Diagnostics.AddError("Could not move the node pool", fmt.Sprintf("reading the state of google_container_node_pool: %v", err))
		return
	}
	cluster, nodePool, err := gke.ParseNodePoolName(source.ID)
	if err != nil {
		resp.Diagnostics.AddError("Could not move the node pool", err.Error())
		return
	}
	m := indexed.FindStringSubmatch(nodePool)
	if m == nil || len(m[1]) > gke.MaxSlicePoolName {
		resp.Diagnostics.AddError("Could not move node pool "+nodePool,
			fmt.Sprintf("The node pools of a tpu_slice_pool are called NAME-INDEX, such as v5e-0, with a NAME of at most %d characters, and GKE cannot rename %s. "+
				"Keep it as a google_container_node_pool, or make a tpu_slice_pool beside it and delete it when its jobs are done.", gke.MaxSlicePoolName, nodePool))
		return
	}
	name, index := m[1], m[2]
	if i, err := strconv.Atoi(index); err != nil || i >= gke.MaxSlices {
		resp.Diagnostics.AddError("Could not move node pool "+nodePool, fmt.Sprintf("The index of a slice is at most %d.", gke.MaxSlices-1))
		return
	}
	if len(source.Zones) > 1 {
		resp.Diagnostics.AddError("Could not move node pool "+nodePool,
			fmt.Sprintf("Its nodes are in %d zones (%s), and a slice is in one. "+
				"Keep it as a google_container_node_pool, or make a tpu_slice_pool beside it and delete it when its jobs are done.", len(source.Zones), strings.Join(source.Zones, ", ")))
		return
	}
	one := types.ObjectValueMust(sliceType.AttrTypes, map[string]attr.Value{
		"node_pool": types.StringValue(nodePool), "status": types.StringNull(), "message": types.StringNull(),
	})
	for at, v := range map[string]attr.Value{
		"id": types.StringValue(cluster.NodePool(name)), "cluster": types.StringValue(cluster.String()), "name": types.StringValue(name),
		"slice_count": types.Int64Value(1), "slices": types.MapValueMust(sliceType, map[string]attr.Value{index: one}),
	} {
		resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root(at), v)...)
	}
}
