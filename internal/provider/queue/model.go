package queue

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	kubeobject.Object
	Flavors           types.List   `tfsdk:"flavors"`
	HostFlavors       types.List   `tfsdk:"host_flavors"`
	Namespaces        types.Set    `tfsdk:"namespaces"`
	NamespaceStop     types.Map    `tfsdk:"namespace_stop_policies"`
	NamespaceWeights  types.Map    `tfsdk:"namespace_weights"`
	Cohort            types.String `tfsdk:"cohort"`
	Strategy          types.String `tfsdk:"queueing_strategy"`
	Stop              types.String `tfsdk:"stop_policy"`
	Within            types.String `tfsdk:"preempt_within_queue"`
	Reclaim           types.String `tfsdk:"reclaim_within_cohort"`
	BorrowWithin      types.String `tfsdk:"borrow_within_cohort"`
	BorrowMaxPriority types.Int32  `tfsdk:"borrow_max_priority"`
	WhenCanBorrow     types.String `tfsdk:"when_can_borrow"`
	WhenCanPreempt    types.String `tfsdk:"when_can_preempt"`
	Preference        types.String `tfsdk:"flavor_preference"`
	Weight            types.String `tfsdk:"fair_sharing_weight"`
	AdmissionMode     types.String `tfsdk:"admission_mode"`
	Checks            types.List   `tfsdk:"admission_checks"`
	Chips             types.Int64  `tfsdk:"chips"`
	Status            types.String `tfsdk:"status"`
}

type flavor struct {
	Name        types.String `tfsdk:"name"`
	Accelerator types.String `tfsdk:"accelerator"`
	SlicePool   types.Object `tfsdk:"slice_pool"`
	Slices      types.Int64  `tfsdk:"slices"`
	Borrow      types.Int64  `tfsdk:"borrow_slices"`
	Lend        types.Int64  `tfsdk:"lend_slices"`
	CPU         types.Object `tfsdk:"cpu"`
	Memory      types.Object `tfsdk:"memory"`
	Chips       types.Int64  `tfsdk:"chips"`
}

type hostFlavor struct {
	Name   types.String `tfsdk:"name"`
	CPU    types.Object `tfsdk:"cpu"`
	Memory types.Object `tfsdk:"memory"`
}

type check struct {
	Name      types.String `tfsdk:"name"`
	OnFlavors types.Set    `tfsdk:"on_flavors"`
}

var (
	poolTypes  = map[string]attr.Type{"id": types.StringType, "accelerator": types.StringType, "slice_count": types.Int64Type}
	quotaTypes = map[string]attr.Type{"quota": types.StringType, "borrow": types.StringType, "lend": types.StringType}
	flavorType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "accelerator": types.StringType, "slice_pool": types.ObjectType{AttrTypes: poolTypes}, "slices": types.Int64Type,
		"borrow_slices": types.Int64Type, "lend_slices": types.Int64Type, "chips": types.Int64Type,
		"cpu": types.ObjectType{AttrTypes: quotaTypes}, "memory": types.ObjectType{AttrTypes: quotaTypes},
	}}
	hostFlavorType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "cpu": types.ObjectType{AttrTypes: quotaTypes}, "memory": types.ObjectType{AttrTypes: quotaTypes},
	}}
	checkType = types.ObjectType{AttrTypes: map[string]attr.Type{"name": types.StringType, "on_flavors": types.SetType{ElemType: types.StringType}}}
)

// reader translates values and notes whether one was not known yet, or wrong by
// itself, which its attribute says.
type reader struct{ open bool }

func (r *reader) seen(values ...attr.Value) bool {
	for _, v := range values {
		if v == nil || v.IsUnknown() {
			r.open = true
			return false
		}
	}
	return true
}

func (r *reader) text(v types.String) string {
	r.seen(v)
	return v.ValueString()
}

func (r *reader) strings(elements []attr.Value) (out []string) {
	for _, e := range elements {
		if s, ok := e.(types.String); ok {
			out = append(out, r.text(s))
		}
	}
	return out
}

// quantity is nil where there is none.
func (r *reader) quantity(v attr.Value) *resource.Quantity {
	s, ok := v.(types.String)
	if !ok || !r.seen(s) || s.IsNull() {
		return nil
	}
	q, err := resource.ParseQuantity(s.ValueString())
	if err != nil {
		r.open = true
		return nil
	}
	return &q
}

func (r *reader) host(o types.Object) *kq.HostQuota {
	if !r.seen(o) || o.IsNull() {
		return nil
	}
	a := o.Attributes()
	h := &kq.HostQuota{Quota: ptr.Deref(r.quantity(a["quota"]), resource.Quantity{}), Borrow: r.quantity(a["borrow"]), Lend: r.quantity(a["lend"])}
	return h
}

// spec translates. known is false while the plan holds values that only an
// apply will know; then the spec is not to be used.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) (q kq.Queue, known bool) {
	r := &reader{}
	r.seen(m.Flavors, m.HostFlavors, m.Namespaces, m.NamespaceStop, m.NamespaceWeights, m.BorrowMaxPriority, m.Weight, m.Checks)
	q = kq.Queue{
		Name:       r.text(m.Name),
		Cohort:     r.text(m.Cohort),
		Namespaces: r.strings(m.Namespaces.Elements()),
		Strategy:   kueue.QueueingStrategy(r.text(m.Strategy)),
		Stop:       kueue.StopPolicy(r.text(m.Stop)),
		Preemption: kq.Preemption{
			WithinQueue:         kueue.PreemptionPolicy(r.text(m.Within)),
			ReclaimWithinCohort: kueue.PreemptionPolicy(r.text(m.Reclaim)),
			BorrowWithinCohort:  kueue.BorrowWithinCohortPolicy(r.text(m.BorrowWithin)),
			MaxPriority:         m.BorrowMaxPriority.ValueInt32Pointer(),
		},
		Fungibility: kq.Fungibility{
			WhenCanBorrow:  kueue.FlavorFungibilityPolicy(r.text(m.WhenCanBorrow)),
			WhenCanPreempt: kueue.FlavorFungibilityPolicy(r.text(m.WhenCanPreempt)),
			Preference:     kueue.FlavorFungibilityPreference(r.text(m.Preference)),
		},
		Admission: kueue.AdmissionMode(r.text(m.AdmissionMode)),
	}
	r.weights(m, &q)
	for ns, v := range m.NamespaceStop.Elements() {
		if s, ok := v.(types.String); ok {
			if q.Stopped == nil {
				q.Stopped = map[string]kueue.StopPolicy{}
			}
			q.Stopped[ns] = kueue.StopPolicy(r.text(s))
		}
	}
	if r.open || !r.seen(m.Flavors.Elements()...) || !r.seen(m.HostFlavors.Elements()...) || !r.seen(m.Checks.Elements()...) {
		return q, false
	}
	r.flavors(ctx, m, &q, diags)
	if !m.Checks.IsNull() {
		var checks []check
		diags.Append(m.Checks.ElementsAs(ctx, &checks, false)...)
		for _, c := range checks {
			r.seen(c.OnFlavors)
			q.Checks = append(q.Checks, kq.Check{Name: r.text(c.Name), Flavors: r.strings(c.OnFlavors.Elements())})
		}
	}
	return q, !r.open && !diags.HasError()
}

func (r *reader) weights(m *model, q *kq.Queue) {
	weight := func(v types.String) (w resource.Quantity, ok bool) {
		if !r.seen(v) || v.IsNull() {
			return w, false
		}
		w, err := kq.ParseWeight(v.ValueString())
		r.open = r.open || err != nil
		return w, err == nil
	}
	if w, ok := weight(m.Weight); ok {
		q.Weight = &w
	}
	for ns, v := range m.NamespaceWeights.Elements() {
		text, ok := v.(types.String)
		if !ok {
			continue
		}
		if w, ok := weight(text); ok {
			if q.Weights == nil {
				q.Weights = map[string]resource.Quantity{}
			}
			q.Weights[ns] = w
		}
	}
}

func (r *reader) flavors(ctx context.Context, m *model, q *kq.Queue, diags *diag.Diagnostics) {
	if !m.Flavors.IsNull() {
		var flavors []flavor
		diags.Append(m.Flavors.ElementsAs(ctx, &flavors, false)...)
		for i, f := range flavors {
			q.Quotas = append(q.Quotas, r.flavor(i, f, diags))
		}
	}
	if !m.HostFlavors.IsNull() {
		var hosts []hostFlavor
		diags.Append(m.HostFlavors.ElementsAs(ctx, &hosts, false)...)
		for _, h := range hosts {
			q.Hosts = append(q.Hosts, kq.HostFlavor{Flavor: r.text(h.Name), CPU: r.host(h.CPU), Memory: r.host(h.Memory)})
		}
	}
}

// flavor is one entry; what it leaves to its slice pool is taken from there.
func (r *reader) flavor(i int, f flavor, diags *diag.Diagnostics) kq.Quota {
	q := kq.Quota{Flavor: r.text(f.Name), CPU: r.host(f.CPU), Memory: r.host(f.Memory)}
	r.seen(f.SlicePool, f.Borrow, f.Lend)
	q.Borrow, q.Lend = f.Borrow.ValueInt64Pointer(), f.Lend.ValueInt64Pointer()
	name, slices := f.Accelerator, f.Slices
	if !f.SlicePool.IsNull() && !f.SlicePool.IsUnknown() {
		pool := f.SlicePool.Attributes()
		id, _ := pool["id"].(types.String)
		kind, _ := pool["accelerator"].(types.String)
		count, _ := pool["slice_count"].(types.Int64)
		q.Pool = r.text(id)
		if name.IsNull() {
			name = kind
		}
		if slices.IsNull() {
			slices = count
		}
		if r.seen(count, slices) && slices.ValueInt64() > count.ValueInt64() {
			diags.AddError("Invalid queue", fmt.Sprintf("flavors[%d]: %d slices of a slice pool that has %d", i, slices.ValueInt64(), count.ValueInt64()))
		}
	}
	switch {
	case f.SlicePool.IsUnknown():
	case name.IsNull():
		diags.AddError("Invalid queue", fmt.Sprintf("flavors[%d] says neither which slices it has (accelerator) nor whose (slice_pool)", i))
	case slices.IsNull():
		diags.AddError("Invalid queue", fmt.Sprintf("flavors[%d] says neither how many slices it has (slices) nor which slice pool it follows (slice_pool)", i))
	}
	if r.seen(name, slices) {
		s, err := accelerator.Resolve(name.ValueString())
		r.open = r.open || err != nil
		q.Slice, q.Slices = s, slices.ValueInt64()
	}
	return q
}
