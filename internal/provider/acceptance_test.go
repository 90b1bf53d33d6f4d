package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// quickstart returns the example's files as one configuration, with its
// required_providers left out (the test framework brings its own) and the
// project filled in. Its own text stays what is tested.
func quickstart(t *testing.T, project string, files ...string) string {
	t.Helper()
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(quickstartModule, f))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
		all.WriteString("\n")
	}
	text := all.String()
	begin := strings.Index(text, "terraform {")
	end := strings.Index(text[begin:], "\n}\n")
	text = text[:begin] + text[begin+end+3:]
	return strings.Replace(text, "variable \"project\" {", "variable \"project\" {\n  default = \""+project+"\"", 1)
}

// One apply from nothing to a finished job; the second plan is empty; destroy in
// one go.
func TestAccQuickstart(t *testing.T) {
	acctest.UseSandbox(t)
	config := quickstart(t, "acc-quickstart", "main.tf", "variables.tf", "outputs.tf")
	empty := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config,
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("tpu_training_cluster.main", tfjsonpath.New("id"),
						knownvalue.StringExact("projects/acc-quickstart/locations/us-west4-a/clusters/quickstart")),
					statecheck.ExpectKnownValue("tpu_slice_pool.v5e", tfjsonpath.New("status"), knownvalue.StringExact("READY")),
					statecheck.ExpectKnownValue("tpu_slice_pool.v5e", tfjsonpath.New("ready_slices"), knownvalue.Int64Exact(2)),
					statecheck.ExpectKnownValue("tpu_slice_pool.v5e", tfjsonpath.New("chips"), knownvalue.Int64Exact(32)),
					statecheck.ExpectKnownValue("tpu_slice_pool.v5e", tfjsonpath.New("topology"), knownvalue.StringExact("4x4")),
					statecheck.ExpectKnownValue("tpu_slice_pool.v5e", tfjsonpath.New("hosts_per_slice"), knownvalue.Int64Exact(4)),
					statecheck.ExpectKnownValue("tpu_training_jobset.train", tfjsonpath.New("status"), knownvalue.StringExact("Succeeded")),
					statecheck.ExpectKnownOutputValue("job", knownvalue.StringExact("Succeeded")),
				},
			},
			{Config: config, ConfigPlanChecks: empty},
		},
	})
}
