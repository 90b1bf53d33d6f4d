// Package flavor is the tpu_kueue_flavor resource: a Kueue ResourceFlavor for
// one kind of slice. It translates; what a flavor looks like is
// internal/queue's.
package flavor

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const typeName = "tpu_kueue_flavor"

// NewResource makes the resource.
func NewResource() resource.Resource { return &flavorResource{} }

type flavorResource struct {
	conn.Child
}

var (
	_ resource.ResourceWithConfigure      = (*flavorResource)(nil)
	_ resource.ResourceWithImportState    = (*flavorResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*flavorResource)(nil)
	_ resource.ResourceWithValidateConfig = (*flavorResource)(nil)
)

func (*flavorResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName
}

func (*flavorResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A Kueue ResourceFlavor: one kind of TPU slice that queues hand out.\n\n" +
			"A flavor is named after the slice, not after how many there are, so it never changes when slices are added. " +
			"It needs Kueue, which `tpu_job_controllers` installs: refer to its `cluster` to make the order known.",
		Attributes: map[string]schema.Attribute{
			"id":      attr.ID("projects/P/locations/L/clusters/C/resourceFlavors/NAME"),
			"cluster": attr.Cluster(),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The flavor's name, such as `v5e-4x4`. Changing it makes a new flavor.",
				Validators:          []validator.String{attr.Check("Invalid name", "a DNS name", queue.CheckName)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
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
			"timeouts": attr.Timeouts(ctx, timeouts.Opts{Create: true, Update: true, Delete: true}),
		},
	}
}

type model struct {
	ID           types.String   `tfsdk:"id"`
	Cluster      types.String   `tfsdk:"cluster"`
	Name         types.String   `tfsdk:"name"`
	Accelerator  types.String   `tfsdk:"accelerator"`
	Provisioning types.String   `tfsdk:"provisioning"`
	NodeLabels   types.Map      `tfsdk:"node_labels"`
	Topology     types.String   `tfsdk:"topology"`
	Chips        types.Int64    `tfsdk:"chips_per_slice"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`
}

func (m model) id() string {
	return m.Cluster.ValueString() + "/resourceFlavors/" + m.Name.ValueString()
}

// derive fills in what follows from the accelerator, as far as it is known.
func (m *model) derive() {
	if s, err := accelerator.Resolve(m.Accelerator.ValueString()); err == nil && !m.Accelerator.IsUnknown() {
		m.Topology, m.Chips = types.StringValue(s.Topology.String()), types.Int64Value(int64(s.Chips))
	}
}

// ValidateConfig checks what the single attributes cannot: that all labels
// together are what Kueue takes.
func (*flavorResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.Accelerator.IsUnknown() || m.NodeLabels.IsUnknown() || m.Name.IsUnknown() {
		return
	}
	for _, v := range m.NodeLabels.Elements() {
		if v.IsUnknown() {
			return
		}
	}
	s, err := accelerator.Resolve(m.Accelerator.ValueString())
	if err != nil {
		return // the attribute's own validator says so
	}
	f := queue.Flavor{Name: m.Name.ValueString(), Slice: s, Provisioning: queue.Provisioning(m.Provisioning.ValueString()),
		NodeLabels: conn.Strings(ctx, m.NodeLabels, &resp.Diagnostics)}
	if err := f.Validate(); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("node_labels"), "Invalid flavor", err.Error())
	}
}

// ModifyPlan shows what follows from the accelerator already in the plan.
func (*flavorResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	m.derive()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &m)...)
}

// ImportState reads the cluster and name out of the id.
func (*flavorResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, names, err := conn.ParseID(req.ID, "resourceFlavors")
	if err != nil {
		conn.AddError(&resp.Diagnostics, "Invalid import id", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster"), cluster)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), names[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), req.ID)...)
}
