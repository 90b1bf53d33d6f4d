package accelerators

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// byName is a model's values under their attributes' names, embedded ones
// included.
func byName(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			for name, inner := range byName(v.Field(i)) {
				out[name] = inner
			}
			continue
		}
		field := v.Field(i)
		switch {
		case field.Kind() == reflect.Struct:
			out[v.Type().Field(i).Tag.Get("tfsdk")] = byName(field)
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			list := []any{}
			for j := range field.Len() {
				list = append(list, byName(field.Index(j)))
			}
			out[v.Type().Field(i).Tag.Get("tfsdk")] = list
		default:
			out[v.Type().Field(i).Tag.Get("tfsdk")] = field.Interface()
		}
	}
	return out
}

func throughJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Terraform sees of every slice what tpuctl shows of it, attribute by
// attribute: only the capacity is laid out flat.
func TestTerraformSeesTheDescription(t *testing.T) {
	for _, s := range accelerator.List(accelerator.Filter{}) {
		want := throughJSON(t, s.Describe())
		capacity, _ := want["capacity"].(map[string]any)
		delete(want, "capacity")
		want["zones"], want["flex_start_zones"], want["zones_as_of"] = capacity["zones"], capacity["flex_start_zones"], capacity["as_of"]
		if _, limited := want["min_gke_version"]; !limited {
			want["min_gke_version"] = nil
		}
		got := throughJSON(t, byName(reflect.ValueOf(newDescription(s))))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s", s.Name, diff)
		}
		one := throughJSON(t, byName(reflect.ValueOf(newSlice(s))))
		if diff := cmp.Diff(throughJSON(t, s), one); diff != "" {
			t.Fatalf("%s: %s", s.Name, diff)
		}
	}
}

// config is a data source's configuration with some attributes set.
func config(t *testing.T, d datasource.DataSource, values map[string]tftypes.Value) tfsdk.Config {
	t.Helper()
	var resp datasource.SchemaResponse
	d.Schema(t.Context(), datasource.SchemaRequest{}, &resp)
	object, ok := resp.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("a schema is no object")
	}
	all := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		all[name] = tftypes.NewValue(kind, nil)
	}
	for name, v := range values {
		all[name] = v
	}
	return tfsdk.Config{Schema: resp.Schema, Raw: tftypes.NewValue(object, all)}
}

// Reading a slice that Google does not document warns, once and in words.
func TestReadWarns(t *testing.T) {
	for name, want := range map[string]string{"v5p-17920": "6144", "v5p-128": "", "tpu7-8": "not in Google's documentation"} {
		c := config(t, &one{}, map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, name)})
		resp := datasource.ReadResponse{State: tfsdk.State(c)}
		(&one{}).Read(t.Context(), datasource.ReadRequest{Config: c}, &resp)
		var warnings []string
		for _, d := range resp.Diagnostics {
			if d.Severity() == diag.SeverityWarning {
				warnings = append(warnings, d.Detail())
			}
		}
		if resp.Diagnostics.HasError() || (want == "") != (len(warnings) == 0) || !strings.Contains(strings.Join(warnings, ""), want) {
			t.Errorf("%s: %v; want a warning with %q", name, resp.Diagnostics, want)
		}
	}
}

// While something is unknown, nothing is resolved from the rest.
func TestUnknownPartsAreNotResolved(t *testing.T) {
	unknown := types.StringUnknown()
	for name, c := range map[string]chosen{
		"name":         {Name: unknown, MachineType: types.StringValue("nope")},
		"generation":   {Name: types.StringNull(), Generation: unknown, Topology: types.StringValue("8x4x4")},
		"topology":     {Name: types.StringNull(), Generation: types.StringValue("v9"), Topology: unknown},
		"machine type": {Name: types.StringValue("v5p-8"), Topology: types.StringValue("4x4x4"), MachineType: unknown},
	} {
		var diags diag.Diagnostics
		if _, ok := c.resolve(&diags); ok || diags.HasError() {
			t.Errorf("%s unknown: resolved %v, %v", name, ok, diags)
		}
	}
}
