// Package flavor is the tpu_kueue_flavor resource: a Kueue ResourceFlavor for
// one kind of slice. It translates; what a flavor looks like is
// internal/queue's.
package flavor

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_kueue_flavor", Noun: "flavor", Collection: "resourceFlavors",
		Description: "A Kueue ResourceFlavor: one kind of TPU slice that queues hand out.\n\n" +
			"A flavor is named after the slice, not after how many there are, so it never changes when slices are added. " +
			"It needs Kueue, which `tpu_job_controllers` installs: refer to its `cluster` to make the order known.",
		Name:       kubeobject.Name("The flavor's name, such as `v5e-4x4`.", queue.CheckName),
		Attributes: attributes(),
		WaitDelete: 5 * time.Minute,
	})
}

func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"accelerator": attr.Accelerator(),
		"provisioning": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The capacity model the flavor is restricted to: `on_demand` or `spot`. Without it the flavor stands for all of them; " +
				"on a cluster with spot and on-demand slices of one topology each needs a flavor of its own, or both are handed out twice.",
			Validators: []validator.String{stringvalidator.OneOf(queue.Provisionings...)},
		},
		"node_labels": schema.MapAttribute{
			Optional:            true,
			ElementType:         types.StringType,
			MarkdownDescription: "Further labels of the nodes that the flavor stands for. Those of the accelerator are added by themselves; Kueue allows 8 together.",
			Validators:          []validator.Map{attr.KubernetesLabels()},
		},
		"topology": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The topology of a slice, such as `4x4`.",
		},
		"chips_per_slice": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "Chips in one slice: what one slice of quota counts as in Kueue.",
		},
	}
}
