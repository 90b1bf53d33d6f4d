package slicepool_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// A preempted spot slice is GKE's to heal: its hosts come and go as data, and
// no plan has anything to do about it.
func TestPreemptedSpotSlice(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("spot", poolHCL(`accelerator = "v5litepod-16"
slice_count = 2
provisioning = { model = "spot" }`)+`
data "tpu_slice_pools" "now" {
  cluster = tpu_slice_pool.v5e.cluster
}
`)
	hosts := func(slice string, n int64) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.tpu_slice_pools.now", tfjsonpath.New("pools").AtSliceIndex(0).AtMapKey("slices").AtMapKey(slice),
			knownvalue.ObjectPartial(map[string]knownvalue.Check{"status": knownvalue.StringExact("RUNNING"), "hosts": knownvalue.Int64Exact(n), "hosts_ready": knownvalue.Int64Exact(n)}))
	}
	step := func(lost int, left int64) resource.TestStep {
		return resource.TestStep{
			PreConfig: func() { g.Cluster.Preempt("v5e-1", lost) }, Config: config, ConfigPlanChecks: emptyPlan,
			ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2), hosts("0", 4), hosts("1", left)},
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2), hosts("1", 4)}},
			step(1, 3), step(4, 0), step(0, 4),
		},
	})
	if n := g.Calls()["CreateNodePool"]; n != 2 {
		t.Errorf("%d creates, want 2", n)
	}
}
