// Package flavor is the tpu_kueue_flavor resource: a Kueue ResourceFlavor for
// one kind of slice, with its Topology. It translates; what a flavor looks like
// is internal/queue's.
package flavor

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NewResource makes the resource.
func NewResource() resource.Resource {
	return kubeobject.New[model](kubeobject.Kind{
		Type: "tpu_kueue_flavor", Noun: "flavor", Collection: "resourceFlavors",
		Description: "A Kueue ResourceFlavor: one kind of TPU slice that queues hand out, or, without an `accelerator`, hosts whose cpu and memory they count.\n\n" +
			"A flavor is named after the slice, not after how many there are, so it never changes when slices are added. " +
			"It needs Kueue, which `tpu_job_controllers` installs: refer to its `cluster` to make the order known.",
		Name:       kubeobject.Name("The flavor's name, such as `v5e-4x4`.", queue.CheckName),
		Attributes: attributes(),
		Listing: kubeobject.Listing{
			Description: "Lists the Kueue ResourceFlavors, whatever made them, but those of TPU slices that this version of the provider does not know.",
			Objects:     func() client.ObjectList { return &kueue.ResourceFlavorList{} },
			Hidden: func(o client.Object) bool {
				f, ok := o.(*kueue.ResourceFlavor)
				if !ok || !queue.OfSlices(f) {
					return false
				}
				_, known := queue.SliceOf(f.Spec.NodeLabels)
				return !known
			},
		},
		WaitDelete: 5 * time.Minute,
	})
}

// sliceOrHosts is the accelerator, which a flavor of hosts has not.
func sliceOrHosts() schema.StringAttribute {
	a := attr.Accelerator()
	a.Required, a.Optional = false, true
	a.MarkdownDescription += " Without it the flavor stands for hosts: it selects the nodes that `node_labels` say, or none in particular, and a queue counts cpu and memory by it (`host_flavors` of `tpu_kueue_queue`)."
	return a
}

func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"accelerator": sliceOrHosts(),
		"provisioning": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "The capacity model the flavor is restricted to: `on_demand`, `spot`, `flex_start`, `queued` or `reservation`. " +
				"Without it the flavor stands for all of them; on a cluster with slices of one topology and several models each needs a flavor of its own, or slices are handed out twice. " +
				"Slices of a reservation, and queued ones, carry the labels of on-demand slices too: beside such a flavor, keep on-demand slices apart by `node_labels`.",
			Validators: []validator.String{stringvalidator.OneOf(queue.Provisionings...)},
		},
		"reservation": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "With `provisioning = \"reservation\"`: the reservation's name, as its nodes carry it in `cloud.google.com/reservation-name`.",
		},
		"node_labels": schema.MapAttribute{
			Optional:            true,
			ElementType:         types.StringType,
			MarkdownDescription: "Further labels of the nodes that the flavor stands for. Those of the accelerator and the provisioning are added by themselves; Kueue allows 8 together.",
			Validators:          []validator.Map{attr.KubernetesLabels()},
		},
		"node_taints": schema.ListNestedAttribute{
			Optional: true,
			MarkdownDescription: "Taints of the flavor's nodes that a job must tolerate by itself to get it (up to 8): for flavors that jobs ask for on purpose. " +
				"Kueue looks at `NoSchedule` and `NoExecute` only.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":    schema.StringAttribute{Required: true, MarkdownDescription: "The taint's key."},
				"value":  schema.StringAttribute{Optional: true, MarkdownDescription: "The taint's value."},
				"effect": schema.StringAttribute{Required: true, MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`.", Validators: []validator.String{stringvalidator.OneOf(queue.TaintEffects...)}},
			}},
		},
		"tolerations": schema.ListNestedAttribute{
			Optional: true,
			MarkdownDescription: "Further tolerations that jobs get together with the flavor. Those of TPU nodes, and of `spot` and `queued` ones, are added by themselves; " +
				"Kueue allows 8 together.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":      schema.StringAttribute{Optional: true, MarkdownDescription: "The taint's key. Without it every taint is tolerated; `operator` is then `Exists`."},
				"operator": schema.StringAttribute{Optional: true, MarkdownDescription: "`Equal` (as without it) or `Exists`, whatever the value.", Validators: []validator.String{stringvalidator.OneOf("Equal", "Exists")}},
				"value":    schema.StringAttribute{Optional: true, MarkdownDescription: "The taint's value."},
				"effect":   schema.StringAttribute{Optional: true, MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`; without it, all.", Validators: []validator.String{stringvalidator.OneOf(queue.TaintEffects...)}},
				"seconds":  schema.Int64Attribute{Optional: true, MarkdownDescription: "With `NoExecute`: for how long."},
			}},
		},
		"topology_aware": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Lets Kueue see where the flavor's hosts are (a Kueue Topology): for jobs on a part of a v6e slice, on a slice formed of tpu7x cubes, " +
				"or close together. `{}` makes a Topology of the flavor's name with the slice's own levels. " +
				"With it, Kueue lets labels, tolerations and levels never change: a change makes a new flavor, and since Kueue keeps the old one while a queue names it, it needs a new `name` too.",
			Attributes: map[string]schema.Attribute{
				"levels": schema.ListAttribute{
					Optional: true, ElementType: types.StringType,
					MarkdownDescription: "Node labels, the widest first (up to 16; `kubernetes.io/hostname` only as the last). Without it: the parts that the slice can be divided in (v6e) or is formed of (tpu7x), " +
						"or else block, sub-block and host.",
				},
				"name": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "A Topology that exists already, instead of one of its own.",
				},
			},
		},
		"topology": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The topology of a slice, such as `4x4`; none of hosts.",
		},
		"chips_per_slice": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "Chips in one slice: what one slice of quota counts as in Kueue; none of hosts.",
		},
		"added_tolerations": schema.ListAttribute{
			Computed:            true,
			ElementType:         types.StringType,
			MarkdownDescription: "The tolerations that follow from the accelerator and the provisioning, as `key=value:effect`, or `key:effect` for every value.",
		},
	}
}
