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

// perCluster yields what there is in a cluster, and tells whether more is
// wanted. only is true for the one cluster that was named.
type perCluster func(n gke.ClusterName, only bool, yield func(Object, diag.Diagnostics) bool) bool

// inClusters goes through the clusters that the filters leave. diags is what
// reading the filters said.
func inClusters(ctx context.Context, f inCluster, diags diag.Diagnostics, data *conn.Data, of perCluster) iter.Seq2[Object, diag.Diagnostics] {
	return func(yield func(Object, diag.Diagnostics) bool) {
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
