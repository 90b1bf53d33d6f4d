package slicepool_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// One slice of four without capacity, under each policy: a warning, no taint,
// three ready; the plan shows an update in place; when capacity is there the
// apply makes only what is missing.
func TestStockoutHeals(t *testing.T) {
	t.Parallel()
	for policy, left := range map[string][]string{
		"wait":    nil, // whether the last try has left a node pool depends on the moment
		"keep":    {"v5e-0", "v5e-1", "v5e-2", "v5e-3"},
		"cleanup": {"v5e-0", "v5e-2", "v5e-3"},
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t, fakegke.WithTimeScale(1.0/50000), fakegke.WithStockout(fakegke.Stockout{Pool: "v5e-1"}))
			config := g.Config("stockout", poolHCL(`accelerator = "v5litepod-16"
slice_count = 4
timeouts = { create = "4s" }
on_stockout = "`+policy+`"`))
			first := resource.TestStep{Config: config, ExpectNonEmptyPlan: true, ConfigStateChecks: []statecheck.StateCheck{ready(3),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("status"), knownvalue.StringRegexp(regexp.MustCompile("DEGRADED|PROVISIONING")))}}
			if left != nil {
				first.Check = has(t, g, left...)
			}
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					first,
					{
						PreConfig:         func() { g.SetStockout() },
						Config:            config,
						ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
						Check:             has(t, g, "v5e-0", "v5e-1", "v5e-2", "v5e-3"),
						ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(4)},
					},
					{Config: config, ConfigPlanChecks: emptyPlan},
				},
			})
			if n := g.Calls()["CreateNodePool"]; policy != "wait" && n != 5 {
				t.Errorf("%d creates, want 5: healthy slices are not touched", n)
			}
		})
	}
}

// "wait" outlives a stockout that ends: one apply, READY.
func TestStockoutThatEnds(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t, fakegke.WithTimeScale(1.0/50000), fakegke.WithStockout(fakegke.Stockout{Pool: "v5e-1"}))
	go func() {
		for g.Calls()["CreateNodePool"] < 4 && t.Context().Err() == nil { // after two failed tries
			time.Sleep(10 * time.Millisecond)
		}
		g.SetStockout()
	}()
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{
			Config:            g.Config("stockout", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2")),
			Check:             has(t, g, "v5e-0", "v5e-1"),
			ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
		}},
	})
}

// "cleanup" without any slice: an error that says why, nothing in GKE, nothing
// in state, and no taint: the next apply creates.
func TestStockoutCleanupOfEverything(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t, fakegke.WithTimeScale(1.0/50000), fakegke.WithStockout(fakegke.Stockout{Pool: "v5e-0"}, fakegke.Stockout{Pool: "v5e-1"}))
	config := g.Config("stockout", poolHCL(`accelerator = "v5litepod-16"
slice_count = 2
on_stockout = "cleanup"`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config, ExpectError: regexp.MustCompile(`(?s)Could not create slice pool v5e.*no capacity for ct5lp-hightpu-4t in.us-west4-a.*Apply again later`)},
			{Config: g.Config("stockout", clusterHCL), Check: has(t, g)},
			{
				PreConfig:         func() { g.SetStockout() },
				Config:            config,
				ConfigPlanChecks:  action(plancheck.ResourceActionCreate),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
		},
	})
}
