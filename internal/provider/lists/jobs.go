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
	attrs := map[string]schema.Attribute{
		"cluster": schema.StringAttribute{Optional: true,
			MarkdownDescription: "Only the jobs of this cluster: `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`. The default is every cluster that `project` and `location` leave.",
			Validators:          []validator.String{attr.ClusterPath(), stringvalidator.ConflictsWith(path.MatchRoot("project"), path.MatchRoot("location"))}},
		"namespace": schema.StringAttribute{Optional: true, MarkdownDescription: "Only the jobs of this namespace. The default is every namespace."},
	}
	maps.Copy(attrs, withinSchema())
	return schema.Schema{
		MarkdownDescription: "Lists the training jobs that a `tpu_training_jobset` or `tpuctl` submitted. JobSets that something else made are listed by the data source `tpu_jobs`.",
		Attributes:          attrs,
	}
}

func (jobs) find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics] {
	return func(yield func(Object, diag.Diagnostics) bool) {
		var f jobFilters
		diags := config.Get(ctx, &f)
		names := f.clusters(ctx, data, &diags)
		if len(diags) > 0 && !yield(Object{}, diags) || diags.HasError() {
			return
		}
		for _, n := range names {
			k, err := data.Cluster(ctx, n.String())
			var runs []training.Run
			if err == nil {
				runs, err = training.List(ctx, k, f.Namespace.ValueString())
			}
			what := "Cannot list the jobs of " + n.String()
			switch {
			case err == nil:
			case f.Cluster.IsNull() && errors.Is(err, gke.NotFound):
				continue // deleted since it was listed
			case f.Cluster.IsNull(): // one cluster that does not answer hides nothing of the others
				if !yield(Object{}, diag.Diagnostics{diag.NewWarningDiagnostic(what, err.Error())}) {
					return
				}
				continue
			default:
				yield(Object{}, diag.Diagnostics{diag.NewErrorDiagnostic(what, err.Error())})
				return
			}
			for _, r := range runs {
				o := Object{ID: n.String() + "/namespaces/" + r.Namespace + "/jobsets/" + r.Name, Name: fmt.Sprintf("%s/%s/%s (%s)", n.Cluster, r.Namespace, r.Name, r.State)}
				if r.Labels[queue.LabelManagedBy] == queue.ManagedBy && !yield(o, nil) {
					return
				}
			}
		}
	}
}

func (f jobFilters) clusters(ctx context.Context, data *conn.Data, diags *diag.Diagnostics) []gke.ClusterName {
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
