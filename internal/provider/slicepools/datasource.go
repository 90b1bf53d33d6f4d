// Package slicepools is the data source tpu_slice_pools: what GKE and the
// cluster itself say about every TPU slice, now. It manages nothing.
package slicepools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// New is the data source tpu_slice_pools.
func New() datasource.DataSource { return &source{} }

type source struct{ data *conn.Data }

var _ datasource.DataSourceWithConfigure = (*source)(nil)

// Metadata implements datasource.DataSource.
func (*source) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_slice_pools"
}

// Configure implements datasource.DataSourceWithConfigure.
func (s *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

var text, number = attr.ComputedText, attr.ComputedNumber

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}

// Schema implements datasource.DataSource.
func (*source) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	job := schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"namespace": text("The namespace of the job."),
		"name":      text("The name of the job (its JobSet)."),
		"slice":     number("Which of the job's slices this is, from 0."),
		"hosts":     number("On how many of the slice's hosts the job has a pod that is not finished."),
	}}
	slice := schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"node_pool":   text("The name of the slice's node pool."),
		"status":      text("What GKE says: `RUNNING`, `PROVISIONING`, `STOPPING` or `ERROR`."),
		"message":     text("What is wrong, in a few words, or empty."),
		"hosts":       number("The number of hosts that joined the cluster."),
		"hosts_ready": number("The number of hosts that are ready and not cordoned."),
		"jobs":        schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The training jobs that run on the slice; empty when it is idle.", NestedObject: job},
	}}
	pool := schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"name":            text("The name of the slice pool. A TPU node pool that no `tpu_slice_pool` made is listed under its own name, with one slice."),
		"owner":           text("The `owner` of the configuration that made it, or empty."),
		"managed":         flag("Whether a `tpu_slice_pool` made it."),
		"accelerator":     text("The TPU slice, as a type name such as `v5litepod-16`; empty when this version of the provider does not know it, or when the workload policy that says it cannot be read."),
		"topology":        text("The arrangement of a slice's chips."),
		"zone":            text("The zone of the slices."),
		"spot":            flag("Whether the machines are spot machines."),
		"chips_per_slice": number("The number of chips of one slice."),
		"chips":           number("The number of chips of all slices together."),
		"hosts_per_slice": number("The number of hosts that a whole slice has."),
		"ready_slices":    number("The number of slices whose node pool is `RUNNING`."),
		"busy_slices":     number("The number of slices that a job runs on."),
		"slices":          schema.MapNestedAttribute{Computed: true, MarkdownDescription: "The slices by index.", NestedObject: slice},
	}}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the TPU slices of a cluster as they are now: the state of their node pools from GKE, and from the cluster itself which hosts are ready and which jobs run on them. " +
			"It lists every TPU node pool, whatever made it. The cluster's API server must be reachable when there are any.\n\n" +
			"It is read anew by every plan, so what it says changes between plans: use it in outputs and checks rather than in the arguments of resources.",
		Attributes: map[string]schema.Attribute{
			"cluster": schema.StringAttribute{Required: true, Validators: []validator.String{attr.ClusterPath()},
				MarkdownDescription: "The GKE cluster, as `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`: the `id` of a `tpu_training_cluster`."},
			"name":  schema.StringAttribute{Optional: true, MarkdownDescription: "Only the slice pool of this name."},
			"pools": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The slice pools, in order of name.", NestedObject: pool},
		},
	}
}

// shares is for how long data sources of one cluster share what runs on it.
const shares = 2 * time.Second

// Read implements datasource.DataSource.
func (s *source) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if s.data == nil {
		resp.Diagnostics.AddError("Could not read slice pools", "the provider is not configured")
		return
	}
	name, err := gke.ParseClusterName(m.Cluster.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("cluster"), "Invalid cluster", err.Error())
		return
	}
	listed, err := s.data.GKE.ListSlicePools(ctx, name, s.data.Topology(name))
	if errors.Is(err, gke.NotFound) {
		resp.Diagnostics.AddAttributeError(path.Root("cluster"), "There is no such cluster",
			fmt.Sprintf("%s\n\nIf this configuration makes the cluster, refer to it (cluster = tpu_training_cluster.NAME.id), so that it is read after it is made.", err))
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("Could not list the slice pools of "+name.String(), err.Error())
		return
	}
	var uses map[string]training.PoolUse
	if len(listed) > 0 {
		if uses, err = s.data.Occupancy(ctx, name.String(), shares); err != nil {
			resp.Diagnostics.AddError("Could not read what runs on the slices of "+name.String(), err.Error())
			return
		}
	}
	m.fill(listed, uses)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
