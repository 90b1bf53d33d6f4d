package lists

import (
	"context"
	"iter"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// inCluster are the filters of what lies in clusters.
type inCluster struct {
	Cluster  types.String `tfsdk:"cluster"`
	Project  types.String `tfsdk:"project"`
	Location types.String `tfsdk:"location"`
}

// clusterSchema documents them; only begins the sentence about cluster.
func clusterSchema(only string) map[string]schema.Attribute {
	attrs := map[string]schema.Attribute{
		"cluster": schema.StringAttribute{Optional: true,
			MarkdownDescription: only + ": `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`. The default is every cluster that `project` and `location` leave.",
			Validators:          []validator.String{attr.ClusterPath(), stringvalidator.ConflictsWith(path.MatchRoot("project"), path.MatchRoot("location"))}},
	}
	maps.Copy(attrs, withinSchema())
	return attrs
}

// inClusters lets of yield what there is in each cluster that the filters
// leave, until it says that nothing more is wanted. only is true for the one
// cluster that was named.
func inClusters(ctx context.Context, config tfsdk.Config, data *conn.Data,
	of func(n gke.ClusterName, only bool, yield func(Object, diag.Diagnostics) bool) bool,
) iter.Seq2[Object, diag.Diagnostics] {
	return func(yield func(Object, diag.Diagnostics) bool) {
		var f inCluster
		diags := config.Get(ctx, &f)
		names := f.clusters(ctx, data, &diags)
		if len(diags) > 0 && !yield(Object{}, diags) || diags.HasError() {
			return
		}
		for _, n := range names {
			if !of(n, !f.Cluster.IsNull(), yield) {
				return
			}
		}
	}
}

func (f inCluster) clusters(ctx context.Context, data *conn.Data, diags *diag.Diagnostics) []gke.ClusterName {
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
