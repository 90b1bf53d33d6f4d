package attr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// said is what a validator says of a string: "", or severity, path and text.
func said(t *testing.T, v validator.String, at path.Path, value types.String) string {
	t.Helper()
	var resp validator.StringResponse
	v.ValidateString(t.Context(), validator.StringRequest{Path: at, ConfigValue: value}, &resp)
	return listed(resp.Diagnostics)
}

func listed(diags diag.Diagnostics) string {
	var lines []string
	for _, d := range diags {
		where := ""
		if p, ok := d.(diag.DiagnosticWithPath); ok {
			where = p.Path().String()
		}
		lines = append(lines, fmt.Sprintf("%s at %s: %s", d.Severity(), where, d.Detail()))
	}
	return strings.Join(lines, "\n")
}

var validators = map[string]struct {
	validator   validator.String
	right       []string
	wrong, text string
}{
	"cluster":      {ClusterPath(), []string{"projects/p/locations/us-west4-a/clusters/c"}, "c", `"c"`},
	"accelerator":  {AcceleratorName(), []string{"v5litepod-16", " V6E-4X4 ", "v5p-8"}, "v5p-12", "12 TensorCores"},
	"topology":     {TopologyText(), []string{"4x4", "4X4x8"}, "4by4", "not a topology"},
	"machine type": {MachineType(), []string{"ct6e-standard-4t"}, "8t", "ct6e-standard-8t"},
	"name":         {DNSLabel(5), []string{"a", "a-1"}, "a-", "not a valid name"},
	"long name":    {DNSLabel(5), []string{"abcde"}, "abcdef", "6 characters; the most is 5"},
	"upper name":   {DNSLabel(5), []string{"ab"}, "Ab", "not a valid name"},
	"owner":        {OwnerName(), []string{"team_a-1"}, "Team A", "cannot be written"},
	"no owner":     {OwnerName(), []string{"t"}, "", "cannot be written"},
	"duration":     {Duration(), []string{"0s", "90m"}, "90", "with a unit"},
	"past":         {Duration(), []string{"1h"}, "-1h", "negative"},
}

func TestStrings(t *testing.T) {
	at := path.Root("x")
	for name, tt := range validators {
		for _, value := range tt.right {
			if got := said(t, tt.validator, at, types.StringValue(value)); got != "" {
				t.Errorf("%s: %q: %s", name, value, got)
			}
		}
		got := said(t, tt.validator, at, types.StringValue(tt.wrong))
		if !strings.HasPrefix(got, "Error at x: ") || !strings.Contains(got, tt.text) {
			t.Errorf("%s: %q: %q; want %q", name, tt.wrong, got, tt.text)
		}
	}
}

// What is not known yet is checked when it is.
func TestUnknownAndNullAreNotChecked(t *testing.T) {
	for name, tt := range validators {
		for _, value := range []types.String{types.StringNull(), types.StringUnknown()} {
			if got := said(t, tt.validator, path.Root("x"), value); got != "" {
				t.Errorf("%s: %s: %s", name, value, got)
			}
		}
		if tt.validator.Description(t.Context()) == "" || tt.validator.MarkdownDescription(t.Context()) == "" {
			t.Errorf("%s says nothing of what it wants", name)
		}
	}
}

// A mistake inside a list is reported where Terraform can show the line, and
// says which element it is.
func TestNestedValuesAreNamed(t *testing.T) {
	at := path.Root("flavors").AtListIndex(1).AtName("accelerator")
	for value, want := range map[string]string{
		"v5p-13":    `Error at flavors: flavors[1].accelerator = "v5p-13": v5p has no slice of 13 TensorCores (the number counts TensorCores, 2 to a chip); try v5p-8 or v5p-16`,
		"v5p-17920": `Warning at flavors: flavors[1].accelerator = "v5p-17920": 8960 chips are more than the 6144 that Google documents for one v5p slice; GKE may refuse it.`,
		"v5p-12288": "",
	} {
		if diff := cmp.Diff(want, said(t, AcceleratorName(), at, types.StringValue(value))); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

func TestLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		validator  validator.Map
		key, value string
		want       string // "" where it is accepted
	}{
		"cloud":                {ResourceLabels(), "cost", "tpu_1", ""},
		"cloud, upper key":     {ResourceLabels(), "Cost", "x", "not a valid label key"},
		"cloud, upper value":   {ResourceLabels(), "cost", "X", "not a valid label value"},
		"cloud, ours":          {ResourceLabels(), "tpu-provider-owner", "x", "written by the provider only"},
		"kubernetes":           {KubernetesLabels(), "example.com/team", "A.b", ""},
		"kubernetes, bad key":  {KubernetesLabels(), "a/b/c", "x", "a/b/c"},
		"kubernetes, bad text": {KubernetesLabels(), "team", "a b", `team = "a b"`},
	} {
		var resp validator.MapResponse
		tt.validator.ValidateMap(t.Context(), validator.MapRequest{Path: path.Root("labels"),
			ConfigValue: types.MapValueMust(types.StringType, map[string]attr.Value{tt.key: types.StringValue(tt.value)})}, &resp)
		got := listed(resp.Diagnostics)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q; want %q", name, got, tt.want)
		}
		for _, none := range []types.Map{types.MapNull(types.StringType), types.MapUnknown(types.StringType)} {
			resp = validator.MapResponse{}
			tt.validator.ValidateMap(t.Context(), validator.MapRequest{Path: path.Root("labels"), ConfigValue: none}, &resp)
			if resp.Diagnostics.HasError() {
				t.Errorf("%s, nothing known: %v", name, resp.Diagnostics)
			}
		}
	}
}
