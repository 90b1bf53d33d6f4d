package provider_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// On a real control plane tpu_slice_pools counts the hosts that joined and are
// ready.
func TestAccSlicePools(t *testing.T) {
	acctest.UseSandbox(t)
	config := func(slices int) string {
		return fmt.Sprintf(`
provider "tpu" {
  project  = "acc-slicepools"
  location = "us-west4-a"
}

resource "tpu_training_cluster" "main" {
  name                = "slicepools"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = %d
}

data "tpu_slice_pools" "all" {
  cluster    = tpu_slice_pool.v5e.cluster
  depends_on = [tpu_slice_pool.v5e]
}
`, slices)
	}
	counted := func(slices int) resource.TestStep {
		checks := []statecheck.StateCheck{}
		for i := range slices {
			checks = append(checks, statecheck.ExpectKnownValue("data.tpu_slice_pools.all",
				tfjsonpath.New("pools").AtSliceIndex(0).AtMapKey("slices").AtMapKey(fmt.Sprint(i)),
				knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"node_pool": knownvalue.StringExact(fmt.Sprintf("v5e-%d", i)), "status": knownvalue.StringExact("RUNNING"),
					"hosts": knownvalue.Int64Exact(4), "hosts_ready": knownvalue.Int64Exact(4), "jobs": knownvalue.ListSizeExact(0),
				})))
		}
		return resource.TestStep{Config: config(slices), ConfigStateChecks: checks,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}}
	}
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: acctest.Factories(), Steps: []resource.TestStep{counted(1), counted(2)}})
}
