package provider

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// validate checks a provider block as `terraform validate` does.
func validate(t *testing.T, attrs map[string]tftypes.Value) []*tfprotov6.Diagnostic {
	t.Helper()
	ctx := context.Background()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := schema.Provider.ValueType().(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, at := range typ.AttributeTypes {
		values[name] = tftypes.NewValue(at, nil)
		if v, ok := attrs[name]; ok {
			values[name] = v
		}
	}
	config, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: &config})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}

// Each wrong value is one error, at its attribute, that says what is wrong and
// what is right, and never quotes a secret.
func TestWrongSettingsAreRefusedInWords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, []byte(`{"type": "service_account", "client_email": "s3cret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		attr, value string
		want        string // "" is accepted
	}{
		{"credentials", `{"type": "authorized_user", "client_secret": "s3cret"}`, "credentials of type authorized_user lack client_id, refresh_token"},
		{"credentials", file, "the file " + file + ": credentials of type service_account lack private_key"},
		{"credentials", "/nowhere/key.json", ""}, // told by the plan
		{"credentials", "s3cret", "its 6 characters are neither JSON nor the path of a file"},
		{"access_token", "ya29.token", ""},
		{"access_token", "s3cret and more", "it has spaces"},
		{"access_token", "", "the access token is empty: leave it out"},
		{"impersonate_service_account", "a@acme.iam.gserviceaccount.com", ""},
		{"impersonate_service_account", "1-compute@developer.gserviceaccount.com", ""},
		{"impersonate_service_account", "me@example.com", `"me@example.com" is not a service account: want its email address`},
		{"impersonate_service_account", "serviceAccount:a", "without a prefix"},
		{"project", "example.com:acme", ""},
		{"project", "123456", ""},
		{"project", "", "project is empty"},
		{"project", "projects/acme", `want the project's id alone, "acme"`},
		{"project", "My Project", "is not a project's id"},
		{"location", "us-west4-a", ""},
		{"location", "northamerica-northeast1", ""},
		{"location", "us-central1-ai1a", ""},
		{"location", "", "location is empty"},
		{"location", "US West", "want a zone such as us-west4-a or a region such as us-west4"},
		{"request_timeout", "90s", ""},
		{"request_timeout", "30", `"30" has no unit: write 30s`},
		{"request_timeout", "soon", `"soon" is not a duration: want a number with a unit`},
		{"request_timeout", "0s", `"0s" is not more than zero`},
		{"request_timeout", "-1s", `"-1s" is not more than zero`},
		{"request_timeout", "2h", `"2h" is too long: the most is 60 minutes`},
		{"poll_interval", "11m", `"11m" is too long: the most is 10 minutes`},
		{"gke_endpoint", "http://10.0.0.1", "unencrypted"},
	} {
		got := validate(t, map[string]tftypes.Value{c.attr: str(c.value)})
		if c.want == "" {
			if len(got) != 0 {
				t.Errorf("%s = %q: %s: %s", c.attr, c.value, got[0].Summary, got[0].Detail)
			}
			continue
		}
		if len(got) != 1 || !strings.Contains(got[0].Detail, c.want) || got[0].Attribute.String() != tftypes.NewAttributePath().WithAttributeName(c.attr).String() {
			t.Errorf("%s = %q: got %v, want one error with %q", c.attr, c.value, got, c.want)
			continue
		}
		if strings.Contains(got[0].Summary+got[0].Detail, "s3cret") {
			t.Errorf("%s: the error shows the secret: %s", c.attr, got[0].Detail)
		}
	}
	list := tftypes.List{ElementType: tftypes.String}
	got := validate(t, map[string]tftypes.Value{"impersonate_service_account_delegates": tftypes.NewValue(list, []tftypes.Value{str("a@acme.iam.gserviceaccount.com"), str("b")})})
	if len(got) != 1 || !strings.Contains(got[0].Detail, `impersonate_service_account_delegates[1] = "b": "b" is not a service account`) {
		t.Errorf("delegates: %v", got)
	}
}

// Both kinds of credentials are one error, whatever else is wrong with them.
func TestTwoSetsOfCredentialsAreOneError(t *testing.T) {
	for name, c := range map[string][2]string{
		"both good":            {"/nowhere/key.json", "ya29.token"},
		"wrong credentials":    {`{"type": "service_account"}`, "ya29.token"},
		"nonsense credentials": {"s3cret", "ya29.token"},
		"wrong token":          {"/nowhere/key.json", "s3cret and more"},
		"both wrong":           {"s3cret", ""},
	} {
		got := validate(t, map[string]tftypes.Value{"credentials": str(c[0]), "access_token": str(c[1])})
		if len(got) != 1 || got[0].Summary != "Two sets of credentials" || got[0].Detail != "Both credentials and access_token are set, and only one can be used: take the other out." {
			t.Errorf("%s: %v", name, got)
		}
	}
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	if got := validate(t, map[string]tftypes.Value{"credentials": str("s3cret"), "access_token": unknown}); len(got) != 1 || got[0].Summary != "Invalid credentials" {
		t.Errorf("with a token that is not known: %v", got)
	}
}

// What only the environment or the moment of the plan can tell.
func TestConfigureRefusesInWords(t *testing.T) {
	yes := tftypes.NewValue(tftypes.Bool, true)
	list := tftypes.List{ElementType: tftypes.String}
	for _, c := range []struct {
		name  string
		attrs map[string]tftypes.Value
		env   map[string]string
		at    string
		want  string
		warns bool
	}{
		{"a file that is not there", map[string]tftypes.Value{"credentials": str("/nowhere/key.json")}, nil, "credentials", "the file /nowhere/key.json: no such file", false},
		{"nothing to count against", map[string]tftypes.Value{"user_project_override": yes}, nil, "user_project_override", "neither billing_project (GOOGLE_BILLING_PROJECT) nor project (GOOGLE_PROJECT) is set", false},
		{"the same by the environment", nil, map[string]string{"USER_PROJECT_OVERRIDE": "true"}, "user_project_override", "USER_PROJECT_OVERRIDE is true, but neither", false},
		{"neither true nor false", nil, map[string]string{"USER_PROJECT_OVERRIDE": "yes"}, "", `USER_PROJECT_OVERRIDE is "yes": want true or false`, false},
		{"a project that is not used", map[string]tftypes.Value{"billing_project": str("b")}, nil, "billing_project", "unless user_project_override is true", true},
		{"delegates to nobody", map[string]tftypes.Value{"impersonate_service_account_delegates": tftypes.NewValue(list, []tftypes.Value{str("a@acme.iam.gserviceaccount.com")})}, nil,
			"impersonate_service_account_delegates", "set impersonate_service_account", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, diags := configure(t, c.attrs, c.env)
			if len(diags) != 1 || !strings.Contains(diags[0].Detail(), c.want) || diags.HasError() == c.warns {
				t.Fatalf("got %v, want one with %q", diags, c.want)
			}
			at := ""
			if d, ok := diags[0].(diag.DiagnosticWithPath); ok {
				at = d.Path().String()
			}
			if at != c.at {
				t.Errorf("at %q, want %q", at, c.at)
			}
		})
	}
}

// While credentials are unknown, a token of somebody else is not sent instead.
func TestUnknownCredentialsSendNothing(t *testing.T) {
	for _, name := range []string{"credentials", "access_token", "impersonate_service_account", "impersonate_service_account_delegates"} {
		value := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
		if strings.HasSuffix(name, "delegates") {
			value = tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, tftypes.UnknownValue)
		}
		data, diags := configure(t, map[string]tftypes.Value{name: value}, map[string]string{"GOOGLE_OAUTH_ACCESS_TOKEN": "s3cret"})
		if diags.HasError() {
			t.Fatal(diags)
		}
		if _, _, err := data.GKE.ListClusters(t.Context(), "p", "-"); err == nil || !strings.Contains(err.Error(), "the provider's "+name+" is not known before the apply") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
