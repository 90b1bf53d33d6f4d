package accelerators_test

import (
	"regexp"
	"testing"

	tf "github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

// Every filter chooses by itself, and its value is forgiven its case.
func TestEveryFilterOfTheDataSource(t *testing.T) {
	config, checks := "", []statecheck.StateCheck{}
	for name, tt := range map[string]struct {
		filter string
		want   []string
	}{
		"chips":        {"generation = \"v5e\"\n chips = 8", []string{"v5litepod-8", "v5litepod-8-8t"}},
		"min_chips":    {"generation = \"v5e\"\n min_chips = 128", []string{"v5litepod-128", "v5litepod-256"}},
		"max_chips":    {"generation = \"v5e\"\n max_chips = 4", []string{"v5litepod-1", "v5litepod-4"}},
		"hosts":        {"generation = \"v5e\"\n hosts = 2", []string{"v5litepod-8"}},
		"min_hosts":    {"generation = \"v5e\"\n min_hosts = 32", []string{"v5litepod-128", "v5litepod-256"}},
		"max_hosts":    {"generation = \"V5E\"\n max_hosts = 1", []string{"v5litepod-1", "v5litepod-4", "v5litepod-8-8t"}},
		"machine_type": {"machine_type = \"CT6E-standard-8t\"", []string{"v6e-8-8t"}},
		"machine_size": {"generation = \"v6e\"\n machine_type = \"1t\"", []string{"v6e-1"}},
		"topology":     {"topology = \"2X4\"", []string{"v5litepod-8", "v5litepod-8-8t", "v6e-8", "v6e-8-8t"}},
		"compact":      {"generation = \"v6e\"\n chips = 8\n compact = true", []string{"v6e-8"}},
		"compact_one":  {"generation = \"v6e\"\n chips = 8\n compact = true\n max_hosts = 1", []string{"v6e-8-8t"}},
		"nothing":      {"generation = \"v6e\"\n chips = 3", nil},
	} {
		config += "data \"tpu_accelerator_topologies\" \"" + name + "\" {\n " + tt.filter + "\n}\n" +
			"output \"" + name + "\" {\n value = [for t in data.tpu_accelerator_topologies." + name + ".topologies : t.name]\n}\n"
		checks = append(checks, statecheck.ExpectKnownOutputValue(name, knownvalue.ListExact(strs(tt.want...))))
	}
	run(t, tf.TestStep{Config: config, ConfigStateChecks: checks})
}

// Data sources and functions wait for what the apply will tell, and are then
// as strict as with values known before.
func TestUnknownInputs(t *testing.T) {
	const uses = `
data "tpu_accelerator" "a" { name = terraform_data.late.output }
data "tpu_accelerator_topologies" "a" { generation = data.tpu_accelerator.a.generation }
output "chips" { value = data.tpu_accelerator.a.chips }
output "count" { value = length(data.tpu_accelerator_topologies.a.topologies) }
output "hosts" { value = provider::tpu::describe_slice(terraform_data.late.output).hosts }
`
	late := func(name string) string {
		return "resource \"terraform_data\" \"late\" { input = \"" + name + "\" }\n" + uses
	}
	run(t, tf.TestStep{
		Config:           late("V5E-16"),
		ConfigPlanChecks: tf.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownOutputValue("chips"), plancheck.ExpectUnknownOutputValue("hosts")}},
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("chips", knownvalue.Int64Exact(16)),
			statecheck.ExpectKnownOutputValue("count", knownvalue.Int64Exact(9)),
			statecheck.ExpectKnownOutputValue("hosts", knownvalue.Int64Exact(4)),
		},
	}, tf.TestStep{
		Config:      late("v5e-17"),
		ExpectError: regexp.MustCompile(`(?s)v5litepod-16\s+or\s+v5litepod-32`),
	})
}
