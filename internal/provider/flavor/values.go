package flavor

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type taint struct {
	Key    types.String `tfsdk:"key"`
	Value  types.String `tfsdk:"value"`
	Effect types.String `tfsdk:"effect"`
}

type toleration struct {
	Key      types.String `tfsdk:"key"`
	Operator types.String `tfsdk:"operator"`
	Value    types.String `tfsdk:"value"`
	Effect   types.String `tfsdk:"effect"`
	Seconds  types.Int64  `tfsdk:"seconds"`
}

type topologyAware struct {
	Levels types.List   `tfsdk:"levels"`
	Name   types.String `tfsdk:"name"`
}

var (
	taintType      = types.ObjectType{AttrTypes: map[string]attr.Type{"key": types.StringType, "value": types.StringType, "effect": types.StringType}}
	tolerationType = types.ObjectType{AttrTypes: map[string]attr.Type{"key": types.StringType, "operator": types.StringType,
		"value": types.StringType, "effect": types.StringType, "seconds": types.Int64Type}}
	topologyType = map[string]attr.Type{"levels": types.ListType{ElemType: types.StringType}, "name": types.StringType}
)

// spec translates. known is false while a value is not known yet, or the
// accelerator is wrong by itself, which its attribute says.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) (f queue.Flavor, known bool) {
	for _, v := range []attr.Value{m.Name, m.Accelerator, m.Provisioning, m.Reservation, m.NodeLabels, m.NodeTaints, m.Tolerations, m.TopologyAware} {
		if v == nil {
			continue // of an import
		}
		if tf, err := v.ToTerraformValue(ctx); err != nil || !tf.IsFullyKnown() {
			return f, false
		}
	}
	var s accelerator.Slice
	var err error
	if !m.Accelerator.IsNull() {
		s, err = accelerator.Resolve(m.Accelerator.ValueString())
	}
	f = queue.Flavor{Name: m.Name.ValueString(), Slice: s, Provisioning: queue.Provisioning(m.Provisioning.ValueString()),
		Reservation: m.Reservation.ValueString(), NodeLabels: conn.Strings(ctx, m.NodeLabels, diags)}
	var taints []taint
	diags.Append(m.NodeTaints.ElementsAs(ctx, &taints, false)...)
	for _, t := range taints {
		f.NodeTaints = append(f.NodeTaints, corev1.Taint{Key: t.Key.ValueString(), Value: t.Value.ValueString(), Effect: corev1.TaintEffect(t.Effect.ValueString())})
	}
	var tolerations []toleration
	diags.Append(m.Tolerations.ElementsAs(ctx, &tolerations, false)...)
	for _, t := range tolerations {
		f.Tolerations = append(f.Tolerations, corev1.Toleration{Key: t.Key.ValueString(), Operator: corev1.TolerationOperator(t.Operator.ValueString()),
			Value: t.Value.ValueString(), Effect: corev1.TaintEffect(t.Effect.ValueString()), TolerationSeconds: t.Seconds.ValueInt64Pointer()})
	}
	if !m.TopologyAware.IsNull() {
		var t topologyAware
		diags.Append(m.TopologyAware.As(ctx, &t, basetypes.ObjectAsOptions{})...)
		f.Topology = &queue.Topology{Name: t.Name.ValueString()}
		if !t.Levels.IsNull() {
			f.Topology.Levels = []string{}
			diags.Append(t.Levels.ElementsAs(ctx, &f.Topology.Levels, false)...)
		}
	}
	return f, err == nil
}

// show fills in what is computed.
func (m *model) show(ctx context.Context, f queue.Flavor, diags *diag.Diagnostics) {
	m.derive()
	m.Added = listed(ctx, f.AddedTolerations(), diags)
}

func listed(ctx context.Context, tolerations []corev1.Toleration, diags *diag.Diagnostics) types.List {
	texts := []string{}
	for _, t := range tolerations {
		text := t.Key
		if t.Operator != corev1.TolerationOpExists {
			text += "=" + t.Value
		}
		texts = append(texts, text+":"+string(t.Effect))
	}
	list, d := types.ListValueFrom(ctx, types.StringType, texts)
	diags.Append(d...)
	return list
}

// take fills in the live flavor. The user's spelling of the accelerator stays
// as long as the flavor still stands for it.
func (m *model) take(ctx context.Context, live *kueue.ResourceFlavor, topology *kueue.Topology, diags *diag.Diagnostics) {
	f := queue.FlavorOf(live, topology)
	wanted, err := accelerator.Resolve(m.Accelerator.ValueString())
	switch {
	case f.Slice == accelerator.Slice{} && m.Accelerator.IsNull() && !queue.OfSlices(live):
		// A flavor of hosts.
	case f.Slice == accelerator.Slice{}:
		// Somebody took the labels away: an empty name shows as a change.
		m.Accelerator = types.StringValue("")
	case err != nil || f.Slice != wanted:
		m.Accelerator = types.StringValue(f.Slice.Name)
	}
	m.Provisioning, m.Reservation = text(string(f.Provisioning)), text(f.Reservation)
	if len(f.NodeLabels) > 0 || len(m.NodeLabels.Elements()) > 0 {
		m.NodeLabels = conn.StringMap(f.NodeLabels)
	}
	var taints []taint
	for _, t := range f.NodeTaints {
		taints = append(taints, taint{types.StringValue(t.Key), text(t.Value), text(string(t.Effect))})
	}
	m.NodeTaints = nested(ctx, taintType, m.NodeTaints, taints, diags)
	var tolerations []toleration
	for _, t := range f.Tolerations {
		tolerations = append(tolerations, toleration{text(t.Key), text(string(t.Operator)), text(t.Value), text(string(t.Effect)), types.Int64PointerValue(t.TolerationSeconds)})
	}
	m.Tolerations = nested(ctx, tolerationType, m.Tolerations, tolerations, diags)
	m.readTopology(ctx, f, diags)
	m.derive()
	m.Added = listed(ctx, queue.AddedTo(live), diags)
}

func (m *model) readTopology(ctx context.Context, f queue.Flavor, diags *diag.Diagnostics) {
	if f.Topology == nil {
		m.TopologyAware = types.ObjectNull(topologyType)
		return
	}
	t := topologyAware{Levels: types.ListNull(types.StringType), Name: text(f.Topology.Name)}
	levels := f.Topology.Levels
	if had, known := m.spec(ctx, diags); known && levels == nil && had.Topology != nil && had.Topology.Levels != nil {
		levels = queue.DefaultLevels(f.Slice) // written out
	}
	if levels != nil {
		list, d := types.ListValueFrom(ctx, types.StringType, levels)
		diags.Append(d...)
		t.Levels = list
	}
	object, d := types.ObjectValueFrom(ctx, topologyType, t)
	diags.Append(d...)
	m.TopologyAware = object
}

// nested is a list as state has it: null where there is nothing, unless it was
// written as [].
func nested[E any](ctx context.Context, typ attr.Type, had types.List, elements []E, diags *diag.Diagnostics) types.List {
	if len(elements) == 0 && (had.IsNull() || len(had.Elements()) > 0) {
		return types.ListNull(typ)
	}
	list, d := types.ListValueFrom(ctx, typ, elements)
	if elements == nil {
		list, d = types.ListValueFrom(ctx, typ, []E{})
	}
	diags.Append(d...)
	return list
}

func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
