// Package provider is Terraform's face of the project: the provider's own
// configuration, and the list of its types. What a type does is in the package
// of that type; this one decides nothing.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	"github.com/tpu-training/terraform-provider-tpu/internal/compute"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/accelerators"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/admissioncheck"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/cluster"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/cohort"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/credentials"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/flavor"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/identity"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/jobactions"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/jobcontrollers"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/jobset"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/jobstatus"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/lists"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/namespace"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/priority"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/queuestatus"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/slicepool"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/slicepools"
)

// TypeName begins every resource type of the provider.
const TypeName = "tpu"

// Provider is the tpu provider.
type Provider struct {
	version string
	getenv  func(string) string
}

var (
	_ provider.ProviderWithFunctions          = (*Provider)(nil)
	_ provider.ProviderWithEphemeralResources = (*Provider)(nil)
	_ provider.ProviderWithListResources      = (*Provider)(nil)
	_ provider.ProviderWithActions            = (*Provider)(nil)
)

// Option changes a provider for tests.
type Option func(*Provider)

// WithEnvironment replaces os.Getenv.
func WithEnvironment(getenv func(string) string) Option {
	return func(p *Provider) { p.getenv = getenv }
}

// New returns what makes the provider, as the plugin server wants it.
func New(version string, opts ...Option) func() provider.Provider {
	return func() provider.Provider {
		p := &Provider{version: version, getenv: os.Getenv}
		for _, o := range opts {
			o(p)
		}
		return p
	}
}

// Metadata implements provider.Provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = TypeName, p.version
}

// Configure prepares the clients. It uses no network and no credentials:
// validation and plans of new objects work without either.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	s := m.settings(ctx, p.getenv, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	s.gke.UserAgent = "terraform-provider-tpu/" + p.version + " terraform/" + req.TerraformVersion
	s.gke.Log = func(ctx context.Context, msg string, fields map[string]any) { tflog.Debug(ctx, msg, fields) }
	s.gke.Progress = func(ctx context.Context, p gke.Progress) { tflog.Info(ctx, p.String()) }
	client, err := gke.New(s.gke)
	if err != nil {
		resp.Diagnostics.AddError("Invalid provider configuration", err.Error())
		return
	}
	policies, err := compute.New(compute.Config{
		Endpoint: s.computeEndpoint, Tokens: s.gke.Tokens, UserAgent: s.gke.UserAgent, QuotaProject: s.gke.QuotaProject,
		RequestTimeout: s.gke.RequestTimeout, PollInterval: s.gke.PollInterval, Log: s.gke.Log,
	})
	if err != nil {
		resp.Diagnostics.AddError("Invalid provider configuration", err.Error())
		return
	}
	data := &conn.Data{
		GKE: client, Clusters: client, Compute: policies,
		Project: s.project, Location: s.location, Owner: s.owner,
		DefaultLabels: s.labels, Partial: s.partial,
	}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ListResourceData, resp.ActionData = data, data, data, data, data
}

// The forms of the resources' ids, which make their identities and short
// import ids.
const in = "projects/{project}/locations/{location}/clusters/"

var (
	clusters   = identity.New(in+"{name}", cluster.NewResource)
	slicePools = identity.New(in+"{cluster}/nodePools/{name}", slicepool.NewResource)
	jobsets    = identity.New(in+"{cluster}/namespaces/{namespace}/jobsets/{name}", jobset.NewResource)
	installs   = identity.New(in+"{cluster}/jobControllers", jobcontrollers.NewResource)
	namespaces = identity.New(in+"{cluster}/namespaces/{name}", namespace.NewResource)
	flavors    = identity.New(in+"{cluster}/resourceFlavors/{name}", flavor.NewResource)
	cohorts    = identity.New(in+"{cluster}/cohorts/{name}", cohort.NewResource)
	priorities = identity.New(in+"{cluster}/workloadPriorityClasses/{name}", priority.NewResource)
	checks     = identity.New(in+"{cluster}/admissionChecks/{name}", admissioncheck.NewResource)
	queues     = identity.New(in+"{cluster}/clusterQueues/{name}", queue.NewResource)
)

// Resources implements provider.Provider.
func (p *Provider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		clusters,
		slicePools,
		installs,
		namespaces,
		flavors,
		cohorts,
		priorities,
		checks,
		queues,
		jobsets,
	}
}

// DataSources implements provider.Provider.
func (p *Provider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		accelerators.NewAccelerator,
		accelerators.NewTopologies,
		slicepools.New,
		queuestatus.New,
		cluster.NewDataSource,
		jobstatus.NewStatus,
		jobstatus.NewJobs,
		jobset.NewRenderedDataSource,
	}
}

// Functions implements provider.ProviderWithFunctions.
func (p *Provider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		accelerators.NewDescribeSlice,
		accelerators.NewListTopologies,
		jobset.NewRenderFunction,
	}
}

// EphemeralResources implements provider.ProviderWithEphemeralResources.
func (p *Provider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{credentials.New}
}

// Actions implements provider.ProviderWithActions.
func (p *Provider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{jobactions.NewSuspend, jobactions.NewResume, jobactions.NewPreload, jobactions.NewRecreate}
}

// ListResources implements provider.ProviderWithListResources.
func (p *Provider) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{
		lists.Clusters(clusters),
		lists.SlicePools(slicePools),
		lists.Jobs(jobsets),
		lists.InCluster(installs),
		lists.InCluster(namespaces),
		lists.InCluster(flavors),
		lists.InCluster(cohorts),
		lists.InCluster(priorities),
		lists.InCluster(checks),
		lists.InCluster(queues),
	}
}
