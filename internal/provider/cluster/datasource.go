package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// NewDataSource is the data source tpu_training_cluster: a cluster that
// something else manages, with the attributes of the resource.
func NewDataSource() datasource.DataSource { return &source{} }

type source struct{ data *conn.Data }

var _ datasource.DataSourceWithConfigure = (*source)(nil)

// Metadata implements datasource.DataSource.
func (*source) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_training_cluster"
}

// Configure implements datasource.DataSourceWithConfigure.
func (s *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

// Schema implements datasource.DataSource: the resource's, to be read only.
func (*source) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	all := attributes(ctx)
	for _, name := range []string{"min_master_version", "effective_labels", "cluster_overrides", "deletion_protection", "force", "timeouts"} {
		delete(all, name) // what the resource is told and GKE does not know
	}
	attrs := readOnly("", all)
	attrs["name"] = schema.StringAttribute{Required: true, MarkdownDescription: "The name of the cluster.", Validators: []validator.String{tpuattr.DNSLabel(gke.MaxName)}}
	attrs["project"] = schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "The Google Cloud project. The default is the provider's.",
		Validators: []validator.String{tpuattr.Project("the provider's")}}
	attrs["location"] = schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "The cluster's zone or region. The default is the provider's.",
		Validators: []validator.String{tpuattr.Location("the provider's")}}
	attrs["resource_labels"] = schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "The Google Cloud labels of the cluster, without those that the provider and Google write."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads a GKE cluster that something else manages, with the attributes of the resource `tpu_training_cluster`. " +
			"Of its node pools `cpu_pools` has those that a `tpu_training_cluster` made, or else all without TPUs; `tpu_slice_pools` lists those with TPUs.",
		Attributes: attrs,
	}
}

// Read implements datasource.DataSource.
func (s *source) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m shared
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if s.data == nil {
		resp.Diagnostics.AddError("Could not read the cluster", "the provider is not configured")
		return
	}
	for name, at := range map[string]struct {
		value    *types.String
		fallback string
	}{"project": {&m.Project, s.data.Project}, "location": {&m.Location, s.data.Location}} {
		if at.value.IsNull() && at.fallback != "" {
			*at.value = types.StringValue(at.fallback)
		} else if at.value.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root(name), "Missing "+name, fmt.Sprintf("Set %s here or in the provider's configuration.", name))
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	n := gke.ClusterName{Project: m.Project.ValueString(), Location: m.Location.ValueString(), Cluster: m.Name.ValueString()}
	found, err := s.data.GKE.GetCluster(ctx, n)
	if errors.Is(err, gke.NotFound) {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "There is no such cluster",
			fmt.Sprintf("%s\n\nIf this configuration makes the cluster, use the resource's attributes instead, or name = tpu_training_cluster.NAME.name, so that it is read after it is made.", s.data.GKE.Absent(ctx, n)))
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("Could not read cluster "+n.String(), err.Error())
		return
	}
	m.ID = types.StringValue(n.String())
	m.ResourceLabels = stringMap(gke.UserLabels(found.GetResourceLabels()))
	m.read(ctx, found, cpuPoolsOf(found), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
