package jobstatus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// NewJobs is the data source tpu_jobs.
func NewJobs() datasource.DataSource { return &jobs{} }

type jobs struct{ data *conn.Data }

var _ datasource.DataSourceWithConfigure = (*jobs)(nil)

type jobsModel struct {
	Cluster    types.String `tfsdk:"cluster"`
	Namespace  types.String `tfsdk:"namespace"`
	Queue      types.String `tfsdk:"queue"`
	Owner      types.String `tfsdk:"owner"`
	Experiment types.String `tfsdk:"experiment"`
	RunID      types.String `tfsdk:"run_id"`
	Statuses   []string     `tfsdk:"statuses"`
	Jobs       []run        `tfsdk:"jobs"`
}

// Metadata implements datasource.DataSource.
func (*jobs) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_jobs"
}

// Configure implements datasource.DataSourceWithConfigure.
func (s *jobs) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

// listable are the states that a job with an object can have.
func listable() []string {
	var all []string
	for _, s := range training.States {
		if s != training.Gone {
			all = append(all, string(s))
		}
	}
	return all
}

// Schema implements datasource.DataSource.
func (*jobs) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	only := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The jobs of a cluster as they stand when they are read, the oldest first, whoever submitted them. Finished ones are listed until their `ttl_after_finished` has passed.",
		Attributes: map[string]schema.Attribute{
			"cluster": schema.StringAttribute{Required: true,
				MarkdownDescription: "The GKE cluster, as `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`: the `id` of a `tpu_training_cluster`.",
				Validators:          []validator.String{attr.ClusterPath()}},
			"namespace":  only("Only the jobs of this namespace; all namespaces by default."),
			"queue":      only("Only the jobs that were submitted to this queue."),
			"owner":      only("Only this owner's jobs."),
			"experiment": only("Only the jobs of this experiment."),
			"run_id":     only("Only the jobs of this run."),
			"statuses": schema.ListAttribute{Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Only jobs with one of these: `" + strings.Join(listable(), "`, `") + "`.",
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(stringvalidator.OneOf(listable()...))}},
			"jobs": list("The jobs.", runSchema()),
		},
	}
}

// Read implements datasource.DataSource.
func (s *jobs) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m jobsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cluster := m.Cluster.ValueString()
	if s.data == nil {
		resp.Diagnostics.AddError("Cannot list the jobs of "+cluster, "the provider is not configured")
		return
	}
	name, err := gke.ParseClusterName(cluster)
	var k *kube.Client
	if err == nil {
		k, err = s.data.Cluster(ctx, cluster)
	}
	var all []training.Run
	if err == nil {
		err = training.Installed(ctx, k)
	}
	if err == nil {
		all, err = training.List(ctx, k, m.Namespace.ValueString())
	}
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("cluster"), "Cannot list the jobs of "+name.Cluster, fmt.Sprint(err))
		return
	}
	m.Jobs = []run{}
	for _, r := range all {
		if m.wants(r) {
			m.Jobs = append(m.Jobs, shown(cluster, r))
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// wants tells whether a job passes the filters.
func (m jobsModel) wants(r training.Run) bool {
	for _, f := range []struct {
		want types.String
		is   string
	}{{m.Queue, r.Queue}, {m.Owner, r.Owner}, {m.Experiment, r.Experiment}, {m.RunID, r.RunID}} {
		if !f.want.IsNull() && f.want.ValueString() != f.is {
			return false
		}
	}
	return len(m.Statuses) == 0 || slices.Contains(m.Statuses, string(r.State))
}
