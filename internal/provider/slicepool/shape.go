package slicepool

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

var _ resource.ResourceWithValidateConfig = (*Resource)(nil)

// shape finds the slice that a configuration asks for. ok is false while
// something of it is unknown. topology and machine are those of the
// configuration: null where the accelerator decides.
func shape(name, topology, machine types.String) (s accelerator.Slice, ok bool, err error) {
	if name.IsUnknown() || topology.IsUnknown() || machine.IsUnknown() {
		return s, false, nil
	}
	s, err = accelerator.Choice{Name: name.ValueString(), Topology: topology.ValueString(), MachineType: machine.ValueString()}.Resolve()
	return s, true, err
}

// configuredShape is shape for a configuration, whose mistakes it reports.
func configuredShape(config model, diags *diag.Diagnostics) (s accelerator.Slice, known bool) {
	checkSpelling(config, diags)
	s, known, err := shape(config.Accelerator, config.Topology, config.MachineType)
	if err != nil {
		diags.AddAttributeError(partPath(err), "Invalid accelerator", err.Error())
	}
	return s, known && !diags.HasError()
}

// checkSpelling wants topology and machine type as GKE and Compute Engine write
// them: Terraform keeps in state what is configured, and these two are compared
// with what GKE has and read by other resources.
func checkSpelling(config model, diags *diag.Diagnostics) {
	for _, c := range []struct {
		at    string
		given types.String
		write func(string) (string, error)
	}{
		{"topology", config.Topology, func(s string) (string, error) {
			t, err := accelerator.ParseTopology(s)
			return t.String(), err
		}},
		{"machine_type", config.MachineType, accelerator.ParseMachineType},
	} {
		if c.given.IsNull() || c.given.IsUnknown() {
			continue
		}
		want, err := c.write(c.given.ValueString())
		if err == nil && want != c.given.ValueString() {
			diags.AddAttributeError(path.Root(c.at), "Invalid accelerator", fmt.Sprintf("%s = %q means %s: write %[1]s = %[3]q", c.at, c.given.ValueString(), want))
		}
	}
}

// partPath is the attribute that an *accelerator.Error is about.
func partPath(err error) path.Path {
	var e *accelerator.Error
	if errors.As(err, &e) {
		switch e.Part {
		case accelerator.PartTopology:
			return path.Root("topology")
		case accelerator.PartMachine:
			return path.Root("machine_type")
		case accelerator.PartName, accelerator.PartGeneration:
		}
	}
	return path.Root("accelerator")
}

// ValidateConfig implements resource.ResourceWithValidateConfig: accelerator,
// topology and machine type have to go together.
func (r *Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	for at, into := range map[string]*types.String{"accelerator": &config.Accelerator, "topology": &config.Topology, "machine_type": &config.MachineType} {
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(at), into)...)
	}
	if resp.Diagnostics.HasError() || config.saidAlone() {
		return
	}
	configuredShape(config, &resp.Diagnostics)
}

// saidAlone tells whether a value is wrong by itself: its own validator says so.
func (m *model) saidAlone() bool {
	for _, c := range []struct {
		value types.String
		check func(string) error
	}{
		{m.Accelerator, checkAccelerator},
		{m.Topology, func(s string) error { _, err := accelerator.ParseTopology(s); return err }},
		{m.MachineType, func(s string) error { _, err := accelerator.ParseMachineType(s); return err }},
	} {
		if !c.value.IsNull() && !c.value.IsUnknown() && c.check(c.value.ValueString()) != nil {
			return true
		}
	}
	return false
}

// checkAccelerator accepts a type name, or a generation alone.
func checkAccelerator(s string) error {
	if _, err := accelerator.ParseGeneration(s); err == nil {
		return nil
	}
	_, err := accelerator.Resolve(s)
	return err
}
