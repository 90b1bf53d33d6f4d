package jobcontrollers

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
)

func known(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

func boolOr(b types.Bool, otherwise bool) bool {
	if !known(b) {
		return otherwise
	}
	return b.ValueBool()
}

func stringMap(ctx context.Context, m types.Map, diags *diag.Diagnostics) map[string]string {
	if !known(m) {
		return nil
	}
	values := map[string]types.String{}
	diags.Append(m.ElementsAs(ctx, &values, false)...)
	out := map[string]string{}
	for k, v := range values {
		out[k] = v.ValueString()
	}
	return out
}

func mapValue(ctx context.Context, m map[string]string, diags *diag.Diagnostics) types.Map {
	if len(m) == 0 {
		return types.MapNull(types.StringType)
	}
	v, more := types.MapValueFrom(ctx, types.StringType, m)
	diags.Append(more...)
	return v
}

func boolMap(ctx context.Context, m types.Map, diags *diag.Diagnostics) map[string]bool {
	if !known(m) {
		return nil
	}
	values := map[string]types.Bool{}
	diags.Append(m.ElementsAs(ctx, &values, false)...)
	var out map[string]bool
	for k, v := range values {
		if out == nil {
			out = map[string]bool{}
		}
		out[k] = v.ValueBool()
	}
	return out
}

func boolMapValue(ctx context.Context, m map[string]bool, diags *diag.Diagnostics) types.Map {
	if len(m) == 0 {
		return types.MapNull(types.BoolType)
	}
	v, more := types.MapValueFrom(ctx, types.BoolType, m)
	diags.Append(more...)
	return v
}

// stringList is what is known of a list: an element that is not known yet is
// checked when it is.
func stringList(ctx context.Context, l types.List, diags *diag.Diagnostics) (out []string) {
	if !known(l) {
		return nil
	}
	var values []types.String
	diags.Append(l.ElementsAs(ctx, &values, false)...)
	for _, v := range values {
		if !known(v) {
			return nil
		}
		out = append(out, v.ValueString())
	}
	return out
}

func listValue(ctx context.Context, l []string, diags *diag.Diagnostics) types.List {
	if len(l) == 0 {
		return types.ListNull(types.StringType)
	}
	v, more := types.ListValueFrom(ctx, types.StringType, l)
	diags.Append(more...)
	return v
}

// whole is null for the zero that means a default.
func whole[T int | int32 | float32](n T) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

func duration(s types.String, at path.Path, diags *diag.Diagnostics) time.Duration {
	if !known(s) {
		return 0
	}
	d, err := time.ParseDuration(s.ValueString())
	if err != nil || d <= 0 {
		diags.AddAttributeError(at, "Invalid duration", "want a positive duration such as 30m or 168h, not "+s.String())
	}
	return d
}

func durationOf(d metav1.Duration) types.String {
	if d.Duration == 0 {
		return types.StringNull()
	}
	return types.StringValue(short(d.Duration))
}

// short writes 168h0m0s as 168h, the way people do.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

type resourcesModel struct {
	CPU         types.String `tfsdk:"cpu"`
	Memory      types.String `tfsdk:"memory"`
	MemoryLimit types.String `tfsdk:"memory_limit"`
}

var unknownIsEmpty = basetypes.ObjectAsOptions{UnhandledNullAsEmpty: true, UnhandledUnknownAsEmpty: true}

func resources(ctx context.Context, o types.Object, at path.Path, diags *diag.Diagnostics) (r controllers.Resources) {
	if !known(o) {
		return r
	}
	var m resourcesModel
	diags.Append(o.As(ctx, &m, unknownIsEmpty)...)
	for _, q := range []struct {
		name string
		from types.String
		to   *resource.Quantity
	}{{"cpu", m.CPU, &r.CPU}, {"memory", m.Memory, &r.Memory}, {"memory_limit", m.MemoryLimit, &r.MemoryLimit}} {
		if !known(q.from) {
			continue
		}
		var err error
		if *q.to, err = resource.ParseQuantity(q.from.ValueString()); err != nil || q.to.Sign() <= 0 {
			diags.AddAttributeError(at.AtName(q.name), "Invalid quantity", "want a positive quantity such as 500m (half a core) or 4Gi, not "+q.from.String())
		}
	}
	return r
}

func resourcesOf(ctx context.Context, r controllers.Resources, diags *diag.Diagnostics) types.Object {
	if r.CPU.IsZero() && r.Memory.IsZero() && r.MemoryLimit.IsZero() {
		return types.ObjectNull(resourceTypes)
	}
	text := func(q resource.Quantity) types.String {
		if q.IsZero() {
			return types.StringNull()
		}
		return types.StringValue(q.String())
	}
	o, more := types.ObjectValueFrom(ctx, resourceTypes, resourcesModel{text(r.CPU), text(r.Memory), text(r.MemoryLimit)})
	diags.Append(more...)
	return o
}

// defaultUsage is what Kueue's own examples have.
var defaultUsage = controllers.AdmissionFairSharing{
	HalfLife: metav1.Duration{Duration: 7 * 24 * time.Hour},
	Sampling: metav1.Duration{Duration: 5 * time.Minute},
}

type usageModel struct {
	HalfLife types.String `tfsdk:"usage_half_life"`
	Sampling types.String `tfsdk:"usage_sampling_interval"`
}

func usage(ctx context.Context, o types.Object, at path.Path, diags *diag.Diagnostics) *controllers.AdmissionFairSharing {
	if !known(o) {
		return nil
	}
	var m usageModel
	diags.Append(o.As(ctx, &m, unknownIsEmpty)...)
	a := new(defaultUsage)
	if known(m.HalfLife) {
		a.HalfLife.Duration = duration(m.HalfLife, at.AtName("usage_half_life"), diags)
	}
	if known(m.Sampling) {
		a.Sampling.Duration = duration(m.Sampling, at.AtName("usage_sampling_interval"), diags)
	}
	return a
}

func usageOf(ctx context.Context, a *controllers.AdmissionFairSharing, diags *diag.Diagnostics) types.Object {
	if a == nil {
		return types.ObjectNull(usageTypes)
	}
	o, more := types.ObjectValueFrom(ctx, usageTypes, usageModel{
		types.StringValue(short(a.HalfLife.Duration)), types.StringValue(short(a.Sampling.Duration)),
	})
	diags.Append(more...)
	return o
}

type tolerationModel struct {
	Key      types.String `tfsdk:"key"`
	Operator types.String `tfsdk:"operator"`
	Value    types.String `tfsdk:"value"`
	Effect   types.String `tfsdk:"effect"`
}

var tolerationTypes = map[string]attr.Type{
	"key": types.StringType, "operator": types.StringType, "value": types.StringType, "effect": types.StringType,
}

func tolerations(ctx context.Context, l types.List, diags *diag.Diagnostics) (out []corev1.Toleration) {
	if !known(l) {
		return nil
	}
	var values []types.Object
	diags.Append(l.ElementsAs(ctx, &values, false)...)
	for _, v := range values {
		if !known(v) {
			return nil
		}
		var m tolerationModel
		diags.Append(v.As(ctx, &m, unknownIsEmpty)...)
		t := corev1.Toleration{
			Key: m.Key.ValueString(), Operator: corev1.TolerationOperator(m.Operator.ValueString()),
			Value: m.Value.ValueString(), Effect: corev1.TaintEffect(m.Effect.ValueString()),
		}
		if t.Operator == "" && !m.Operator.IsUnknown() {
			// Said, so that a server never adds it.
			t.Operator = corev1.TolerationOpExists
			if !m.Value.IsNull() {
				t.Operator = corev1.TolerationOpEqual
			}
		}
		out = append(out, t)
	}
	return out
}

func tolerationsOf(ctx context.Context, ts []corev1.Toleration, diags *diag.Diagnostics) types.List {
	of := types.ObjectType{AttrTypes: tolerationTypes}
	if len(ts) == 0 {
		return types.ListNull(of)
	}
	text := func(s string) types.String {
		if s == "" {
			return types.StringNull()
		}
		return types.StringValue(s)
	}
	var ms []tolerationModel
	for _, t := range ts {
		ms = append(ms, tolerationModel{text(t.Key), text(string(t.Operator)), text(t.Value), text(string(t.Effect))})
	}
	v, more := types.ListValueFrom(ctx, of, ms)
	diags.Append(more...)
	return v
}
