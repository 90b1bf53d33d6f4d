package credentials_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const made = `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

ephemeral "tpu_cluster_credentials" "main" {
  cluster = tpu_training_cluster.main.id
}
`

// One apply makes a cluster and configures another provider with its
// credentials: the plan, which knows the cluster's id and no cluster, passes.
func TestCredentialsConfigureAnotherProvider(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	factories := g.Factories()
	factories["echo"] = echoprovider.NewProviderServer()
	config := g.Config("", made+`
provider "echo" {
  data = ephemeral.tpu_cluster_credentials.main
}

resource "echo" "got" {}
`)
	cluster := "projects/" + g.Project + "/locations/" + g.Zone + "/clusters/main"
	at := func(name string) tfjsonpath.Path { return tfjsonpath.New("data").AtMapKey(name) }
	got := []statecheck.StateCheck{
		statecheck.ExpectKnownValue("echo.got", at("cluster"), knownvalue.StringExact(cluster)),
		statecheck.ExpectKnownValue("echo.got", at("endpoint"), knownvalue.NotNull()),
		statecheck.ExpectKnownValue("echo.got", at("token"), knownvalue.StringExact(acctest.Token)),
		statecheck.ExpectKnownValue("echo.got", at("expires_at"), knownvalue.Null()), // of an access_token nobody knows it
		statecheck.ExpectKnownValue("echo.got", at("ca_certificate"), knownvalue.StringFunc(func(s string) error {
			if !strings.HasPrefix(s, "-----BEGIN CERTIFICATE-----") {
				t.Errorf("the CA certificate is %.40q", s)
			}
			return nil
		})),
	}
	gone := func() {
		api, err := gke.New(gke.Config{Endpoint: g.Endpoint, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: acctest.Token}), PollInterval: time.Millisecond})
		if err == nil {
			err = api.DeleteCluster(t.Context(), gke.ClusterName{Project: g.Project, Location: g.Zone, Cluster: "main"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	steps := []resource.TestStep{{Config: config, ConfigStateChecks: got}, {
		// Deleted by hand, it is made again by the same plan.
		PreConfig: gone, Config: config, ConfigStateChecks: got,
	}}
	if os.Getenv("TF_ACC_PROVIDER_HOST") == "" {
		// OpenTofu cannot destroy what another provider has without the cluster.
		steps = append(steps, resource.TestStep{PreConfig: gone, Config: config, Destroy: true})
	}
	resource.UnitTest(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_10_0)},
		ProtoV6ProviderFactories: factories,
		Steps:                    steps,
	})
}

// Neither the plan file nor the state holds anything of what was handed out,
// although a provider was configured with it.
func TestCredentialsAreNotStored(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	d, err := tfrun.New(filepath.Join(t.TempDir(), "module"), "", tfrun.FindCLI(), acctest.ProviderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	second := strings.Replace(g.Config("", ""), `provider "tpu" {`, "provider \"tpu\" {\n  alias = \"second\"", 1)
	second = strings.Replace(second, `"`+acctest.Token+`"`, "ephemeral.tpu_cluster_credentials.main.token", 1)
	// The token reaches the first provider by its environment only.
	config := strings.Replace(g.Config("", ""), `access_token  = "`+acctest.Token+`"`, "", 1) + second + made + `
terraform {
  required_providers {
    tpu = { source = "` + tfrun.Source + `" }
  }
}

resource "tpu_training_cluster" "second" {
  provider            = tpu.second
  name                = "second"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}
`
	if strings.Contains(config, acctest.Token) {
		t.Fatal("the configuration holds the token: the test would prove nothing")
	}
	if err := d.Write("main.tf", config); err != nil {
		t.Fatal(err)
	}
	d.Env = []string{"GOOGLE_OAUTH_ACCESS_TOKEN=" + acctest.Token}
	for _, args := range [][]string{{"init"}, {"plan", "-out=plan"}, {"show", "-json", "plan"}, {"apply", "plan"}, {"show", "-json"}} {
		out, err := d.Output(t.Context(), append(args, "-no-color")...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		if strings.Contains(out, acctest.Token) {
			t.Errorf("%s prints the token:\n%s", args, out)
		}
	}
	state, err := os.ReadFile(filepath.Join(d.Path, "terraform.tfstate"))
	if err != nil || strings.Contains(string(state), acctest.Token) || strings.Contains(string(state), "expires_at") {
		t.Errorf("%v, or the state holds credentials:\n%s", err, state)
	}
}

// credentials opens and renews the ephemeral resource as Terraform does.
type credentials struct {
	tfprotov6.ProviderServer
	typ tftypes.Object
}

func serve(t *testing.T, g *acctest.GKE) credentials {
	t.Helper()
	s, err := g.Factories()["tpu"]()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := schema.Provider.ValueType().(tftypes.Object)
	resp, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: dynamic(t, typ, map[string]string{"gke_endpoint": g.Endpoint, "access_token": acctest.Token})})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, resp.Diagnostics)
	}
	return credentials{s, schema.EphemeralResourceSchemas["tpu_cluster_credentials"].ValueType().(tftypes.Object)}
}

func dynamic(t *testing.T, typ tftypes.Object, known map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	values := map[string]tftypes.Value{}
	for name, at := range typ.AttributeTypes {
		values[name] = tftypes.NewValue(at, nil)
		if v, ok := known[name]; ok {
			values[name] = tftypes.NewValue(at, v)
		}
	}
	v, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

func (c credentials) open(t *testing.T, cluster, kind string) (map[string]tftypes.Value, *tfprotov6.OpenEphemeralResourceResponse) {
	t.Helper()
	config := map[string]string{"cluster": cluster}
	if kind != "" {
		config["endpoint_type"] = kind
	}
	resp, err := c.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{TypeName: "tpu_cluster_credentials", Config: dynamic(t, c.typ, config)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]tftypes.Value{}
	if resp.Result != nil {
		v, err := resp.Result.Unmarshal(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.As(&got); err != nil {
			t.Fatal(err)
		}
	}
	return got, resp
}

// planned plans a new cluster, as Terraform does before it opens what refers to
// that.
func (c credentials) planned(t *testing.T, project, name string) {
	t.Helper()
	schemas, err := c.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := schemas.ResourceSchemas["tpu_training_cluster"].ValueType().(tftypes.Object)
	config := dynamic(t, typ, map[string]string{"project": project, "location": "us-west4-a", "name": name})
	nothing, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, nil))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{TypeName: "tpu_training_cluster", PriorState: &nothing, ProposedNewState: config, Config: config})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, resp.Diagnostics)
	}
}

// What is planned and not there yet is unknown, without a word: that is how it
// should be. What nobody makes is an error that says what there is.
func TestOpenWithoutCluster(t *testing.T) {
	t.Parallel()
	c := serve(t, acctest.NewGKE(t))
	const missing = "projects/p/locations/us-west4-a/clusters/missing"
	_, resp := c.open(t, missing, "")
	if len(resp.Diagnostics) != 1 || resp.Diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError ||
		!strings.Contains(resp.Diagnostics[0].Detail, "cluster missing does not exist in us-west4-a of project p, and the project has no cluster") {
		t.Errorf("got %v", resp.Diagnostics)
	}
	c.planned(t, "p", "other")
	if _, resp = c.open(t, missing, ""); len(resp.Diagnostics) != 1 {
		t.Errorf("with another one planned: %v", resp.Diagnostics)
	}
	c.planned(t, "p", "missing")
	got, resp := c.open(t, missing, "")
	if len(resp.Diagnostics) != 0 {
		t.Errorf("got %v", resp.Diagnostics)
	}
	for _, name := range []string{"endpoint", "token", "ca_certificate", "expires_at"} {
		if got[name].IsKnown() {
			t.Errorf("%s is %v, want unknown", name, got[name])
		}
	}
	check := func(config map[string]string, want string) {
		t.Helper()
		v, err := c.ValidateEphemeralResourceConfig(t.Context(), &tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: "tpu_cluster_credentials", Config: dynamic(t, c.typ, config)})
		if err != nil || len(v.Diagnostics) != 1 || !strings.Contains(v.Diagnostics[0].Detail, want) {
			t.Errorf("%v: got %v, %v; want %q", config, err, v.Diagnostics, want)
		}
	}
	check(map[string]string{"cluster": "missing"}, "is not a cluster path")
	check(map[string]string{"cluster": missing, "endpoint_type": "vpn"}, `"private_ip"`)
}

// A run that outlives the token hears of it, once.
func TestRenewSaysThatTheTokenEnds(t *testing.T) {
	t.Parallel()
	c := serve(t, acctest.NewGKE(t))
	kept, err := json.Marshal(map[string]any{"cluster": "projects/p/locations/l/clusters/c", "expiry": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	private, err := json.Marshal(map[string][]byte{"token": kept})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RenewEphemeralResource(t.Context(), &tfprotov6.RenewEphemeralResourceRequest{TypeName: "tpu_cluster_credentials", Private: private})
	if err != nil || len(resp.Diagnostics) != 1 || !resp.RenewAt.IsZero() {
		t.Fatalf("got %v, %+v", err, resp)
	}
	if d := resp.Diagnostics[0]; d.Severity != tfprotov6.DiagnosticSeverityWarning || !strings.Contains(d.Summary, "ends at 2026-01-02T03:04:05Z") {
		t.Errorf("got %v", d)
	}
}
