// Package queue is the tpu_kueue_queue resource: a Kueue ClusterQueue and one
// LocalQueue of the same name in each namespace that may use it. It
// translates; what the objects look like is internal/queue's.
package queue

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const typeName = "tpu_kueue_queue"

// NewResource makes the resource.
func NewResource() resource.Resource { return &queueResource{} }

type queueResource struct {
	conn.Child
}

var (
	_ resource.ResourceWithConfigure      = (*queueResource)(nil)
	_ resource.ResourceWithImportState    = (*queueResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*queueResource)(nil)
	_ resource.ResourceWithValidateConfig = (*queueResource)(nil)
)

func (*queueResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName
}

func (*queueResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A queue for training jobs: a Kueue ClusterQueue with its quota, and a LocalQueue of the same name in every namespace that may use it.\n\n" +
			"Quotas are in slices, which is what jobs ask for; Kueue counts them in chips. " +
			"It needs Kueue, which `tpu_job_controllers` installs: refer to its `cluster` to make the order known.",
		Attributes: map[string]schema.Attribute{
			"id":      attr.ID("projects/P/locations/L/clusters/C/clusterQueues/NAME"),
			"cluster": attr.Cluster(),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The queue's name, which jobs give as `queue`. Up to 63 characters. Changing it makes a new queue.",
				Validators:          []validator.String{attr.Check("Invalid name", "a DNS name of up to 63 characters", kq.CheckQueueName)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"flavors": schema.ListNestedAttribute{
				Required:            true,
				MarkdownDescription: "What the queue may hand out, the preferred flavor first: a job goes to the first one that it fits.",
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.SizeAtMost(64)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{
						Required:            true,
						MarkdownDescription: "The name of a `tpu_kueue_flavor`.",
						Validators:          []validator.String{attr.Check("Invalid name", "a DNS name", kq.CheckName)},
					},
					"accelerator": attr.Accelerator(),
					"slices": schema.Int64Attribute{
						Required:            true,
						MarkdownDescription: "The queue's own slices of this flavor.",
						Validators:          []validator.Int64{int64validator.AtLeast(0)},
					},
					"borrow_slices": schema.Int64Attribute{
						Optional:            true,
						MarkdownDescription: "How many more slices it may borrow from idle queues of its cohort. Without it, as many as there are.",
						Validators:          []validator.Int64{int64validator.AtLeast(0)},
					},
					"lend_slices": schema.Int64Attribute{
						Optional:            true,
						MarkdownDescription: "How many of its own slices others of its cohort may borrow while they are idle. Without it, all of them.",
						Validators:          []validator.Int64{int64validator.AtLeast(0)},
					},
				}},
			},
			"namespaces": schema.SetAttribute{
				Optional:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "The namespaces whose jobs may use the queue. Each gets a LocalQueue of the queue's name, and must exist.",
				Validators:          []validator.Set{setvalidator.ValueStringsAre(attr.Check("Invalid namespace", "a namespace name", kq.CheckNamespace))},
			},
			"cohort": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The cohort in which queues lend each other what is idle.",
				Validators:          []validator.String{attr.Check("Invalid cohort", "a DNS name", kq.CheckName)},
			},
			"queueing_strategy": schema.StringAttribute{
				Optional: true, Computed: true,
				Default: stringdefault.StaticString(string(kueue.BestEffortFIFO)),
				MarkdownDescription: "`BestEffortFIFO` (default): a job that does not fit lets smaller ones pass. " +
					"`StrictFIFO`: it holds up everything behind it.",
				Validators: []validator.String{stringvalidator.OneOf(string(kueue.BestEffortFIFO), string(kueue.StrictFIFO))},
			},
			"stop_policy": schema.StringAttribute{
				Optional: true, Computed: true,
				Default: stringdefault.StaticString(string(kueue.None)),
				MarkdownDescription: "`None` (default): the queue is open. `Hold`: what runs goes on, nothing new is admitted. " +
					"`HoldAndDrain`: what runs is evicted too, and goes back to waiting.",
				Validators: []validator.String{stringvalidator.OneOf(string(kueue.None), string(kueue.Hold), string(kueue.HoldAndDrain))},
			},
			"preempt_within_queue": schema.StringAttribute{
				Optional: true, Computed: true,
				Default:             stringdefault.StaticString(string(kq.DefaultPreemption.WithinQueue)),
				MarkdownDescription: "Whom a waiting job may evict from this queue: `LowerPriority` (default), `LowerOrNewerEqualPriority` or `Never`.",
				Validators: []validator.String{stringvalidator.OneOf(string(kueue.PreemptionPolicyLowerPriority),
					string(kueue.PreemptionPolicyLowerOrNewerEqualPriority), string(kueue.PreemptionPolicyNever))},
			},
			"reclaim_within_cohort": schema.StringAttribute{
				Optional: true, Computed: true,
				Default:             stringdefault.StaticString(string(kq.DefaultPreemption.ReclaimWithinCohort)),
				MarkdownDescription: "Whom a waiting job may evict from other queues that borrowed this queue's slices: `Never` (default), `LowerPriority` or `Any`.",
				Validators: []validator.String{stringvalidator.OneOf(string(kueue.PreemptionPolicyNever),
					string(kueue.PreemptionPolicyLowerPriority), string(kueue.PreemptionPolicyAny))},
			},
			"chips": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "All chips of the queue's own quota.",
			},
			"status": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`Active` when the queue admits jobs, else Kueue's reason why not, such as `FlavorNotFound` or `Stopped`.",
			},
			"timeouts": attr.Timeouts(ctx, timeouts.Opts{Create: true, Update: true, Delete: true,
				DeleteDescription: "How long to wait until no job holds quota any more (default `10m`)."}),
		},
	}
}

// ValidateConfig checks what the single attributes cannot: whatever Kueue's
// webhooks check across them.
func (*queueResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec, known := m.spec(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !known {
		return
	}
	if err := spec.Validate(); err != nil {
		resp.Diagnostics.AddError("Invalid queue", err.Error())
	}
}

// ModifyPlan shows the chips already in the plan, when they can be known.
func (*queueResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if spec, known := m.spec(ctx, &resp.Diagnostics); known {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("chips"), chips(spec))...)
	}
}

func chips(q kq.Queue) int64 {
	var n int64
	for _, quota := range q.Quotas {
		n += quota.Chips()
	}
	return n
}

// ImportState reads the cluster and name out of the id.
func (*queueResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, names, err := conn.ParseID(req.ID, "clusterQueues")
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Invalid import id", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), names[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), req.ID)...)
}

func id(cluster, name string) string { return fmt.Sprintf("%s/clusterQueues/%s", cluster, name) }
