// Package queue is the tpu_kueue_queue resource: a Kueue ClusterQueue and one
// LocalQueue of the same name in each namespace that may use it. It
// translates; what the objects look like is internal/queue's.
package queue

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_kueue_queue", Noun: "queue", Collection: "clusterQueues",
		Description: "A queue for training jobs: a Kueue ClusterQueue with its quota, and a LocalQueue of the same name in every namespace that may use it.\n\n" +
			"Quotas are in slices, which is what jobs ask for; Kueue counts them in chips. " +
			"It needs Kueue, which `tpu_job_controllers` installs: refer to its `cluster` to make the order known.\n\n" +
			"A quota that is lowered evicts nobody: what runs goes on, and nothing new starts until it fits.",
		Name:       kubeobject.Name("The queue's name, which jobs give as `queue`. Up to 63 characters.", kq.CheckQueueName),
		Attributes: attributes(),
		Listing: kubeobject.Listing{
			Description: "Lists the Kueue ClusterQueues that hand out TPU slices, whatever made them.",
			Objects:     func() client.ObjectList { return &kueue.ClusterQueueList{} },
			Hidden: func(o client.Object) bool {
				q, ok := o.(*kueue.ClusterQueue)
				return ok && !kq.HandsOutSlices(q)
			},
		},
		DeleteDescription: "How long to wait until no job holds quota any more (default `10m`).",
	})
}

func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"flavors": schema.ListNestedAttribute{
			Required:            true,
			MarkdownDescription: "The slices that the queue may hand out, the preferred flavor first: a job goes to the first one that it fits.",
			Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.SizeAtMost(64)},
			NestedObject:        schema.NestedAttributeObject{Attributes: flavorAttributes()},
		},
		"host_flavors": schema.ListNestedAttribute{
			Optional: true,
			MarkdownDescription: "Flavors that count cpu and memory for all jobs of the queue, on TPU hosts and on others. " +
				"Use this, with a `tpu_kueue_flavor` that has no accelerator and selects no nodes, when jobs have helpers or heads on CPU nodes. Without it and without `cpu` and `memory` in `flavors`, neither is counted.",
			Validators: []validator.List{listvalidator.SizeAtLeast(1), listvalidator.SizeAtMost(64)},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":   flavorName("The name of a ResourceFlavor."),
				"cpu":    hostQuota("The queue's share of cpu, in cores. All host flavors count it, or none."),
				"memory": hostQuota("The queue's share of memory. All host flavors count it, or none."),
			}},
		},
		"namespaces": schema.SetAttribute{
			Optional:            true,
			ElementType:         types.StringType,
			MarkdownDescription: "The namespaces whose jobs may use the queue. Each gets a LocalQueue of the queue's name, and must exist.",
			Validators:          []validator.Set{setvalidator.ValueStringsAre(attr.Check("Invalid namespace", "a namespace name", kq.CheckNamespace))},
		},
		"namespace_stop_policies": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "`Hold` or `HoldAndDrain` by namespace: as `stop_policy`, for the jobs of that namespace only.",
			Validators:          []validator.Map{mapvalidator.ValueStringsAre(stringvalidator.OneOf(string(kueue.Hold), string(kueue.HoldAndDrain)))},
		},
		"namespace_weights": schema.MapAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Weights by namespace in admission fair sharing (see `admission_mode`): the jobs of a namespace with a higher one go first although it used more. Without it, 1.",
			Validators:          []validator.Map{mapvalidator.ValueStringsAre(weight())},
		},
		"cohort": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "The cohort in which queues lend each other what is idle.",
			Validators:          []validator.String{attr.Check("Invalid cohort", "a DNS name", kq.CheckName)},
		},
		"queueing_strategy": choice("`BestEffortFIFO` (default): a job that does not fit lets smaller ones pass. `StrictFIFO`: it holds up everything behind it.",
			kueue.BestEffortFIFO, kueue.StrictFIFO),
		"stop_policy": choice("`None` (default): the queue is open. `Hold`: what runs goes on, nothing new is admitted. "+
			"`HoldAndDrain`: what runs is evicted too, and goes back to waiting.", kueue.None, kueue.Hold, kueue.HoldAndDrain),
		"preempt_within_queue": choice("Whom a waiting job may evict from this queue: `LowerPriority` (default), `LowerOrNewerEqualPriority` or `Never`.",
			kq.DefaultPreemption.WithinQueue, kueue.PreemptionPolicyLowerOrNewerEqualPriority, kueue.PreemptionPolicyNever),
		"reclaim_within_cohort": choice("Whom a waiting job may evict from other queues that borrowed this queue's slices: `Never` (default), `LowerPriority` or `Any`.",
			kq.DefaultPreemption.ReclaimWithinCohort, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny),
		"borrow_within_cohort": choice("Whom a waiting job may evict from other queues when it has to borrow itself: `Never` (default) or `LowerPriority`. "+
			"Needs `reclaim_within_cohort`. Kueue does not use it with fair sharing.", kq.DefaultPreemption.BorrowWithinCohort, kueue.BorrowWithinCohortPolicyLowerPriority),
		"borrow_max_priority": schema.Int32Attribute{
			Optional:            true,
			MarkdownDescription: "With `borrow_within_cohort = \"LowerPriority\"`: only jobs up to this priority are evicted. Without it, all of lower priority than the waiting one.",
		},
		"when_can_borrow": choice("What a job does that fits the flavor only by borrowing: `MayStopSearch` (default) takes it, `TryNextFlavor` looks at the next flavors first.",
			kq.DefaultFungibility.WhenCanBorrow, kueue.TryNextFlavor),
		"when_can_preempt": choice("What a job does that fits the flavor only by evicting others: `TryNextFlavor` (default) looks at the next flavors first, `MayStopSearch` takes it.",
			kq.DefaultFungibility.WhenCanPreempt, kueue.MayStopSearch),
		"flavor_preference": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Which flavor a job takes when every one needs borrowing or evicting: `BorrowingOverPreemption` (Kueue's default) or `PreemptionOverBorrowing`. " +
				"Needs `TryNextFlavor` in both `when_can_borrow` and `when_can_preempt`.",
			Validators: []validator.String{stringvalidator.OneOf(string(kueue.BorrowingOverPreemption), string(kueue.PreemptionOverBorrowing))},
		},
		"fair_sharing_weight": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The queue's weight when what is idle in a cohort is shared out (`fair_sharing` of `tpu_job_controllers`): twice the weight, twice the share. " +
				"With 0 it gets what nobody else wants. Without it, 1.",
			Validators: []validator.String{weight()},
		},
		"admission_mode": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "`UsageBasedAdmissionFairSharing`: jobs of namespaces that used less go first (`admission_fair_sharing` of `tpu_job_controllers`). " +
				"`NoAdmissionFairSharing`: they go by priority and age, which is also what happens without it.",
			Validators: []validator.String{stringvalidator.OneOf(string(kueue.UsageBasedAdmissionFairSharing), string(kueue.NoAdmissionFairSharing))},
		},
		"admission_checks": schema.ListNestedAttribute{
			Optional:            true,
			MarkdownDescription: "What a job must pass besides having quota, such as a `tpu_kueue_admission_check` that asks for its nodes.",
			Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.SizeAtMost(64)},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": flavorName("The name of the AdmissionCheck."),
				"on_flavors": schema.SetAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "Only for jobs that get one of these flavors of the queue. Without it, for all.",
					Validators:          []validator.Set{setvalidator.SizeBetween(1, 64)},
				},
			}},
		},
		"chips": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "All chips of the queue's own quota.",
		},
		"status": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "`Active` when the queue admits jobs, else Kueue's reason why not, such as `FlavorNotFound` or `Stopped`. The data source `tpu_queue_status` says more.",
		},
	}
}

func flavorAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": flavorName("The name of a `tpu_kueue_flavor`."),
		"accelerator": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: attr.Accelerator().MarkdownDescription + " Not needed with `slice_pool`.",
			Validators:          []validator.String{attr.AcceleratorName()},
			PlanModifiers:       followsString("accelerator"),
		},
		"slice_pool": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "The slice pool whose slices these are: write `slice_pool = tpu_slice_pool.NAME`, the whole resource. The quota is then all of its slices, or `slices` of them. " +
				"When the pool shrinks or goes, it lowers the quota before it takes slices away, so that no job is admitted to slices that are going; when it grows or comes back, the quota follows. " +
				"Several queues may share a pool, each with its `slices`: it lowers them until they fit together, what no job holds first. A plan warns when they hand out more than the pool has.",
			Attributes: map[string]schema.Attribute{
				"id": schema.StringAttribute{Required: true, MarkdownDescription: "The pool's `id`."},
				"accelerator": schema.StringAttribute{Required: true, MarkdownDescription: "The pool's `accelerator`.",
					Validators: []validator.String{attr.AcceleratorName()}},
				"slice_count": schema.Int64Attribute{Required: true, MarkdownDescription: "The pool's `slice_count`.",
					Validators: []validator.Int64{int64validator.AtLeast(0)}},
			},
		},
		"slices": schema.Int64Attribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The queue's own slices of this flavor. With `slice_pool` it is all of the pool's unless given.",
			Validators:          []validator.Int64{int64validator.AtLeast(0)},
			PlanModifiers:       followsInt64("slice_count"),
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
		"cpu":    hostQuota("The queue's share of the cpu of these slices' hosts, in cores. All flavors count it, or none; without it, it is not counted."),
		"memory": hostQuota("The queue's share of the memory of these slices' hosts. All flavors count it, or none; without it, it is not counted."),
		"chips": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "The chips of the queue's own slices, as Kueue counts them.",
		},
	}
}

func flavorName(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Required: true, MarkdownDescription: description,
		Validators: []validator.String{attr.Check("Invalid name", "a DNS name", kq.CheckName)},
	}
}

// choice is a string with a default, the first of all.
func choice[T ~string](description string, all ...T) schema.StringAttribute {
	var words []string
	for _, v := range all {
		words = append(words, string(v))
	}
	return schema.StringAttribute{
		Optional: true, Computed: true, MarkdownDescription: description,
		Default:    stringdefault.StaticString(words[0]),
		Validators: []validator.String{stringvalidator.OneOf(words...)},
	}
}

func hostQuota(description string) schema.SingleNestedAttribute {
	quantity := func(description string, required bool) schema.StringAttribute {
		return schema.StringAttribute{
			Required: required, Optional: !required, MarkdownDescription: description,
			Validators: []validator.String{attr.Check("Invalid quantity", "a quantity such as 400 or 1Ti", kq.CheckQuantity)},
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"quota":  quantity("Its own, such as `400` or `1Ti`.", true),
			"borrow": quantity("How much more it may borrow from its cohort. Without it, as much as there is.", false),
			"lend":   quantity("How much of its own others of its cohort may borrow. Without it, all.", false),
		},
	}
}

func weight() validator.String {
	return attr.Check("Invalid weight", "0, or a number of more than a billionth", func(s string) error {
		_, err := kq.ParseWeight(s)
		return err
	})
}
