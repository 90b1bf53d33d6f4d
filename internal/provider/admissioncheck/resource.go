// Package admissioncheck is the tpu_kueue_admission_check resource: a Kueue
// AdmissionCheck and, where it asks the autoscaler for machines, its
// ProvisioningRequestConfig. It translates; the rules are internal/queue's.
package admissioncheck

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_kueue_admission_check", Noun: "admission check", Collection: "admissionChecks",
		Description: "A Kueue AdmissionCheck: something that a job's admission waits for beside its quota, once a queue names it.\n\n" +
			"With `provisioning_request` it asks the cluster's autoscaler for all machines of a job at once, and the job starts when they are promised " +
			"(slices with `provisioning = { model = \"queued\" }`, class `queued-provisioning.gke.io`). " +
			"Flex-start slices need none: their jobs' pods wait for the autoscaled pool. Other controllers have parameters of their own.",
		Name:       kubeobject.Name("The check's name, which queues give. With `provisioning_request` up to 63 characters without dots.", queue.CheckName),
		Attributes: attributes(),
		Listing: kubeobject.Listing{
			Description: "Lists Kueue's AdmissionChecks, whatever made them.",
			Objects:     func() client.ObjectList { return &kueue.AdmissionCheckList{} },
		},
		WaitDelete: 5 * time.Minute,
	})
}

func attributes() map[string]schema.Attribute {
	seconds := func(value int64, description string) schema.Int64Attribute {
		return schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(value),
			MarkdownDescription: description, Validators: []validator.Int64{int64validator.Between(0, 1<<31-1)}}
	}
	return map[string]schema.Attribute{
		"controller": schema.StringAttribute{
			Optional: true, Computed: true,
			Default: stringdefault.StaticString(queue.ProvisioningController),
			MarkdownDescription: "Who answers: `" + queue.ProvisioningController + "` (the default), `accelerator.gke.io/slice` (slices formed of tpu7x cubes), " +
				"`kueue.x-k8s.io/multikueue`, or one of your own. Changing it makes a new check.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"parameters": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "The object that configures a check of another controller.",
			Attributes: map[string]schema.Attribute{
				"api_group": schema.StringAttribute{Required: true, MarkdownDescription: "Its API group, such as `kueue.x-k8s.io`."},
				"kind":      schema.StringAttribute{Required: true, MarkdownDescription: "Its kind, such as `MultiKueueConfig`."},
				"name":      schema.StringAttribute{Required: true, MarkdownDescription: "Its name."},
			},
		},
		"status": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "`Active` when the check's controller answers for it, else its reason why not, or `Unknown` before it has said anything. " +
				"Queues that name a check that is not active admit no jobs.",
		},
		"provisioning_request": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "How machines are asked for (a ProvisioningRequestConfig of the check's name).",
			Attributes: map[string]schema.Attribute{
				"class": schema.StringAttribute{Required: true, MarkdownDescription: "The provisioning class, such as `queued-provisioning.gke.io`."},
				"parameters": schema.MapAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "Parameters of the class, such as `maxRunDurationSeconds`; up to 100, of up to 255 characters.",
				},
				"managed_resources": schema.SetAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "Only pods that ask for one of these resources, such as `google.com/tpu`, are part of the request; a job without such pods passes. Without it, all pods are.",
				},
				"node_selector": schema.MapAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "Node labels that the job's pods select once the machines are there (up to 8), each with the key of the request's details that has the value: " +
						"for GKE `{ \"autoscaling.gke.io/provisioning-request\" = \"ResizeRequestName\" }`.",
				},
				"pod_set_merge_policy": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "Merge equal pods of a job in the request: `IdenticalPodTemplates`, or `IdenticalWorkloadSchedulingRequirements` " +
						"where only what scheduling looks at is equal. Without it they are not merged.",
					Validators: []validator.String{stringvalidator.OneOf(queue.MergePolicies...)},
				},
				"retry_limit":        seconds(int64(queue.DefaultRetry.Limit), "How often a request that failed is made again before the job is given up (deactivated). The default is 3; 0 never."),
				"retry_base_seconds": seconds(int64(queue.DefaultRetry.BaseSeconds), "How long before the first retry; doubled for each further one. The default is 60."),
				"retry_max_seconds":  seconds(int64(queue.DefaultRetry.MaxSeconds), "The longest time before a retry. The default is 1800."),
			},
		},
	}
}
