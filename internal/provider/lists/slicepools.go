package lists

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// SlicePools lists the slice pools of a cluster, or of a project's clusters;
// resource makes a tpu_slice_pool.
func SlicePools(resource func() resource.Resource) func() list.ListResource {
	return newList(resource, slicePools{})
}

type slicePools struct{}

func (slicePools) filters() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Lists the slice pools that a `tpu_slice_pool` made, in this configuration or another. TPU node pools that something else made are listed by the data source `tpu_slice_pools`.",
		Attributes:          clusterSchema("Only the slice pools of this cluster"),
	}
}

func (slicePools) find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics] {
	var f inCluster
	diags := config.Get(ctx, &f)
	return inClusters(ctx, f, diags, data, func(n gke.ClusterName, only bool, yield func(Object, diag.Diagnostics) bool) bool {
		pools, err := data.GKE.ListSlicePools(ctx, n, nil) // what we made says its topology itself
		if errors.Is(err, gke.NotFound) && !only {
			return true // deleted since it was listed
		}
		if err != nil {
			yield(Object{}, diag.Diagnostics{diag.NewErrorDiagnostic("Cannot list the slice pools of "+n.String(), err.Error())})
			return false
		}
		for _, p := range pools {
			if p.Managed && !yield(Object{ID: n.NodePool(p.Name), Name: poolName(n, p)}, nil) {
				return false
			}
		}
		return true
	})
}

// poolName is "main/v5e (2 x v5litepod-16 in us-west4-a)".
func poolName(n gke.ClusterName, p gke.ListedPool) string {
	shape := p.Shape.Name
	if shape == "" {
		shape = "unknown slices"
	}
	return fmt.Sprintf("%s/%s (%d x %s in %s)", n.Cluster, p.Name, len(p.Slices), shape, p.Zone)
}
