package slicepool_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// A policy that is named does not make the plan ask for the accelerator.
func TestNamedPolicyOfAnUnknownAccelerator(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	late := "\nresource \"terraform_data\" \"late\" { input = \"tpu7x\" }\n"
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{Config: g.Config("late", clusterHCL)}, {
			Config:             g.Config("late", poolHCL("accelerator = terraform_data.late.output\n topology = \"2x2x4\"\n placement_policy = \"mine\"")+late),
			PlanOnly:           true,
			ExpectNonEmptyPlan: true,
		}},
	})
}
