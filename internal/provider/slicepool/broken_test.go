package slicepool_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// A running slice that loses hosts is in RUNNING_WITH_ERROR. On demand it is
// down for good: the pool is DEGRADED, and the apply makes that slice again and
// no other. Spot machines are GKE's to bring back: READY, and nothing to do.
func TestRunningSliceThatLosesHosts(t *testing.T) {
	t.Parallel()
	for model, tt := range map[string]struct {
		plan    resource.ConfigPlanChecks
		creates int
	}{
		"on_demand": {action(plancheck.ResourceActionUpdate), 3},
		"spot":      {emptyPlan, 2},
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			config := g.Config("broken", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\nprovisioning = { model = \""+model+"\" }"))
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: config},
					{
						PreConfig:         func() { g.Break(clusterPath(g)+"/nodePools/v5e-1", 3, fakegke.OutOfStock) },
						Config:            config,
						ConfigPlanChecks:  tt.plan,
						Check:             has(t, g, "v5e-0", "v5e-1"),
						ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
					},
				},
			})
			if n := g.Calls()["CreateNodePool"]; n != tt.creates {
				t.Errorf("%d creates, want %d", n, tt.creates)
			}
		})
	}
}

// A slice that was recreated outside Terraform, also out of an error, is the
// slice that the state knows: the plan is empty.
func TestPlanAfterARecreatedSlice(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("again", poolHCL(`accelerator = "v5litepod-16"
slice_count = 2
resource_labels = { team = "a" }
node = { labels = { tier = "gold" }, taints = [{ key = "k", value = "v", effect = "NoSchedule" }], boot_disk = { size_gb = 120 } }`))
	again := func() {
		c, err := gke.New(gke.Config{Endpoint: g.Endpoint, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: acctest.Token}), PollInterval: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		g.Break(clusterPath(g)+"/nodePools/v5e-1", 3, fakegke.OutOfStock)
		cluster, err := gke.ParseClusterName(clusterPath(g))
		if err != nil {
			t.Fatal(err)
		}
		np, err := c.SliceNodePool(t.Context(), cluster, "v5e-1")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RecreateSlice(t.Context(), cluster, np, nil); err != nil {
			t.Fatal(err)
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{PreConfig: again, Config: config, ConfigPlanChecks: emptyPlan, ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)}},
		},
	})
}
