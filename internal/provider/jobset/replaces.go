package jobset

import (
	"context"
	"reflect"
	"slices"

	tfattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// inPlace are the attributes that change while a job lives.
var inPlace = []string{"active", "annotations", "labels", "timeouts", "ttl_after_finished", "wait_for"}

// replaces names the attributes whose change makes a new job. The schema's plan
// modifiers decide the same, one by one; the framework does not tell ModifyPlan
// what they decided.
func (m model) replaces(ctx context.Context, had model) []string {
	outputs := computed()
	var names []string
	is, was := reflect.ValueOf(m), reflect.ValueOf(had)
	for i := range is.NumField() {
		name := is.Type().Field(i).Tag.Get("tfsdk")
		if _, output := outputs[name]; output || slices.Contains(inPlace, name) {
			continue
		}
		a, ok := was.Field(i).Interface().(tfattr.Value)
		b, also := is.Field(i).Interface().(tfattr.Value)
		if ok && also && !a.Equal(b) && !m.same(ctx, name, had) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// same tells whether an attribute that differs means the same all the same, or
// changes in place.
func (m model) same(ctx context.Context, name string, had model) bool {
	switch name {
	case "accelerator":
		return sameSlice(had.Accelerator, m.Accelerator)
	case "placement":
		return samePlacement(ctx, had.Placement, m.Placement)
	case "jobset_overrides":
		return !m.Overrides.IsUnknown() && compact(had.Overrides.ValueString()) == compact(m.Overrides.ValueString())
	case "restart_policy":
		return samePolicy(ctx, had.Restart, m.Restart)
	case "priority":
		return m.Priority.IsUnknown() || had.Priority.IsNull() == m.Priority.IsNull()
	}
	return false
}

// otherPolicy: an attribute that a state of an older provider does not have is
// its default.
func otherPolicy(ctx context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !samePolicy(ctx, req.StateValue, req.PlanValue)
}

func samePolicy(ctx context.Context, a, b types.Object) bool {
	unknown, diags := map[string]bool{}, diag.Diagnostics{}
	was, is := model{Restart: a}.restart(ctx, unknown, &diags), model{Restart: b}.restart(ctx, unknown, &diags)
	sorted := func(codes []int32) []int32 { return slices.Sorted(slices.Values(codes)) }
	return len(unknown) == 0 && was.MaxRestarts == is.MaxRestarts && was.OnPreemption == is.OnPreemption &&
		slices.Equal(sorted(was.FatalExitCodes), sorted(is.FatalExitCodes))
}

// otherSlice: two spellings of one slice (v6e-16, v6e-4x4) are the same job.
func otherSlice(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !sameSlice(req.StateValue, req.PlanValue)
}

func sameSlice(a, b types.String) bool {
	was, errWas := accelerator.Resolve(a.ValueString())
	is, errIs := accelerator.Resolve(b.ValueString())
	return errWas == nil && errIs == nil && was == is
}

// otherJSON: overrides that are written otherwise are the same.
func otherJSON(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = req.PlanValue.IsUnknown() || compact(req.StateValue.ValueString()) != compact(req.PlanValue.ValueString())
}

// comesOrGoes: Kueue lets a job change its priority class, not lose or gain it.
func comesOrGoes(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !req.PlanValue.IsUnknown() && req.StateValue.IsNull() != req.PlanValue.IsNull()
}
