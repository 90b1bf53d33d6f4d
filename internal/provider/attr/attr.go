// Package attr holds the schema pieces that several resources share: the
// cluster they live on, accelerators, names and labels, each with its
// description, its plan-time checks and its effect on replacement. It knows
// Terraform's schema language, never an API.
package attr

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Cluster is the required `cluster` attribute: the path of the GKE cluster an
// object lives on. Another cluster means another object.
func Cluster() schema.StringAttribute {
	return schema.StringAttribute{
		Required: true,
		MarkdownDescription: "The GKE cluster this lives on, as `projects/PROJECT/locations/LOCATION/clusters/CLUSTER`: " +
			"the `id` of a `tpu_training_cluster`. The cluster may be created in the same apply. Changing it makes a new object.",
		Validators:    []validator.String{ClusterPath()},
		PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// Accelerator is the required `accelerator` attribute: a TPU type name. The
// caller adds what a change does.
func Accelerator() schema.StringAttribute {
	return schema.StringAttribute{
		Required: true,
		MarkdownDescription: "The TPU slice: a type name such as `v5litepod-16`, `v5p-128` or `v6e-16`, or a generation with a topology such as `v6e-4x4`. " +
			"Type names of v4, v5p, tpu7x and tpu7 count TensorCores (`v5p-8` is 4 chips), those of v5e and v6e count chips.",
		Validators: []validator.String{AcceleratorName()},
	}
}

// Name is a required name that cannot change: 1 to maxLength characters,
// lowercase letters, digits and dashes, as RFC 1035 wants it (GKE, and most of
// Kubernetes).
func Name(description string, maxLength int) schema.StringAttribute {
	return schema.StringAttribute{
		Required:            true,
		MarkdownDescription: description + " Changing it makes a new object.",
		Validators:          []validator.String{DNSLabel(maxLength)},
		PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// ID is the computed `id`; format says what it looks like.
func ID(format string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed:            true,
		MarkdownDescription: "The path of this object, also its import id: `" + format + "`.",
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}
