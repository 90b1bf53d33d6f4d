package attr

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// acceleratorName checks type names, and warns of those that GKE may refuse.
type acceleratorName struct{ stringCheck }

// AcceleratorName accepts what accelerator.Resolve does.
func AcceleratorName() validator.String {
	return acceleratorName{stringCheck{
		summary: "Unknown accelerator", wants: "a TPU type name such as v5litepod-16, or a generation and topology such as v6e-4x4",
		check: func(s string) error {
			_, err := accelerator.Resolve(s)
			return err
		},
	}}
}

func (v acceleratorName) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	v.stringCheck.ValidateString(ctx, req, resp)
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	s, err := accelerator.Resolve(req.ConfigValue.ValueString())
	if err != nil {
		return
	}
	for _, w := range s.Warnings() {
		at, detail := place(req.Path, fmt.Sprintf("= %q", req.ConfigValue.ValueString()), w)
		resp.Diagnostics.AddAttributeWarning(at, "Doubtful accelerator", detail)
	}
}

// TopologyText accepts 4x4 and 4x4x8; whether a generation has it is for
// whoever knows the generation.
func TopologyText() validator.String {
	return Check("Invalid topology", "a topology such as 4x4 or 4x4x8", func(s string) error {
		_, err := accelerator.ParseTopology(s)
		return err
	})
}

// MachineType accepts the TPU machine types.
func MachineType() validator.String {
	return Check("Unknown machine type", "a TPU machine type such as ct6e-standard-4t", func(s string) error {
		_, err := accelerator.ParseMachineType(s)
		return err
	})
}
