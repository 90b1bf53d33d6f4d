package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// configure runs Configure with the given attributes and environment.
func configure(t *testing.T, attrs map[string]tftypes.Value, env map[string]string) (*conn.Data, diag.Diagnostics) {
	t.Helper()
	ctx := context.Background()
	p := New("test", WithEnvironment(func(k string) string { return env[k] }))()
	var s provider.SchemaResponse
	p.Schema(ctx, provider.SchemaRequest{}, &s)
	typ := s.Schema.Type().TerraformType(ctx).(tftypes.Object)
	vals := map[string]tftypes.Value{}
	for name, at := range typ.AttributeTypes {
		vals[name] = tftypes.NewValue(at, nil)
		if v, ok := attrs[name]; ok {
			vals[name] = v
		}
	}
	var resp provider.ConfigureResponse
	p.Configure(ctx, provider.ConfigureRequest{Config: tfsdk.Config{Schema: s.Schema, Raw: tftypes.NewValue(typ, vals)}}, &resp)
	data, _ := resp.ResourceData.(*conn.Data)
	return data, resp.Diagnostics
}

func str(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

// Nothing is needed to configure: no credentials, no network, no project.
func TestConfigureNeedsNothing(t *testing.T) {
	data, diags := configure(t, nil, nil)
	if diags.HasError() || data == nil || data.GKE == nil || data.Partial {
		t.Errorf("got %+v, %v", data, diags)
	}
}

func TestConfigureReadsTheEnvironment(t *testing.T) {
	type got struct{ Project, Location, Owner string }
	for _, c := range []struct {
		name  string
		attrs map[string]tftypes.Value
		env   map[string]string
		want  got
	}{
		{"configuration first", map[string]tftypes.Value{"project": str("p"), "location": str("us-west4-a"), "owner": str("o")},
			map[string]string{"GOOGLE_PROJECT": "env", "GOOGLE_ZONE": "env", "TPU_OWNER": "env"}, got{"p", "us-west4-a", "o"}},
		{"environment", nil, map[string]string{"GOOGLE_PROJECT": "a", "GOOGLE_CLOUD_PROJECT": "b", "GOOGLE_ZONE": "z", "GOOGLE_REGION": "r", "TPU_OWNER": "o"}, got{"a", "z", "o"}},
		{"further names", nil, map[string]string{"GOOGLE_CLOUD_PROJECT": "b", "GOOGLE_REGION": "r"}, got{"b", "r", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, diags := configure(t, c.attrs, c.env)
			if diags.HasError() {
				t.Fatal(diags)
			}
			if d := cmp.Diff(c.want, got{data.Project, data.Location, data.Owner}); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// While something is unknown, what is missing may still come: and the
// environment does not stand in for it.
func TestConfigureToleratesUnknown(t *testing.T) {
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	attrs := map[string]tftypes.Value{"project": unknown, "access_token": unknown, "gke_endpoint": unknown, "poll_interval": unknown,
		"default_labels": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"a": unknown})}
	data, diags := configure(t, attrs, map[string]string{"GOOGLE_PROJECT": "env"})
	if diags.HasError() || !data.Partial || data.Project != "" {
		t.Errorf("got %+v, %v", data, diags)
	}
}

func TestEndpointsFromTheEnvironmentAreChecked(t *testing.T) {
	for _, name := range []string{"TPU_GKE_ENDPOINT", "TPU_COMPUTE_ENDPOINT"} {
		_, diags := configure(t, nil, map[string]string{name: "http://10.1.2.3"})
		if !diags.HasError() || !strings.Contains(diags[0].Detail(), "unencrypted") {
			t.Errorf("%s: got %v", name, diags)
		}
	}
}

func TestQuotaProject(t *testing.T) {
	for _, c := range []struct {
		name string
		m    model
		env  map[string]string
		want string
	}{
		{name: "off", m: model{Project: types.StringValue("p")}},
		{name: "on", m: model{Project: types.StringValue("p"), UserProjectOverride: types.BoolValue(true)}, want: "p"},
		{name: "billing project", m: model{Project: types.StringValue("p"), UserProjectOverride: types.BoolValue(true), BillingProject: types.StringValue("b")}, want: "b"},
		{name: "environment", m: model{Project: types.StringValue("p")}, env: map[string]string{"USER_PROJECT_OVERRIDE": "true"}, want: "p"},
		{name: "off beats environment", m: model{Project: types.StringValue("p"), UserProjectOverride: types.BoolValue(false)}, env: map[string]string{"USER_PROJECT_OVERRIDE": "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var diags diag.Diagnostics
			c.m.DefaultLabels, c.m.Delegates = types.MapNull(types.StringType), types.ListNull(types.StringType)
			if got := c.m.settings(t.Context(), func(k string) string { return c.env[k] }, &diags).gke.QuotaProject; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The documentation is generated from these descriptions.
func TestEverythingIsDescribed(t *testing.T) {
	ctx := context.Background()
	p := New("test")()
	var s provider.SchemaResponse
	p.Schema(ctx, provider.SchemaRequest{}, &s)
	if d := s.Schema.ValidateImplementation(ctx); d.HasError() {
		t.Error(d)
	}
	for name, a := range s.Schema.Attributes {
		if a.GetMarkdownDescription() == "" {
			t.Errorf("provider attribute %s has no description", name)
		}
	}
}
