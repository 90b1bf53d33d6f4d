package accelerators

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// NewTopologies is the data source tpu_accelerator_topologies: the catalogue,
// filtered.
func NewTopologies() datasource.DataSource { return &many{} }

type many struct{}

var _ datasource.DataSourceWithValidateConfig = &many{}

type topologies struct {
	Generation  types.String `tfsdk:"generation"`
	Topology    types.String `tfsdk:"topology"`
	MachineType types.String `tfsdk:"machine_type"`
	Chips       types.Int64  `tfsdk:"chips"`
	Hosts       types.Int64  `tfsdk:"hosts"`
	MinChips    types.Int64  `tfsdk:"min_chips"`
	MaxChips    types.Int64  `tfsdk:"max_chips"`
	MinHosts    types.Int64  `tfsdk:"min_hosts"`
	MaxHosts    types.Int64  `tfsdk:"max_hosts"`
	Compact     types.Bool   `tfsdk:"compact"`
	Topologies  []slice      `tfsdk:"topologies"`
}

func (*many) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_accelerator_topologies"
}

func (*many) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	number := func(text string) schema.Int64Attribute {
		return schema.Int64Attribute{Optional: true, MarkdownDescription: text, Validators: []validator.Int64{int64validator.AtLeast(1)}}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists TPU slices: every topology on every machine type it can be made of, by generation and size. " +
			"All filters are optional and must all hold. It calls no API and needs no credentials. The function `list_topologies` says the same of one generation.",
		Attributes: map[string]schema.Attribute{
			"generation":   schema.StringAttribute{Optional: true, MarkdownDescription: texts["generation"], Validators: []validator.String{generationName()}},
			"topology":     schema.StringAttribute{Optional: true, MarkdownDescription: texts["topology"], Validators: []validator.String{attr.TopologyText()}},
			"machine_type": schema.StringAttribute{Optional: true, MarkdownDescription: texts["machine_type"] + " With `generation`, its size (`8t`) will do."},
			"chips":        number("Exactly this many chips."),
			"hosts":        number("Exactly this many hosts."),
			"min_chips":    number("At least this many chips."),
			"max_chips":    number("At most this many chips."),
			"min_hosts":    number("At least this many hosts."),
			"max_hosts":    number("At most this many hosts."),
			"compact":      schema.BoolAttribute{Optional: true, MarkdownDescription: "Only what a bare type name means: of each size the most compact topology, on the first machine type that the other filters let through, its default one if there are none."},
			"topologies": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The slices found.",
				NestedObject: schema.NestedAttributeObject{Attributes: computed(slice{})}},
		},
	}
}

// filter translates. Unknown values count as not given: there is less to
// refuse then.
func (m *topologies) filter(diags *diag.Diagnostics) accelerator.Filter {
	f := accelerator.Filter{
		MachineType: m.MachineType.ValueString(),
		Chips:       int(m.Chips.ValueInt64()), Hosts: int(m.Hosts.ValueInt64()),
		MinChips: int(m.MinChips.ValueInt64()), MaxChips: int(m.MaxChips.ValueInt64()),
		MinHosts: int(m.MinHosts.ValueInt64()), MaxHosts: int(m.MaxHosts.ValueInt64()),
		Compact: m.Compact.ValueBool(),
	}
	if name := m.Generation.ValueString(); name != "" {
		g, err := accelerator.ParseGeneration(name)
		if err != nil {
			return f // its validator says so
		}
		f.Generations = []accelerator.Generation{g}
	}
	if text := m.Topology.ValueString(); text != "" {
		t, err := accelerator.ParseTopology(text)
		if err != nil {
			return f // its validator says so
		}
		f.Topology = t
	}
	if m.Generation.IsUnknown() {
		f.MachineType = "" // it may be the size of one of that generation's
	}
	checked, err := f.Check()
	if err != nil {
		diags.AddAttributeError(partPath(err, "machine_type"), "No such accelerator", err.Error())
		return f
	}
	return checked
}

// ValidateConfig refuses filters that cannot be meant.
func (*many) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var m topologies
	for name, into := range map[string]any{
		"generation": &m.Generation, "topology": &m.Topology, "machine_type": &m.MachineType,
		"min_chips": &m.MinChips, "max_chips": &m.MaxChips, "min_hosts": &m.MinHosts, "max_hosts": &m.MaxHosts,
	} {
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(name), into)...)
	}
	if !resp.Diagnostics.HasError() {
		m.filter(&resp.Diagnostics)
	}
}

func (*many) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m topologies
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	f := m.filter(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	m.Topologies = listed(f)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func listed(f accelerator.Filter) []slice {
	found := []slice{}
	for _, s := range accelerator.List(f) {
		found = append(found, newSlice(s))
	}
	return found
}
