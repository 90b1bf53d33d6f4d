// Package cohort is the tpu_kueue_cohort resource: a Kueue Cohort. It
// translates; the rules are internal/queue's.
package cohort

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	slices := func(description string) schema.Int64Attribute {
		return schema.Int64Attribute{Optional: true, MarkdownDescription: description, Validators: []validator.Int64{int64validator.AtLeast(0)}}
	}
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_kueue_cohort", Noun: "cohort", Collection: "cohorts",
		Description: "A Kueue Cohort: queues, and further cohorts, that lend each other what is idle.\n\n" +
			"Queues join it by `cohort`, cohorts by `parent`. A plain cohort needs no object: a name that queues share is one. " +
			"An object is for a cohort that has slices of its own, a parent, limits towards it, or a share. " +
			"It needs Kueue, which `tpu_job_controllers` installs: refer to its `cluster` to make the order known.",
		Name: kubeobject.Name("The cohort's name.", queue.CheckName),
		Listing: kubeobject.Listing{
			Description: "Lists the Kueue Cohorts, whatever made them. A cohort that queues only name, without an object, is not one.",
			Objects:     func() client.ObjectList { return &kueue.CohortList{} },
		},
		Attributes: map[string]schema.Attribute{
			"parent": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The cohort that this one is a member of. It need not exist as an object. " +
					"A cohort cannot be its own ancestor: Kueue would stop admitting jobs in all of them.",
				Validators: []validator.String{attr.Check("Invalid cohort", "a DNS name", queue.CheckName)},
			},
			"flavors": schema.ListNestedAttribute{
				Optional: true,
				MarkdownDescription: "Slices of the cohort itself, which its members share beside their own, and limits of what its members, together, " +
					"borrow from the parent's other members and lend to them.",
				Validators: []validator.List{listvalidator.SizeBetween(1, 64)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{
						Required:            true,
						MarkdownDescription: "The name of a `tpu_kueue_flavor`.",
						Validators:          []validator.String{attr.Check("Invalid name", "a DNS name", queue.CheckName)},
					},
					"accelerator": attr.Accelerator(),
					"slices": schema.Int64Attribute{
						Required:            true,
						MarkdownDescription: "The cohort's own slices of this flavor; 0 to set limits only.",
						Validators:          []validator.Int64{int64validator.AtLeast(0)},
					},
					"borrow_slices": slices("How many slices the members may borrow from outside the cohort. Needs `parent`. Without it, as many as there are."),
					"lend_slices":   slices("How many slices of the members, and of the cohort, others may borrow. Needs `parent`. Without it, all of them."),
				}},
			},
			"fair_sharing_weight": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The cohort's share among its parent's members, such as `2` or `0.5`, where Kueue shares fairly (`tpu_job_controllers`). " +
					"As without it 1; a member with 2 gets twice as much of what is idle; 0 comes last.",
				Validators: []validator.String{attr.Check("Invalid weight", "a number such as 1 or 0.5", func(s string) error {
					_, err := queue.ParseWeight(s)
					return err
				})},
			},
			"chips": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "All chips of the cohort's own slices: what Kueue counts.",
			},
		},
	})
}
