// Package jobstatus is the data sources tpu_job_status and tpu_jobs: how jobs
// stand, now, whoever submitted them. It translates; what a status means is
// internal/training's.
package jobstatus

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// NewStatus is the data source tpu_job_status.
func NewStatus() datasource.DataSource { return &status{} }

type status struct{ data *conn.Data }

var _ datasource.DataSourceWithConfigure = (*status)(nil)

// Metadata implements datasource.DataSource.
func (*status) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_job_status"
}

// Configure implements datasource.DataSourceWithConfigure.
func (s *status) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	s.data = conn.From(req.ProviderData, &resp.Diagnostics)
}

var text, number, list = attr.ComputedText, attr.ComputedNumber, attr.ComputedList

// runSchema is what both data sources say of a job.
func runSchema() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":            text("The job's path, as the `id` of a `tpu_training_jobset`."),
		"namespace":     text("Its namespace."),
		"name":          text("Its name."),
		"uid":           text("Kubernetes' uid of the JobSet."),
		"run_id":        text("The name of the run over its restarts."),
		"owner":         text("Whose it is, or empty."),
		"experiment":    text("The experiment it belongs to, or empty."),
		"labels":        schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "The JobSet's labels."},
		"queue":         text("The queue it was submitted to, or empty."),
		"cluster_queue": text("The ClusterQueue that admitted it, or empty."),
		"flavor":        text("The flavor it was admitted to, or empty."),
		"priority":      text("Its priority class, or empty."),
		"accelerator":   text("The kind of its slices, such as `v5litepod-16`; empty when this version of the provider does not know it."),
		"slices":        number("How many slices it takes."),
		"chips":         number("How many chips these have; 0 when the accelerator is not known."),
		"status":        text("`Pending`, `Admitted`, `Starting`, `Running`, `Restarting`, `Suspended`, `Succeeded` or `Failed`; of one job also `GONE`, when there is no such job (any more)."),
		"reason":        text("Why, in one word, such as `WaitingForQuota` or `FatalExitCode`; empty while all is well."),
		"message":       text("Why, in the controller's own words."),
		"finished":      schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it has succeeded, has failed or is gone."},
		"hosts_wanted":  number("How many hosts it takes."),
		"hosts_ready":   number("How many of them are ready."),
		"hosts_done":    number("How many of them have finished."),
		"restarts":      number("How often it restarted, for whatever reason."), "counted_restarts": number("How often it restarted over a crash, which `max_restarts` limits."),
		"max_restarts":  number("How many crashes it is forgiven."),
		"proxy_address": text("Where a Pathways job takes JAX clients, within the cluster; empty for other jobs."),
		"created_at":    text("When it was created (RFC 3339)."),
		"admitted_at":   text("When its queue admitted it, or null."),
		"started_at":    text("When all its hosts were ready; where Kueue does not tell, when the job that runs was admitted. Null before."),
		"finished_at":   text("When it ended, or null."),
	}
}

// Schema implements datasource.DataSource.
func (*status) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := map[string]schema.Attribute{
		"job": schema.StringAttribute{Required: true,
			MarkdownDescription: "The job: the `id` of a `tpu_training_jobset`, `projects/PROJECT/locations/LOCATION/clusters/CLUSTER/namespaces/NAMESPACE/jobsets/NAME`. Any JobSet will do.",
			Validators: []validator.String{attr.Check("Invalid job", "the id of a job", func(id string) error {
				_, _, err := conn.ParseID(id, "namespaces", "jobsets")
				return err
			})}},
		"conditions": list("The conditions of the job's Workload and JobSet, the oldest first.", map[string]schema.Attribute{
			"of":   text("`Workload` (Kueue's) or `JobSet`."),
			"type": text("Its name, such as `Admitted` or `Completed`."), "status": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it holds."},
			"reason": text("Why, in one word."), "message": text("Why, in the controller's own words."), "since": text("When it became so (RFC 3339)."),
		}),
		"slice_runs": list("Its slices.", map[string]schema.Attribute{
			"index": number("The slice's number."), "status": text("Where it stands, as the job's `status`."), "node_pool": text("The node pool it was placed on, or empty."),
			"hosts_wanted": number("How many hosts it has."), "hosts_ready": number("How many of them are ready."), "hosts_done": number("How many have finished."),
			"hosts_failed": number("How many pods failed in this attempt."), "message": text("What failed, in the controller's own words."),
		}),
	}
	maps.Copy(attrs, runSchema())
	resp.Schema = schema.Schema{
		MarkdownDescription: "How one job stands, as it is when it is read, whoever submitted it. It changes between plans: use it in outputs and checks rather than in the arguments of resources. " +
			"A job that is not there, also since its `ttl_after_finished` has passed, is `GONE`, with a warning; `status` of `tpu_training_jobset` keeps the result that was seen.",
		Attributes: attrs,
	}
}

// Read implements datasource.DataSource.
func (s *status) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var d detail
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("job"), &d.Job)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cluster, names, err := conn.ParseID(d.Job.ValueString(), "namespaces", "jobsets")
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("job"), "Invalid job", err.Error())
		return
	}
	if s.data == nil {
		resp.Diagnostics.AddError("Cannot read job "+names[1], "the provider is not configured")
		return
	}
	k, err := s.data.Cluster(ctx, cluster)
	var r training.Run
	if err == nil {
		r, err = training.Get(ctx, k, names[0], names[1])
	}
	var none *training.NotFoundError
	switch {
	case errors.As(err, &none):
		r = training.Run{Namespace: none.Namespace, Name: none.Name, State: training.Gone, Reason: training.ReasonNotFound, Message: none.Error()}
		resp.Diagnostics.AddAttributeWarning(path.Root("job"), "There is no such job",
			fmt.Sprintf("%s: its status is %s.\n\nIf this configuration makes the job, refer to it (job = tpu_training_jobset.NAME.id), so that it is read after it is made. A finished job is gone when its ttl_after_finished has passed.", err, training.Gone))
	case errors.Is(err, gke.NotFound):
		resp.Diagnostics.AddAttributeError(path.Root("job"), "There is no such cluster", err.Error())
		return
	case err != nil:
		conn.AddError(&resp.Diagnostics, "Cannot read job "+names[1], err)
		return
	}
	d.fill(cluster, r)
	resp.Diagnostics.Append(resp.State.Set(ctx, d)...)
}
