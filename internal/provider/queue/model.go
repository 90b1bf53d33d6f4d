package queue

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	ID         types.String   `tfsdk:"id"`
	Cluster    types.String   `tfsdk:"cluster"`
	Name       types.String   `tfsdk:"name"`
	Flavors    types.List     `tfsdk:"flavors"`
	Namespaces types.Set      `tfsdk:"namespaces"`
	Cohort     types.String   `tfsdk:"cohort"`
	Strategy   types.String   `tfsdk:"queueing_strategy"`
	Stop       types.String   `tfsdk:"stop_policy"`
	Within     types.String   `tfsdk:"preempt_within_queue"`
	Reclaim    types.String   `tfsdk:"reclaim_within_cohort"`
	Chips      types.Int64    `tfsdk:"chips"`
	Status     types.String   `tfsdk:"status"`
	Timeouts   timeouts.Value `tfsdk:"timeouts"`
}

type flavor struct {
	Name        types.String `tfsdk:"name"`
	Accelerator types.String `tfsdk:"accelerator"`
	Slices      types.Int64  `tfsdk:"slices"`
	Borrow      types.Int64  `tfsdk:"borrow_slices"`
	Lend        types.Int64  `tfsdk:"lend_slices"`
}

var flavorType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"name": types.StringType, "accelerator": types.StringType, "slices": types.Int64Type,
	"borrow_slices": types.Int64Type, "lend_slices": types.Int64Type,
}}

// spec translates. known is false while the plan holds values that only an
// apply will know; then the spec is not to be used.
func (m model) spec(ctx context.Context, diags *diag.Diagnostics) (q kq.Queue, known bool) {
	if m.Name.IsUnknown() || m.Flavors.IsUnknown() || m.Namespaces.IsUnknown() || m.Cohort.IsUnknown() {
		return q, false
	}
	q = kq.Queue{
		Name:     m.Name.ValueString(),
		Cohort:   m.Cohort.ValueString(),
		Strategy: kueue.QueueingStrategy(m.Strategy.ValueString()),
		Stop:     kueue.StopPolicy(m.Stop.ValueString()),
	}
	if m.Within.ValueString() != "" && m.Reclaim.ValueString() != "" {
		q.Preemption = kq.Preemption{WithinQueue: kueue.PreemptionPolicy(m.Within.ValueString()), ReclaimWithinCohort: kueue.PreemptionPolicy(m.Reclaim.ValueString())}
	}
	for _, e := range m.Namespaces.Elements() {
		s, ok := e.(types.String)
		if !ok || s.IsUnknown() {
			return q, false
		}
		q.Namespaces = append(q.Namespaces, s.ValueString())
	}
	for _, e := range m.Flavors.Elements() {
		if e.IsUnknown() {
			return q, false
		}
	}
	var flavors []flavor
	diags.Append(m.Flavors.ElementsAs(ctx, &flavors, false)...)
	for _, f := range flavors {
		if f.Name.IsUnknown() || f.Accelerator.IsUnknown() || f.Slices.IsUnknown() || f.Borrow.IsUnknown() || f.Lend.IsUnknown() {
			return q, false
		}
		s, err := accelerator.Resolve(f.Accelerator.ValueString())
		if err != nil {
			return q, false // the attribute's own validator says so
		}
		q.Quotas = append(q.Quotas, kq.Quota{Flavor: f.Name.ValueString(), Slice: s, Slices: f.Slices.ValueInt64(),
			Borrow: f.Borrow.ValueInt64Pointer(), Lend: f.Lend.ValueInt64Pointer()})
	}
	return q, true
}

// read takes over what the cluster has. accelerators resolves the flavors that
// state has no spelling for.
func (m *model) read(ctx context.Context, live *kueue.ClusterQueue, namespaces []string, accelerators func(flavor string) (accelerator.Slice, bool), diags *diag.Diagnostics) {
	m.ID = types.StringValue(id(m.Cluster.ValueString(), m.Name.ValueString()))
	spelling := map[string]string{}
	if !m.Flavors.IsNull() {
		var had []flavor
		diags.Append(m.Flavors.ElementsAs(ctx, &had, false)...)
		for _, f := range had {
			spelling[f.Name.ValueString()] = f.Accelerator.ValueString()
		}
	}
	var flavors []flavor
	var total int64
	for _, group := range live.Spec.ResourceGroups {
		if !slices.Contains(group.CoveredResources, accelerator.ResourceName) {
			continue
		}
		for _, fq := range group.Flavors {
			f := flavor{Name: types.StringValue(string(fq.Name)), Accelerator: types.StringValue(spelling[string(fq.Name)])}
			s, err := accelerator.Resolve(f.Accelerator.ValueString())
			if err != nil {
				var ok bool
				if s, ok = accelerators(string(fq.Name)); ok {
					f.Accelerator = types.StringValue(s.Name)
				}
			}
			perSlice := int64(max(s.Chips, 1))
			for _, r := range fq.Resources {
				if r.Name != accelerator.ResourceName {
					continue
				}
				total += r.NominalQuota.Value()
				f.Slices = types.Int64Value(r.NominalQuota.Value() / perSlice)
				f.Borrow, f.Lend = inSlices(r.BorrowingLimit, perSlice), inSlices(r.LendingLimit, perSlice)
			}
			flavors = append(flavors, f)
		}
	}
	list, d := types.ListValueFrom(ctx, flavorType, flavors)
	diags.Append(d...)
	m.Flavors = list
	m.Chips = types.Int64Value(total)

	if len(namespaces) > 0 || len(m.Namespaces.Elements()) > 0 {
		set, d := types.SetValueFrom(ctx, types.StringType, namespaces)
		diags.Append(d...)
		m.Namespaces = set
	}
	m.Cohort = text(string(live.Spec.CohortName))
	m.Strategy = types.StringValue(string(live.Spec.QueueingStrategy))
	m.Stop = types.StringValue(string(kueue.None))
	if live.Spec.StopPolicy != nil {
		m.Stop = types.StringValue(string(*live.Spec.StopPolicy))
	}
	m.Within, m.Reclaim = types.StringValue(string(kueue.PreemptionPolicyNever)), types.StringValue(string(kueue.PreemptionPolicyNever))
	if p := live.Spec.Preemption; p != nil {
		m.Within, m.Reclaim = types.StringValue(string(p.WithinClusterQueue)), types.StringValue(string(p.ReclaimWithinCohort))
	}
	m.Status = types.StringValue(status(live))
}

func inSlices(chips *resource.Quantity, perSlice int64) types.Int64 {
	if chips == nil {
		return types.Int64Null()
	}
	return types.Int64Value(chips.Value() / perSlice)
}

func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// status is "Active", or Kueue's reason why the queue admits nothing.
func status(live *kueue.ClusterQueue) string {
	c := meta.FindStatusCondition(live.Status.Conditions, kueue.ClusterQueueActive)
	switch {
	case c == nil:
		return "Unknown"
	case c.Status == metav1.ConditionTrue:
		return kueue.ClusterQueueActive
	}
	return c.Reason
}
