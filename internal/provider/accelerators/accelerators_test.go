package accelerators_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	tf "github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/accelerators"
)

// bare is a provider of this package alone: no configuration, no credentials,
// nothing that could reach a network.
type bare struct{}

func (bare) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "tpu"
}
func (bare) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{}
}
func (bare) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (bare) Resources(context.Context) []func() resource.Resource                              { return nil }
func (bare) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{accelerators.NewAccelerator, accelerators.NewTopologies}
}
func (bare) Functions(context.Context) []func() function.Function {
	return []func() function.Function{accelerators.NewDescribeSlice, accelerators.NewListTopologies}
}

func run(t *testing.T, steps ...tf.TestStep) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "terraformrc")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TF_CLI_CONFIG_FILE", empty)
	tf.UnitTest(t, tf.TestCase{
		ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
			"tpu": providerserver.NewProtocol6WithError(bare{}),
		},
		Steps: steps,
	})
}

func value(at string, v knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue("data.tpu_accelerator.a", tfjsonpath.New(at), v)
}

// The data sources use nothing newer than Terraform 1.5.
func TestDataSourceDescribesASlice(t *testing.T) {
	run(t, tf.TestStep{
		Config: `
terraform {
  required_version = ">= 1.5"
}
data "tpu_accelerator" "a" {
  name = "v5e-16"
}`,
		ConfigStateChecks: []statecheck.StateCheck{
			value("name", knownvalue.StringExact("v5litepod-16")),
			value("generation", knownvalue.StringExact("v5e")),
			value("topology", knownvalue.StringExact("4x4")),
			value("chips", knownvalue.Int64Exact(16)),
			value("tensorcores", knownvalue.Int64Exact(16)),
			value("hosts", knownvalue.Int64Exact(4)),
			value("machine_type", knownvalue.StringExact("ct5lp-hightpu-4t")),
			value("taint", knownvalue.ObjectExact(map[string]knownvalue.Check{
				"key": knownvalue.StringExact("google.com/tpu"), "value": knownvalue.StringExact("present"), "effect": knownvalue.StringExact("NoSchedule"),
			})),
			value("min_gke_version", knownvalue.Null()),
		},
	}, tf.TestStep{
		Config: `data "tpu_accelerator" "a" {
  topology     = "2x4"
  machine_type = "ct5lp-hightpu-8t"
}`,
		ConfigStateChecks: []statecheck.StateCheck{
			value("name", knownvalue.StringExact("v5litepod-8-8t")),
			value("hosts", knownvalue.Int64Exact(1)),
			value("multi_host", knownvalue.Bool(false)),
			value("placement", knownvalue.StringExact("none")),
		},
	})
}

func TestDataSourceRefusesInWords(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"a size that no slice has":   {`name = "v5litepod-17"`, `(?s)v5litepod-17.*v5litepod-16 or\s+v5litepod-32`},
		"a rotation":                 {"generation = \"v5p\"\n topology = \"8x4x4\"", `(?s)4x4x8`},
		"nothing at all":             {``, `(?s)give name, or topology`},
		"name and topology":          {"name = \"v5p-8\"\n topology = \"2x2x1\"", `(?s)already says`},
		"a machine that cannot":      {"name = \"v5litepod-16\"\n machine_type = \"ct5lp-hightpu-8t\"", `(?s)ct5lp-hightpu-4t`},
		"a topology that is no such": {"generation = \"v5e\"\n topology = \"flat\"", `(?s)Invalid topology`},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tf.TestStep{
				Config:      "data \"tpu_accelerator\" \"a\" {\n " + c.config + "\n}",
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(c.want),
			})
		})
	}
}

func TestDataSourceListsAndFilters(t *testing.T) {
	run(t, tf.TestStep{
		Config: `
data "tpu_accelerator_topologies" "large" {
  generation = "v5p"
  chips      = 1024
}
data "tpu_accelerator_topologies" "hosts" {
  generation = "v6e"
  min_hosts  = 2
  max_chips  = 64
  compact    = true
}
output "large" { value = [for t in data.tpu_accelerator_topologies.large.topologies : t.topology] }
output "hosts" { value = [for t in data.tpu_accelerator_topologies.hosts.topologies : t.name] }
`,
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("large", knownvalue.ListExact(strs("8x8x16", "4x16x16", "4x8x32", "4x4x64"))),
			statecheck.ExpectKnownOutputValue("hosts", knownvalue.ListExact(strs("v6e-8", "v6e-16", "v6e-32", "v6e-64"))),
		},
	})
}

func TestFunctionsSayTheSame(t *testing.T) {
	run(t, tf.TestStep{
		Config: `
data "tpu_accelerator" "a" {
  name = "v5p-2048"
}
data "tpu_accelerator_topologies" "v6e" {
  generation = "v6e"
}
output "described" { value = provider::tpu::describe_slice("V5P-2048") == { for k, v in data.tpu_accelerator.a : k => v } }
output "chips" { value = provider::tpu::describe_slice("v5p-2048").chips }
output "listed" { value = provider::tpu::list_topologies("v6e") == data.tpu_accelerator_topologies.v6e.topologies }
`,
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("described", knownvalue.Bool(true)),
			statecheck.ExpectKnownOutputValue("chips", knownvalue.Int64Exact(1024)),
			statecheck.ExpectKnownOutputValue("listed", knownvalue.Bool(true)),
		},
	})
}

func TestFunctionsRefuseInWords(t *testing.T) {
	for call, want := range map[string]string{
		`describe_slice("v9-8")`:       `(?s)no TPU generation`,
		`describe_slice("v5p-100000")`: `(?s)v5p-17920`,
		`list_topologies("v5x")`:       `(?s)v5e, v5p or\s+tpu7x`,
	} {
		t.Run(call, func(t *testing.T) {
			run(t, tf.TestStep{
				Config:      "output \"x\" {\n value = provider::tpu::" + call + "\n}",
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(want),
			})
		})
	}
}

func strs(words ...string) []knownvalue.Check {
	var out []knownvalue.Check
	for _, w := range words {
		out = append(out, knownvalue.StringExact(w))
	}
	return out
}
