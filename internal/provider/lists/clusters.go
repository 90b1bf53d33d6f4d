package lists

import (
	"cmp"
	"context"
	"fmt"
	"iter"

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

// anywhere is how GKE's API writes every location.
const anywhere = "-"

// Clusters lists the GKE clusters of a project; resource makes a
// tpu_training_cluster.
func Clusters(resource func() resource.Resource) func() list.ListResource {
	return newList(resource, clusters{})
}

type clusters struct{}

// within are the filters that say where to look.
type within struct {
	Project  types.String `tfsdk:"project"`
	Location types.String `tfsdk:"location"`
}

func withinSchema() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"project": schema.StringAttribute{Optional: true, MarkdownDescription: "The project to look in. The default is that of the provider's configuration.",
			Validators: []validator.String{attr.Project("the provider's")}},
		"location": schema.StringAttribute{Optional: true, MarkdownDescription: "Only clusters of this zone or region. The default is every location, " +
			"also when the provider's configuration names one.",
			Validators: []validator.String{attr.Location("every location")}},
	}
}

func (clusters) filters() schema.Schema {
	return schema.Schema{MarkdownDescription: "Lists the GKE clusters of a project, whatever made them, without Autopilot clusters: those cannot be managed here.", Attributes: withinSchema()}
}

func (clusters) find(ctx context.Context, config tfsdk.Config, data *conn.Data) iter.Seq2[Object, diag.Diagnostics] {
	return func(yield func(Object, diag.Diagnostics) bool) {
		var w within
		diags := config.Get(ctx, &w)
		names := w.clusters(ctx, data, &diags)
		if len(diags) > 0 && !yield(Object{}, diags) || diags.HasError() {
			return
		}
		for _, n := range names {
			if !yield(Object{ID: n.String(), Name: fmt.Sprintf("%s (%s)", n.Cluster, n.Location)}, nil) {
				return
			}
		}
	}
}

// clusters names the clusters that the filters leave.
func (w within) clusters(ctx context.Context, data *conn.Data, diags *diag.Diagnostics) []gke.ClusterName {
	project := cmp.Or(w.Project.ValueString(), data.Project)
	if project == "" {
		diags.AddAttributeError(path.Root("project"), "Which project?", "Neither the list's config nor the provider's configuration names a project: set project in one of them, or GOOGLE_PROJECT.")
		return nil
	}
	found, silent, err := data.GKE.ListClusters(ctx, project, cmp.Or(w.Location.ValueString(), anywhere))
	if err != nil {
		diags.AddError("Cannot list the clusters of project "+project, err.Error())
		return nil
	}
	if len(silent) > 0 {
		diags.AddWarning("The list is not complete", gke.Unheard(silent)+": list again later.")
	}
	var names []gke.ClusterName
	for _, c := range found {
		if !c.GetAutopilot().GetEnabled() {
			names = append(names, gke.ClusterName{Project: project, Location: c.GetLocation(), Cluster: c.GetName()})
		}
	}
	return names
}
