// Package jobset is the tpu_training_jobset resource: one training job. It
// translates between Terraform's values and internal/training, which says what
// a job looks like and how it stands. What is its own is how a job lives in a
// state file: it is run once, its result stays, and it is never run again
// because its object is gone.
package jobset

import (
	"context"
	"fmt"
	"math"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	tfattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

const replaces = " Changing it makes a new job."

var (
	replaceString = []planmodifier.String{stringplanmodifier.RequiresReplace()}
	replaceList   = []planmodifier.List{listplanmodifier.RequiresReplace()}
)

// Schema describes a job. What ValidateConfig checks has no validator of its
// own here: it would be said twice.
func (*jobsetResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A training job: the same program on every host of a number of equal TPU slices, as a JobSet, queued by Kueue.\n\n" +
			"The job runs once. Its result stays in the state after Kubernetes removed the object, and it is not run again. " +
			"A job whose object is gone without a result gets the status `GONE`, and a warning; to run it again, change `rerun_trigger`.\n\n" +
			"A job that fails is not an error of the apply, since Terraform would delete it and run it again: it is a warning, and the `status`. " +
			"A `postcondition` on `status` makes the apply exit 1.\n\n" +
			"What preempts or loses a host restarts the job without being counted. Crashes restart it up to `restart_policy.max_restarts` times.\n\n" +
			"`active`, `priority`, `ttl_after_finished`, `labels`, `annotations` and `wait_for` change in place. A job cannot change what it runs: any other change makes a new job, and the plan says which job that ends.",
		Attributes: merge(inputs(), placement(), pods(), computed(), map[string]schema.Attribute{
			"timeouts": attr.Timeouts(ctx, timeouts.Opts{Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait for what `wait_for` names (default `30m`; `24h` for `completed`). When it passes, the job stays, and the apply ends with a warning.",
				UpdateDescription: "How long to wait for what a changed `wait_for` names (default `30m`; `24h` for `completed`).",
				DeleteDescription: "How long to wait until the job's pods are gone (default `10m`)."}),
		}),
	}
}

func merge(maps ...map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{}
	for _, m := range maps {
		for name, a := range m {
			all[name] = a
		}
	}
	return all
}

func inputs() map[string]schema.Attribute {
	acc := attr.Accelerator()
	acc.MarkdownDescription += replaces
	acc.PlanModifiers = []planmodifier.String{stringplanmodifier.RequiresReplaceIf(otherSlice,
		"Another kind of slice makes a new job; another spelling of the same does not.",
		"Another kind of slice makes a new job; another spelling of the same does not.")}
	return map[string]schema.Attribute{
		"cluster": attr.Cluster(),
		"namespace": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The namespace the job runs in." + replaces,
			PlanModifiers:       replaceString,
		},
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The job's name: lowercase letters, digits and dashes, starting with a letter. How long it may be depends on the number of slices and hosts, " +
				"since pods are called `NAME-slice-SLICE-HOST-xxxxx` and may have 63 characters." + replaces,
			PlanModifiers: replaceString,
		},
		"queue": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The queue the job waits in: the name of a `tpu_kueue_queue` that lists the namespace. " +
				"Without one the job starts at once and takes whatever slices are free." + replaces,
			PlanModifiers: replaceString,
		},
		"priority": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The job's priority class: `very-low`, `low`, `medium`, `high`, `very-high`, or any other WorkloadPriorityClass of the cluster. " +
				"It can change from one to another in place, also while the job runs. Giving a job without one a priority, or taking it away, makes a new job.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(comesOrGoes,
				"A priority can change, but not come or go.", "A priority can change, but not come or go.")},
		},
		"accelerator": acc,
		"slices": schema.Int64Attribute{
			Required:            true,
			MarkdownDescription: "How many slices the job runs on at the same time. It starts when all of them are free." + replaces,
			Validators:          []validator.Int64{int64validator.AtLeast(1)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"image": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The container image. Every job needs one, but for headless Pathways jobs." + replaces,
			PlanModifiers:       replaceString,
		},
		"command": schema.ListAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "The program and its arguments. No shell reads them; `$(NAME)` stands for an environment variable of the job and `$$` for a dollar sign, as in any Kubernetes container. Without it, the image's entry point." + replaces,
			PlanModifiers:       replaceList,
		},
		"args": schema.ListAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Arguments for the image's entry point, or more of them for `command`." + replaces,
			PlanModifiers:       replaceList,
		},
		"env": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Environment variables. `RUN_ID`, `ATTEMPT` (how often the job restarted, from `first_attempt` on) and, with `output_dir`, `OUTPUT_DIR` are set for every job. " +
				"Values are stored in the job's object and in the state: nothing secret belongs here." + replaces,
			PlanModifiers: []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
		"service_account": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The Kubernetes service account that the pods run as. Without it, the namespace's `default`." + replaces,
			PlanModifiers:       replaceString,
		},
		"run_id": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Names the run for the program (`RUN_ID`), the same over all its restarts. The job's name by default." + replaces,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()},
		},
		"first_attempt": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "The `ATTEMPT` that the job begins with, where it goes on with a run of earlier jobs (with their `run_id`): one more than their last, so that attempts are counted through. " +
				"It needs `command` or `shell`, which the image's `/bin/sh` then starts." + replaces,
			Validators:    []validator.Int64{int64validator.Between(1, math.MaxInt32)},
			PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"output_dir": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Where runs write, such as `gs://bucket/runs`. The program gets it with the run id appended as `OUTPUT_DIR`." + replaces,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			PlanModifiers:       replaceString,
		},
		"owner": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Whose job it is, as a label. The provider's `owner` by default." + replaces,
			PlanModifiers:       replaceString,
		},
		"experiment": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The experiment it belongs to, as a label." + replaces,
			PlanModifiers:       replaceString,
		},
		"labels": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Further labels of the JobSet. They can change in place.",
		},
		"annotations": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Further annotations of the JobSet. They can change in place.",
		},
		"pod_annotations": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Annotations of the pods, for what works on pods: storage drivers (`gke-gcsfuse/volumes`), sidecars." + replaces,
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
		"restart_policy": restartPolicy(),
		"ttl_after_finished": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "How long Kubernetes keeps the finished job's object, such as `24h`. Without it, for ever. The result stays in the state in any case.",
			Validators:          []validator.String{attr.Duration()},
		},
		"termination_grace_period": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "How long the program has between SIGTERM and SIGKILL (default `30s`). Spot hosts get about 15 seconds, whatever it says." +
				replaces,
			Validators:    []validator.String{attr.Duration()},
			PlanModifiers: replaceString,
		},
		"max_run_time": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "How long the job may run from its admission, restarts included, such as `72h`. Then Kueue ends it, and it has failed (`MaximumExecutionTimeExceeded`). " +
				"No limit by default. Only queued jobs can have one." + replaces,
			Validators:    []validator.String{attr.PositiveDuration()},
			PlanModifiers: replaceString,
		},
		"active": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether the job may run. `false` suspends it: its pods end, its quota is free, and it keeps its place in the state; `true` lets it go on, from its last checkpoint. " +
				"It changes in place, through the job's Workload, and a job can be created suspended. Without it, suspending and resuming is left to others, and is no drift.",
		},
		"rerun_trigger": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Any value; changing, adding or removing it runs the job again: it is deleted and made anew. Nothing else runs a job again that has finished or is gone.",
			PlanModifiers:       replaceString,
		},
		"wait_for": schema.StringAttribute{
			Optional: true, Computed: true,
			Default: stringdefault.StaticString(string(training.LevelAdmitted)),
			MarkdownDescription: "How far the apply follows the job: `created`, `admitted` (default: quota is reserved), `running` (every host is ready) or `completed`. " +
				"A job that does not get there in time is a warning, not an error. After an interrupt the next apply waits on. A suspended job is not waited for.",
			Validators: []validator.String{stringvalidator.OneOf(training.Levels...)},
		},
	}
}

// restartDefault is what a job without a policy gets, written out.
func restartDefault() (types.Object, types.Set) {
	var codes []tfattr.Value
	for _, c := range training.DefaultFatalExitCodes {
		codes = append(codes, types.Int64Value(int64(c)))
	}
	set := types.SetValueMust(types.Int64Type, codes)
	return types.ObjectValueMust(restartTypes, map[string]tfattr.Value{
		"max_restarts": types.Int64Value(training.DefaultMaxRestarts), "fatal_exit_codes": set,
		"on_preemption": types.StringValue(string(training.PreemptionRestarts)),
	}), set
}

var restartTypes = map[string]tfattr.Type{
	"max_restarts": types.Int64Type, "fatal_exit_codes": types.SetType{ElemType: types.Int64Type}, "on_preemption": types.StringType,
}

func restartPolicy() schema.SingleNestedAttribute {
	object, codes := restartDefault()
	return schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		Default: objectdefault.StaticValue(object),
		MarkdownDescription: "What a crash costs. Preemption, eviction and the loss of a host restart the job and are not counted, unless `on_preemption` says so." +
			replaces,
		PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplaceIf(otherPolicy, "Another policy makes a new job.", "Another policy makes a new job.")},
		Attributes: map[string]schema.Attribute{
			"max_restarts": schema.Int64Attribute{
				Optional: true, Computed: true,
				Default: int64default.StaticInt64(training.DefaultMaxRestarts),
				MarkdownDescription: fmt.Sprintf("How many crashes are forgiven before the job fails (default %d). "+
					"When a host of one slice is lost, a host of another may exit first, and that counts as a crash: 0 is for jobs that must not restart.", training.DefaultMaxRestarts),
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"on_preemption": schema.StringAttribute{
				Optional: true, Computed: true,
				Default: stringdefault.StaticString(string(training.PreemptionRestarts)),
				MarkdownDescription: "What the preemption, eviction or loss of a host does: `restart` (default: the job restarts, and it is not counted), " +
					"`count` (it restarts and counts as a crash) or `fail` (the job fails).",
				Validators: []validator.String{stringvalidator.OneOf(training.OnPreemptions...)},
			},
			"fatal_exit_codes": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.Int64Type,
				Default: setdefault.StaticValue(codes),
				MarkdownDescription: "Exit codes that fail the job at once, from any host (default 2, 126 and 127: usage error, not executable, not found). " +
					"1 is an uncaught exception, and also what hosts exit with when a peer is lost.",
			},
		},
	}
}

func computed() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": attr.ID("projects/P/locations/L/clusters/C/namespaces/NS/jobsets/NAME"),
		"uid": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "Kubernetes' uid of the JobSet: another job of the same name has another.",
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"status": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "Where the job stands: `Pending`, `Admitted`, `Starting`, `Running`, `Restarting`, `Suspended`, `Succeeded`, `Failed`, " +
				"or `GONE` when its object is gone and its result not known.",
		},
		"reason":   schema.StringAttribute{Computed: true, MarkdownDescription: "Why, in one word, such as `WaitingForQuota` or `FatalExitCode`; empty while all is well."},
		"message":  schema.StringAttribute{Computed: true, MarkdownDescription: "Why, in the controller's own words."},
		"restarts": schema.Int64Attribute{Computed: true, MarkdownDescription: "How often the job restarted, for whatever reason."},
		"flavor":   schema.StringAttribute{Computed: true, MarkdownDescription: "The flavor it was admitted to."},
		"conditions": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The conditions of the job's Workload and JobSet, the oldest first.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"of":      schema.StringAttribute{Computed: true, MarkdownDescription: "`Workload` (Kueue's) or `JobSet`."},
				"type":    schema.StringAttribute{Computed: true, MarkdownDescription: "Its name, such as `Admitted` or `Completed`."},
				"status":  schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it holds."},
				"reason":  schema.StringAttribute{Computed: true, MarkdownDescription: "Why, in one word."},
				"message": schema.StringAttribute{Computed: true, MarkdownDescription: "Why, in the controller's own words."},
				"since":   schema.StringAttribute{Computed: true, MarkdownDescription: "When it became so (RFC 3339)."},
			}},
		},
		"proxy_address": schema.StringAttribute{Computed: true,
			MarkdownDescription: "Where a Pathways job takes JAX clients, within the cluster: `grpc://NAME-head-0-0.NAME:29000`. Null for other jobs."},
		"created_at":  schema.StringAttribute{Computed: true, MarkdownDescription: "When the job was created (RFC 3339).", PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"started_at":  schema.StringAttribute{Computed: true, MarkdownDescription: "When all its hosts were ready (RFC 3339); where Kueue does not tell, when the job that runs was admitted."},
		"finished_at": schema.StringAttribute{Computed: true, MarkdownDescription: "When it ended (RFC 3339)."},
	}
}
