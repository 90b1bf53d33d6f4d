package slicepool

import (
	"context"
	"errors"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// setShape fills in what follows from the accelerator.
func (m *model) setShape(s accelerator.Slice) {
	m.Topology = types.StringValue(s.Topology.String())
	m.MachineType = types.StringValue(s.MachineType)
	m.HostsPerSlice = types.Int64Value(int64(s.Hosts))
	m.ChipsPerSlice = types.Int64Value(int64(s.Chips))
	m.Chips = types.Int64Unknown()
	if !m.SliceCount.IsUnknown() {
		m.Chips = types.Int64Value(int64(s.Chips) * m.SliceCount.ValueInt64())
	}
	m.NodeSelector = stringMap(s.NodeLabels())
	m.Tolerations = types.ListValueMust(tolerationType, []attr.Value{types.ObjectValueMust(tolerationType.AttrTypes, map[string]attr.Value{
		"key":      types.StringValue(accelerator.TaintKey),
		"operator": types.StringValue("Equal"),
		"value":    types.StringValue(accelerator.TaintValue),
		"effect":   types.StringValue(accelerator.TaintEffect),
	})})
}

// spec is the specification of a model in which everything but the results is
// known. It reads the plan, so that topology and machine type are there.
func (m *model) spec(ctx context.Context, owner string, diags *diag.Diagnostics) gke.SlicePool {
	cluster, err := gke.ParseClusterName(m.Cluster.ValueString())
	if err != nil {
		diags.AddError("Invalid cluster", err.Error())
		return gke.SlicePool{}
	}
	s, known, err := shape(m.Accelerator, m.Topology, m.MachineType)
	if err == nil && !known {
		err = errors.New("the accelerator is not known")
	}
	if err != nil {
		diags.AddError("Invalid accelerator", err.Error())
		return gke.SlicePool{}
	}
	p := gke.SlicePool{
		Cluster: cluster, Name: m.Name.ValueString(), Owner: owner, Shape: s,
		Count: int(m.SliceCount.ValueInt64()), Zone: m.Zone.ValueString(), PlacementPolicy: m.PlacementPolicy.ValueString(),
		ResourceLabels: goMap(ctx, m.EffectiveLabels, diags), OnStockout: gke.StockoutPolicy(m.OnStockout.ValueString()),
		Force: m.Force.ValueBool(),
	}
	n := m.node(ctx, diags)
	p.ServiceAccount, p.NodeLabels = n.ServiceAccount.ValueString(), goMap(ctx, n.Labels, diags)
	d := n.disk(ctx, diags)
	p.DiskType, p.DiskSizeGB = d.Type.ValueString(), int(d.SizeGB.ValueInt64())
	m.settings(ctx, &p, diags)
	return p
}

func (m *model) provisioning(ctx context.Context, diags *diag.Diagnostics) (p provisioning) {
	if !m.Provisioning.IsNull() && !m.Provisioning.IsUnknown() {
		diags.Append(m.Provisioning.As(ctx, &p, basetypes.ObjectAsOptions{})...)
	}
	return p
}

func (m *model) node(ctx context.Context, diags *diag.Diagnostics) (n node) {
	if !m.Node.IsNull() && !m.Node.IsUnknown() {
		diags.Append(m.Node.As(ctx, &n, basetypes.ObjectAsOptions{})...)
	}
	return n
}

func (n node) disk(ctx context.Context, diags *diag.Diagnostics) (d bootDisk) {
	if !n.BootDisk.IsNull() && !n.BootDisk.IsUnknown() {
		diags.Append(n.BootDisk.As(ctx, &d, basetypes.ObjectAsOptions{})...)
	}
	return d
}

// setSlices writes what GKE has.
func (m *model) setSlices(s gke.Slices) {
	elems := map[string]attr.Value{}
	for i, one := range s {
		message := types.StringNull()
		if one.Message != "" {
			message = types.StringValue(one.Message)
		}
		elems[strconv.Itoa(i)] = types.ObjectValueMust(sliceType.AttrTypes, map[string]attr.Value{
			"node_pool": types.StringValue(one.NodePool), "status": types.StringValue(string(one.Status)), "message": message,
		})
	}
	m.Slices = types.MapValueMust(sliceType, elems)
	m.ReadySlices = types.Int64Value(int64(s.Ready()))
	m.Status = types.StringValue(s.Status(int(m.SliceCount.ValueInt64())))
}

// known names the node pools in a state.
func (m *model) known() []string {
	var names []string
	for _, v := range m.Slices.Elements() {
		if o, ok := v.(types.Object); ok {
			if name, ok := o.Attributes()["node_pool"].(types.String); ok {
				names = append(names, name.ValueString())
			}
		}
	}
	return names
}

func stringMap(m map[string]string) types.Map {
	elems := map[string]attr.Value{}
	for k, v := range m {
		elems[k] = types.StringValue(v)
	}
	return types.MapValueMust(types.StringType, elems)
}

// goMap is nil for a null map: not managed here.
func goMap(ctx context.Context, m types.Map, diags *diag.Diagnostics) map[string]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}
	out := map[string]string{}
	diags.Append(m.ElementsAs(ctx, &out, false)...)
	return out
}
