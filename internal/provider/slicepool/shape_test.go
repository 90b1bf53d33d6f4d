package slicepool_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

func shapeIs(topology, machine string, hosts int64) []statecheck.StateCheck {
	return []statecheck.StateCheck{status("READY"),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("topology"), knownvalue.StringExact(topology)),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("machine_type"), knownvalue.StringExact(machine)),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts_per_slice"), knownvalue.Int64Exact(hosts)),
	}
}

// Each part of the accelerator may come out of the same apply.
func TestPartsOfTheAcceleratorKnownAtApply(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"accelerator": "accelerator = terraform_data.late.output\n topology = \"2x4\"\n machine_type = \"ct5lp-hightpu-8t\"",
		"topology":    "accelerator = \"v5e\"\n topology = terraform_data.late.output\n machine_type = \"ct5lp-hightpu-8t\"",
		"machine":     "accelerator = \"v5e-8\"\n topology = \"2x4\"\n machine_type = terraform_data.late.output",
	} {
		late := map[string]string{"accelerator": "v5e-8", "topology": "2x4", "machine": "ct5lp-hightpu-8t"}[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{{
					Config: g.Config("late", poolHCL(body)+"\nresource \"terraform_data\" \"late\" { input = \""+late+"\" }\n"),
					ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
						plancheck.ExpectUnknownValue(address, tfjsonpath.New("hosts_per_slice"))}},
					ConfigStateChecks: shapeIs("2x4", "ct5lp-hightpu-8t", 1),
				}},
			})
		})
	}
}

// What only the apply shows to be spelled otherwise is refused in words, not as
// a mistake of the provider.
func TestSpellingKnownAtApply(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	late := "\nresource \"terraform_data\" \"late\" { input = \"4X4\" }\n"
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{
			Config:      g.Config("late", poolHCL("accelerator = \"v5e\"\n topology = terraform_data.late.output")+late),
			ExpectError: regexp.MustCompile(`(?s)topology = "4X4" means 4x4: write\s+topology\s+=\s+"4x4"`),
		}},
	})
}

// The machine that the name says stays when the topology is said again, and no
// change of spelling makes new slices.
func TestNamedMachineStays(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{
				Config:            g.Config("named", poolHCL("accelerator = \"v5e-8-8t\"\n topology = \"2x4\"")),
				ConfigStateChecks: shapeIs("2x4", "ct5lp-hightpu-8t", 1),
			},
			{
				Config:            g.Config("named", poolHCL("accelerator = \" V5LitePod-2X4-8T\"")),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: shapeIs("2x4", "ct5lp-hightpu-8t", 1),
			},
			{
				Config:            g.Config("named", poolHCL("accelerator = \"v5e-8\"")),
				ConfigPlanChecks:  action(plancheck.ResourceActionReplace),
				ConfigStateChecks: shapeIs("2x4", "ct5lp-hightpu-4t", 2),
			},
		},
	})
}
