package cluster

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// ValidateConfig implements resource.ResourceWithValidateConfig: what GKE would
// refuse is refused in `terraform validate`, as far as the values are known.
func (r *Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	t := spec(ctx, config, gke.ClusterName{Location: config.Location.ValueString()}, "", &resp.Diagnostics)
	check(t, false, &resp.Diagnostics)
}

// checkNew reports what GKE would refuse of a new cluster alone.
func checkNew(t gke.TrainingCluster, diags *diag.Diagnostics) {
	for _, p := range t.Check() {
		if p.New {
			report(p, diags)
		}
	}
}

// check reports what GKE would refuse of any cluster. located: only what depends on a location
// that came from the provider's configuration.
func check(t gke.TrainingCluster, located bool, diags *diag.Diagnostics) {
	if located {
		known := t
		known.Name.Location = ""
		seen := map[gke.Problem]bool{}
		for _, p := range known.Check() {
			seen[p] = true
		}
		for _, p := range t.Check() {
			if !seen[p] && !p.New {
				report(p, diags)
			}
		}
		return
	}
	for _, p := range t.Check() {
		if !p.New {
			report(p, diags)
		}
	}
}

// report puts a problem where Terraform can show the line: at the top-level
// attribute, with the rest of the place in the text.
func report(p gke.Problem, diags *diag.Diagnostics) {
	outer, _, nested := strings.Cut(p.Attribute, ".")
	said := p.Text
	if nested {
		said = p.Attribute + ": " + said
	}
	diags.AddAttributeError(path.Root(outer), "GKE would refuse this cluster", said+".")
}
