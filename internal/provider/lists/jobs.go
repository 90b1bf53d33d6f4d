package lists

import (
	"context"
	"fmt"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Jobs lists the jobs of a cluster, or of a project's clusters; resource makes
// a tpu_training_jobset.
func Jobs(resource func() resource.Resource) func() list.ListResource {
	return newList(resource, jobs{})
}

type jobs struct{}

type jobFilters struct {
	Cluster   types.String `tfsdk:"cluster"`
	Project   types.String `tfsdk:"project"`
	Location  types.String `tfsdk:"location"`
	Namespace types.String `tfsdk:"namespace"`
}

func (jobs) filters() schema.Schema {
	attrs := clusterSchema("Only the jobs of this cluster")
	attrs["namespace"] = schema.StringAttribute{Optional: true, MarkdownDescription: "Only the jobs of this namespace. The default is every namespace."}
	return schema.Schema{
		MarkdownDescription: "Lists the training jobs that a `tpu_training_jobset` or `tpuctl` submitted. JobSets that something else made are listed by the data source `tpu_jobs`.",
		Attributes:          attrs,
	}
}

func (jobs) find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics] {
	var f jobFilters
	diags := config.Get(ctx, &f)
	return inClusters(ctx, inCluster{f.Cluster, f.Project, f.Location}, diags, data, onAPIServer(ctx, data, "jobs", func(n gke.ClusterName, k *kube.Client) ([]Object, error) {
		runs, err := training.List(ctx, k, f.Namespace.ValueString())
		var found []Object
		for _, r := range runs {
			if r.Labels[queue.LabelManagedBy] == queue.ManagedBy {
				found = append(found, Object{ID: n.String() + "/namespaces/" + r.Namespace + "/jobsets/" + r.Name,
					Name: fmt.Sprintf("%s/%s/%s (%s)", n.Cluster, r.Namespace, r.Name, r.State)})
			}
		}
		return found, err
	}))
}
