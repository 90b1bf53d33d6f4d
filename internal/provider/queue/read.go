package queue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// take takes over what the cluster has. What means the same is left as it is
// spelled in state.
func (m *model) take(ctx context.Context, q kq.Queue, diags *diag.Diagnostics) {
	m.takeFlavors(ctx, q, diags)
	m.Namespaces = stringSet(ctx, m.Namespaces, q.Namespaces, diags)
	stops := map[string]attr.Value{}
	for ns, policy := range q.Stopped {
		stops[ns] = types.StringValue(string(policy))
	}
	m.NamespaceStop = values(m.NamespaceStop, types.StringType, stops)
	weights := map[string]attr.Value{}
	for ns, w := range q.Weights {
		weights[ns] = weightText(m.NamespaceWeights.Elements()[ns], &w)
	}
	m.NamespaceWeights = values(m.NamespaceWeights, types.StringType, weights)

	m.Cohort, m.Strategy, m.Stop = text(q.Cohort), text(q.Strategy), text(q.Stop)
	m.Within, m.Reclaim, m.BorrowWithin = text(q.Preemption.WithinQueue), text(q.Preemption.ReclaimWithinCohort), text(q.Preemption.BorrowWithinCohort)
	m.BorrowMaxPriority = types.Int32PointerValue(q.Preemption.MaxPriority)
	m.WhenCanBorrow, m.WhenCanPreempt, m.Preference = text(q.Fungibility.WhenCanBorrow), text(q.Fungibility.WhenCanPreempt), text(q.Fungibility.Preference)
	m.AdmissionMode = text(q.Admission)
	m.Weight = weightText(m.Weight, q.Weight)
	if len(q.Checks) > 0 || len(m.Checks.Elements()) > 0 || m.Checks.IsUnknown() {
		checks := []check{}
		for _, c := range q.Checks {
			one := check{Name: types.StringValue(c.Name), OnFlavors: types.SetNull(types.StringType)}
			if len(c.Flavors) > 0 {
				set, d := types.SetValueFrom(ctx, types.StringType, c.Flavors)
				diags.Append(d...)
				one.OnFlavors = set
			}
			checks = append(checks, one)
		}
		m.Checks = list(ctx, checkType, checks, diags)
	}
}

func (m *model) takeFlavors(ctx context.Context, q kq.Queue, diags *diag.Diagnostics) {
	had := map[string]flavor{}
	if !m.Flavors.IsNull() && !m.Flavors.IsUnknown() {
		var all []flavor
		diags.Append(m.Flavors.ElementsAs(ctx, &all, false)...)
		for _, f := range all {
			had[f.Name.ValueString()] = f
		}
	}
	flavors := []flavor{}
	for _, quota := range q.Quotas {
		was := had[quota.Flavor]
		f := flavor{
			Name: types.StringValue(quota.Flavor), Accelerator: was.Accelerator, SlicePool: was.SlicePool,
			Slices: types.Int64Value(quota.Slices), Borrow: types.Int64PointerValue(quota.Borrow), Lend: types.Int64PointerValue(quota.Lend),
			CPU: host(was.CPU, quota.CPU), Memory: host(was.Memory, quota.Memory), Chips: types.Int64Value(quota.Chips()),
		}
		if s, err := accelerator.Resolve(was.Accelerator.ValueString()); err != nil || s != quota.Slice {
			f.Accelerator = types.StringValue(quota.Slice.Name)
		}
		f.SlicePool = pool(was.SlicePool, quota)
		flavors = append(flavors, f)
	}
	m.Flavors = list(ctx, flavorType, flavors, diags)
	m.Chips = types.Int64Value(q.Chips())
	if len(q.Hosts) == 0 && m.HostFlavors.IsNull() {
		return
	}
	wasHost := map[string]hostFlavor{}
	if !m.HostFlavors.IsNull() {
		var all []hostFlavor
		diags.Append(m.HostFlavors.ElementsAs(ctx, &all, false)...)
		for _, h := range all {
			wasHost[h.Name.ValueString()] = h
		}
	}
	hosts := []hostFlavor{}
	for _, h := range q.Hosts {
		was := wasHost[h.Flavor]
		hosts = append(hosts, hostFlavor{Name: types.StringValue(h.Flavor), CPU: host(was.CPU, h.CPU), Memory: host(was.Memory, h.Memory)})
	}
	m.HostFlavors = list(ctx, hostFlavorType, hosts, diags)
}

// pool is the slice pool that a quota follows, as it was the last time; the
// quota says only which.
func pool(was types.Object, quota kq.Quota) types.Object {
	if quota.Pool == "" {
		return types.ObjectNull(poolTypes)
	}
	if id, _ := was.Attributes()["id"].(types.String); id.ValueString() == quota.Pool {
		return was
	}
	return types.ObjectValueMust(poolTypes, map[string]attr.Value{
		"id": types.StringValue(quota.Pool), "accelerator": types.StringValue(quota.Slice.Name), "slice_count": types.Int64Value(quota.Slices),
	})
}

func host(was types.Object, h *kq.HostQuota) types.Object {
	if h == nil {
		return types.ObjectNull(quotaTypes)
	}
	had := was.Attributes()
	return types.ObjectValueMust(quotaTypes, map[string]attr.Value{
		"quota": spelled(had["quota"], &h.Quota), "borrow": spelled(had["borrow"], h.Borrow), "lend": spelled(had["lend"], h.Lend),
	})
}

// spelled is a quantity as state has it, where that means the same.
func spelled(had attr.Value, q *resource.Quantity) types.String {
	if q == nil {
		return types.StringNull()
	}
	if s, ok := had.(types.String); ok {
		if written, err := resource.ParseQuantity(s.ValueString()); err == nil && written.Cmp(*q) == 0 {
			return s
		}
	}
	return types.StringValue(q.String())
}

// weightText is spelled for weights, which people write as 0.5 and not as 500m.
func weightText(had attr.Value, w *resource.Quantity) types.String {
	s := spelled(had, w)
	if was, ok := had.(types.String); w == nil || ok && was.Equal(s) {
		return s
	}
	return types.StringValue(kq.WeightText(*w))
}

func text[T ~string](s T) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(string(s))
}

func list[T any](ctx context.Context, of attr.Type, all []T, diags *diag.Diagnostics) types.List {
	out, d := types.ListValueFrom(ctx, of, all)
	diags.Append(d...)
	return out
}

// stringSet keeps an empty set the way it is written, as null or [].
func stringSet(ctx context.Context, was types.Set, all []string, diags *diag.Diagnostics) types.Set {
	if len(all) == 0 && len(was.Elements()) == 0 {
		if was.IsNull() || was.IsUnknown() {
			return types.SetNull(types.StringType)
		}
		return was
	}
	if all == nil {
		all = []string{}
	}
	out, d := types.SetValueFrom(ctx, types.StringType, all)
	diags.Append(d...)
	return out
}

// values keeps an empty map the way it is written, as null or {}.
func values(was types.Map, of attr.Type, all map[string]attr.Value) types.Map {
	if len(all) == 0 && (was.IsNull() || was.IsUnknown()) {
		return types.MapNull(of)
	}
	return types.MapValueMust(of, all)
}
