package cohort

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	kubeobject.Object
	Parent  types.String `tfsdk:"parent"`
	Flavors types.List   `tfsdk:"flavors"`
	Weight  types.String `tfsdk:"fair_sharing_weight"`
	Chips   types.Int64  `tfsdk:"chips"`
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

// spec translates. known is false while a value is not known yet, or
// wrong by itself, which its attribute says.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) (c queue.Cohort, known bool) {
	for _, v := range []attr.Value{m.Name, m.Parent, m.Flavors, m.Weight} {
		if tf, err := v.ToTerraformValue(ctx); err != nil || !tf.IsFullyKnown() {
			return c, false
		}
	}
	c = queue.Cohort{Name: m.Name.ValueString(), Parent: m.Parent.ValueString()}
	if !m.Weight.IsNull() {
		w, err := queue.ParseWeight(m.Weight.ValueString())
		if err != nil {
			return c, false
		}
		c.Weight = &w
	}
	var flavors []flavor
	diags.Append(m.Flavors.ElementsAs(ctx, &flavors, false)...)
	for _, f := range flavors {
		s, err := accelerator.Resolve(f.Accelerator.ValueString())
		if err != nil {
			return c, false
		}
		c.Quotas = append(c.Quotas, queue.Quota{Flavor: f.Name.ValueString(), Slice: s, Slices: f.Slices.ValueInt64(),
			Borrow: f.Borrow.ValueInt64Pointer(), Lend: f.Lend.ValueInt64Pointer()})
	}
	return c, true
}

// Check refuses what Kueue would.
func (m *model) Check(ctx context.Context, diags *diag.Diagnostics) {
	c, known := m.spec(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	if err := c.Validate(); err != nil {
		diags.AddError("Invalid cohort", err.Error())
	}
}

// Plan shows the chips.
func (m *model) Plan(ctx context.Context, p *kubeobject.Planning[model]) {
	if c, known := m.spec(ctx, p.Diags); known {
		m.Chips = types.Int64Value(c.Chips())
	}
}

// Write applies the cohort, unless it would be its own ancestor.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	c, _ := m.spec(ctx, w.Diags)
	if c.Parent != "" {
		var all kueue.CohortList
		if err := w.List(ctx, &all); err != nil {
			return &kube.Error{Verb: "listing", Kind: "Cohorts", Key: "above " + c.Name, Cluster: w.Name, Err: err}
		}
		if way := c.Cycle(all.Items); way != nil {
			return queue.CycleError(way)
		}
	}
	m.Chips = types.Int64Value(c.Chips())
	return w.Apply(ctx, c.Object())
}

// Read takes over what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) (bool, error) {
	live := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if found, err := k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	m.Parent = types.StringNull()
	if live.Spec.ParentName != "" {
		m.Parent = types.StringValue(string(live.Spec.ParentName))
	}
	m.readWeight(live.Spec.FairSharing)
	return true, m.readFlavors(ctx, k, live, diags)
}

// readWeight leaves the server's default, 1, unsaid where it was not said.
func (m *model) readWeight(f *kueue.FairSharing) {
	weight := resource.MustParse("1")
	if f != nil && f.Weight != nil {
		weight = *f.Weight
	}
	if said, err := queue.ParseWeight(m.Weight.ValueString()); err == nil && weight.Equal(said) || m.Weight.IsNull() && weight.Equal(resource.MustParse("1")) {
		return
	}
	m.Weight = types.StringValue(queue.WeightText(weight))
}

func (m *model) readFlavors(ctx context.Context, k *kube.Client, live *kueue.Cohort, diags *diag.Diagnostics) error {
	var had, flavors []flavor
	diags.Append(m.Flavors.ElementsAs(ctx, &had, false)...)
	spelling := map[string]string{}
	for _, f := range had {
		spelling[f.Name.ValueString()] = f.Accelerator.ValueString()
	}
	var total int64
	for _, group := range live.Spec.ResourceGroups {
		for _, quotas := range group.Flavors {
			f := flavor{Name: types.StringValue(string(quotas.Name)), Accelerator: types.StringValue(spelling[string(quotas.Name)])}
			s, err := accelerator.Resolve(f.Accelerator.ValueString())
			if err != nil {
				rf := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: string(quotas.Name)}}
				if _, err := k.Fetch(ctx, rf); err != nil {
					return err
				}
				s, _ = queue.SliceOf(rf.Spec.NodeLabels)
				f.Accelerator = types.StringValue(s.Name)
			}
			per := int64(max(s.Chips, 1))
			for _, r := range quotas.Resources {
				if r.Name != accelerator.ResourceName {
					continue
				}
				total += r.NominalQuota.Value()
				f.Slices = types.Int64Value(r.NominalQuota.Value() / per)
				f.Borrow, f.Lend = inSlices(r.BorrowingLimit, per), inSlices(r.LendingLimit, per)
			}
			flavors = append(flavors, f)
		}
	}
	m.Chips = types.Int64Value(total)
	m.Flavors = types.ListNull(flavorType)
	if len(flavors) > 0 {
		list, d := types.ListValueFrom(ctx, flavorType, flavors)
		diags.Append(d...)
		m.Flavors = list
	}
	return nil
}

// inSlices rounds up, so that a limit that is no whole number of slices is not
// taken for the one below.
func inSlices(chips *resource.Quantity, per int64) types.Int64 {
	if chips == nil {
		return types.Int64Null()
	}
	return types.Int64Value((chips.Value() + per - 1) / per)
}

// Remove deletes the cohort. Its members are then in one without an object.
func (m *model) Remove(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) error {
	return k.Remove(ctx, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}, true)
}
