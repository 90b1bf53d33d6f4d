package jobcontrollers

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	fwattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
)

func kueueAttribute() schema.SingleNestedAttribute {
	_, versions := controllers.Versions()
	return schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		Default: objectdefault.StaticValue(defaults(kueueTypes, map[string]fwattr.Value{
			"enabled": types.BoolValue(true), "version": types.StringValue(controllers.KueueVersion), "replicas": types.Int64Value(1),
			"pods_ready_timeout": types.StringValue(defaultPodsReady), "recovery_timeout": types.StringValue(defaultRecovery),
			"block_admission": types.BoolValue(false), "fair_sharing": types.BoolValue(false), "manage_jobs_without_queue": types.BoolValue(false),
			"undeclared_resources": types.StringValue(undeclaredIgnored), "visibility": types.BoolValue(true), "queue_metrics": types.BoolValue(false),
		})),
		MarkdownDescription: "The Kueue controller.",
		Attributes: map[string]schema.Attribute{
			"enabled":                   enabled("Kueue"),
			"version":                   version("Kueue", versions),
			"replicas":                  replicas(),
			"resources":                 resourcesAttribute(),
			"client_qps":                clientQPS(),
			"client_burst":              clientBurst(),
			"frameworks":                frameworksAttribute(),
			"pods_ready_timeout":        podsReadyTimeout(),
			"recovery_timeout":          recoveryTimeout(),
			"requeue_limit":             requeueLimit(),
			"requeue_backoff":           requeueBackoff("Pause before a job whose pods were not ready in time is admitted again, in whole seconds, such as `60s`; it doubles each time. Default Kueue's 60 seconds."),
			"requeue_max_backoff":       requeueBackoff("The longest pause of `requeue_backoff`. Default Kueue's hour."),
			"block_admission":           off("Whether to admit one job at a time in the whole cluster: the next one waits until all pods of the one before are ready. For clusters whose queues have a higher quota than there are slices."),
			"fair_sharing":              off("Whether queues of a cohort share idle quota by weight."),
			"fair_sharing_preemption":   fairSharingPreemption(),
			"admission_fair_sharing":    admissionFairSharing(),
			"manage_jobs_without_queue": off("Whether to hold back jobs that name no queue, rather than let them start at once."),
			"namespace_selector": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Labels of the namespaces whose jobs Kueue's webhooks see. Without it, all but the system namespaces: then no JobSet or Job can be made anywhere while Kueue is down. Pods of other namespaces never depend on Kueue.",
			},
			"excluded_resources": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Prefixes of resources that no queue counts, such as `networking.gke.io/`. Chips cannot be left out.",
			},
			"undeclared_resources": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(undeclaredIgnored),
				Validators: []validator.String{stringvalidator.OneOf(undeclaredIgnored, undeclaredBlocks)},
				MarkdownDescription: "What becomes of a job that requests a resource its queue has no quota of, cpu and memory included: `ignore` (the default) admits it, `block` never does. " +
					"Kueue v0.15.2 cannot tell: there, `ignore` leaves cpu, memory and ephemeral storage out of every queue.",
			},
			"visibility": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether to serve the aggregated API that tells the order of waiting jobs. Turn it off where aggregated APIs are not wanted: while Kueue is down, Kubernetes cannot delete namespaces on a cluster that has it.",
			},
			"queue_metrics": off("Whether to export quota and usage of each queue as metrics."),
			"workload_retention": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long the workload of a finished job is kept, such as `168h`. Without it, as long as the job.",
			},
			"feature_gates": featureGates("LocalQueueMetrics = true"),
		},
	}
}

func frameworksAttribute() schema.ListAttribute {
	return schema.ListAttribute{
		Optional: true, ElementType: types.StringType,
		Validators: []validator.List{listvalidator.SizeAtLeast(1)},
		MarkdownDescription: "The kinds of jobs that Kueue manages. Default `" + strings.Join(controllers.Frameworks, "` and `") + "`, which must be among them. " +
			"Each further one, such as `ray.io/rayjob` or `trainer.kubeflow.org/trainjob`, adds webhooks that keep its objects from being made while Kueue is down. " +
			"Those for single pods, Deployments, StatefulSets and LeaderWorkerSets are refused: every namespace's pods would depend on Kueue.",
	}
}

func podsReadyTimeout() schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(defaultPodsReady),
		MarkdownDescription: "How long an admitted job may wait for all its pods before it is put back in the queue. Default `" + defaultPodsReady + "`, as long as a flex-start request may wait for capacity: " +
			"Kueue's own 30 minutes would cancel such a request, or one for nodes that are still being made, and start again.",
	}
}

func recoveryTimeout() schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(defaultRecovery),
		MarkdownDescription: "How long a running job may miss pods, after a preemption for example, before it is put back in the queue and others may use its slices. Default `" + defaultRecovery + "`.",
	}
}

func requeueLimit() schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional: true, Validators: []validator.Int64{int64validator.Between(0, 1000)},
		MarkdownDescription: "How often a job whose pods were not ready in time is admitted again before it is deactivated. Without it, for ever.",
	}
}

func requeueBackoff(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description}
}

func fairSharingPreemption() schema.ListAttribute {
	return schema.ListAttribute{
		Optional: true, ElementType: types.StringType,
		Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
		MarkdownDescription: "Which preemptions between queues `fair_sharing` allows: `LessThanOrEqualToFinalShare`, `LessThanInitialShare`, or both in this order, which is the default.",
	}
}

func admissionFairSharing() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Orders the jobs of queues that ask for it by what their LocalQueues used before, so that a team that used much waits longer. Off without it.",
		Attributes: map[string]schema.Attribute{
			"usage_half_life": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(short(defaultUsage.HalfLife.Duration)),
				MarkdownDescription: "After how long past usage counts half. Default `168h`.",
			},
			"usage_sampling_interval": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(short(defaultUsage.Sampling.Duration)),
				MarkdownDescription: "How often usage is looked at. Default `5m`.",
			},
		},
	}
}
