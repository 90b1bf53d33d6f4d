package lists

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// SlicePools lists the slice pools of a cluster, or of a project's clusters;
// resource makes a tpu_slice_pool.
func SlicePools(resource func() resource.Resource) func() list.ListResource {
	return newList(resource, slicePools{})
}

type slicePools struct{}

type slicePoolFilters struct {
	Cluster  types.String `tfsdk:"cluster"`
	Project  types.String `tfsdk:"project"`
	Location types.String `tfsdk:"location"`
}

func (slicePools) filters() schema.Schema {
	attrs := map[string]schema.Attribute{
		"cluster": schema.StringAttribute{Optional: true,
			MarkdownDescription: "Only the slice pools of this cluster: `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`. The default is every cluster that `project` and `location` leave.",
			Validators:          []validator.String{attr.ClusterPath(), stringvalidator.ConflictsWith(path.MatchRoot("project"), path.MatchRoot("location"))}},
	}
	maps.Copy(attrs, withinSchema())
	return schema.Schema{
		MarkdownDescription: "Lists the slice pools that a `tpu_slice_pool` made, in this configuration or another. TPU node pools that something else made are listed by the data source `tpu_slice_pools`.",
		Attributes:          attrs,
	}
}

func (slicePools) find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics] {
	return func(yield func(Object, diag.Diagnostics) bool) {
		var f slicePoolFilters
		diags := config.Get(ctx, &f)
		names := f.clusters(ctx, data, &diags)
		if len(diags) > 0 && !yield(Object{}, diags) || diags.HasError() {
			return
		}
		for _, n := range names {
			pools, err := data.GKE.ListSlicePools(ctx, n, nil) // what we made says its topology itself
			if errors.Is(err, gke.NotFound) && f.Cluster.IsNull() {
				continue // deleted since it was listed
			}
			if err != nil {
				yield(Object{}, diag.Diagnostics{diag.NewErrorDiagnostic("Cannot list the slice pools of "+n.String(), err.Error())})
				return
			}
			for _, p := range pools {
				if p.Managed && !yield(Object{ID: n.NodePool(p.Name), Name: poolName(n, p)}, nil) {
					return
				}
			}
		}
	}
}

func (f slicePoolFilters) clusters(ctx context.Context, data *conn.Data, diags *diag.Diagnostics) []gke.ClusterName {
	if diags.HasError() {
		return nil
	}
	if f.Cluster.IsNull() {
		return within{f.Project, f.Location}.clusters(ctx, data, diags)
	}
	n, err := gke.ParseClusterName(f.Cluster.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("cluster"), "Invalid cluster", err.Error())
	}
	return []gke.ClusterName{n}
}

// poolName is "main/v5e (2 x v5litepod-16 in us-west4-a)".
func poolName(n gke.ClusterName, p gke.ListedPool) string {
	shape := p.Shape.Name
	if shape == "" {
		shape = "unknown slices"
	}
	return fmt.Sprintf("%s/%s (%d x %s in %s)", n.Cluster, p.Name, len(p.Slices), shape, p.Zone)
}
