package slicepool_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// "cleanup" removes what did not come up. A slice that runs stays, with the job
// on it, when the time is up before it has its new settings.
func TestCleanupKeepsSlicesThatRun(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(node string) string {
		return g.Config("cleanup", poolHCL(`accelerator = "v5litepod-16"
slice_count = 3
timeouts = { update = "1s" }
on_stockout = "cleanup"
node = { tags = ["`+node+`"] }`))
	}
	var release func()
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("a")},
			{
				PreConfig:          func() { g.Cluster.Run("train", "v5e-1"); release = g.Hold() },
				Config:             config("b"),
				ConfigPlanChecks:   action(plancheck.ResourceActionUpdate),
				ExpectNonEmptyPlan: true,
				Check:              has(t, g, "v5e-0", "v5e-1", "v5e-2"),
			},
			{
				PreConfig:         func() { release() },
				Config:            config("b"),
				Check:             has(t, g, "v5e-0", "v5e-1", "v5e-2"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(3)},
			},
		},
	})
	if n := g.Calls()["DeleteNodePool"]; n != 3 { // those of the destroy
		t.Errorf("%d node pools were deleted, want 3, at the end", n)
	}
}
