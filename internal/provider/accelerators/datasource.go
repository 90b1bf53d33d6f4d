package accelerators

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// NewAccelerator is the data source tpu_accelerator: one slice, described.
func NewAccelerator() datasource.DataSource { return &one{} }

type one struct{}

var _ datasource.DataSourceWithValidateConfig = &one{}

// chosen are the inputs of tpu_accelerator.
type chosen struct {
	Name, Generation, Topology, MachineType types.String
}

func (*one) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_accelerator"
}

func (*one) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := computed(description{})
	attrs["name"] = schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{attr.Check("Unknown accelerator", "a TPU type name such as v5litepod-16", checkName)},
		MarkdownDescription: "A type name such as `v5litepod-16`, `v5p-128` or `v6e-4x4`. Give this, or `topology` with `generation` or `machine_type`. Read back, it is the canonical name."}
	attrs["generation"] = schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{generationName()}, MarkdownDescription: texts["generation"] + " Goes with `topology`."}
	attrs["topology"] = schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{attr.TopologyText()}, MarkdownDescription: texts["topology"]}
	attrs["machine_type"] = schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: texts["machine_type"] + " Give it to choose among several."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Describes one TPU slice: chips, TensorCores, hosts, machine type, labels, placement, and the other shapes of its size. " +
			"It calls no API and needs no credentials. The function `describe_slice` says the same.",
		Attributes: attrs,
	}
}

func (c *chosen) get(ctx context.Context, config interface {
	GetAttribute(context.Context, path.Path, any) diag.Diagnostics
}) (diags diag.Diagnostics) {
	diags.Append(config.GetAttribute(ctx, path.Root("name"), &c.Name)...)
	diags.Append(config.GetAttribute(ctx, path.Root("generation"), &c.Generation)...)
	diags.Append(config.GetAttribute(ctx, path.Root("topology"), &c.Topology)...)
	diags.Append(config.GetAttribute(ctx, path.Root("machine_type"), &c.MachineType)...)
	return diags
}

// resolve finds the slice. ok is false, without an error, while something is
// unknown.
func (c *chosen) resolve(diags *diag.Diagnostics) (s accelerator.Slice, ok bool) {
	for _, v := range []types.String{c.Name, c.Generation, c.Topology, c.MachineType} {
		if v.IsUnknown() {
			return s, false
		}
	}
	s, at, err := c.lookup()
	if err != nil {
		diags.AddAttributeError(at, "No such accelerator", err.Error())
		return s, false
	}
	return s, true
}

func (c *chosen) lookup() (accelerator.Slice, path.Path, error) {
	switch {
	case c.Name.IsNull() && (c.Topology.IsNull() || c.Generation.IsNull() && c.MachineType.IsNull()):
		return accelerator.Slice{}, path.Root("name"), errors.New("give name, or topology with generation or machine_type")
	case !c.Name.IsNull() && (!c.Topology.IsNull() || !c.Generation.IsNull()):
		return accelerator.Slice{}, path.Root("name"), fmt.Errorf("name %q already says generation and topology; leave them out, or leave name out", c.Name.ValueString())
	}
	s, err := accelerator.Choice{Name: c.Name.ValueString(), Generation: c.Generation.ValueString(),
		Topology: c.Topology.ValueString(), MachineType: c.MachineType.ValueString()}.Resolve()
	return s, partPath(err, "name"), err
}

// partPath is the attribute that an *accelerator.Error is about; the parts of
// accelerators are called as these data sources call them.
func partPath(err error, otherwise string) path.Path {
	var e *accelerator.Error
	if errors.As(err, &e) && e.Part != "" {
		return path.Root(string(e.Part))
	}
	return path.Root(otherwise)
}

// saidAlone tells whether a value is wrong by itself: its own validator says so.
func (c *chosen) saidAlone() bool {
	wrong := func(v types.String, check func(string) error) bool {
		return !v.IsNull() && !v.IsUnknown() && check(v.ValueString()) != nil
	}
	return wrong(c.Name, checkName) || wrong(c.Generation, checkGeneration) || wrong(c.Topology, checkTopology)
}

func checkName(s string) error       { _, err := accelerator.Resolve(s); return err }
func checkGeneration(s string) error { _, err := accelerator.ParseGeneration(s); return err }
func checkTopology(s string) error   { _, err := accelerator.ParseTopology(s); return err }

func generationName() validator.String {
	return attr.Check("Unknown generation", "a TPU generation", checkGeneration)
}

func (*one) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var c chosen
	if resp.Diagnostics.Append(c.get(ctx, req.Config)...); resp.Diagnostics.HasError() {
		return
	}
	if c.saidAlone() {
		return
	}
	c.resolve(&resp.Diagnostics)
}

func (*one) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var c chosen
	if resp.Diagnostics.Append(c.get(ctx, req.Config)...); resp.Diagnostics.HasError() {
		return
	}
	s, ok := c.resolve(&resp.Diagnostics)
	if !ok {
		return
	}
	d := newDescription(s)
	for _, w := range d.Warnings {
		resp.Diagnostics.AddWarning(s.Name, w)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, d)...)
}
