package cluster_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// Workload Identity that is off stays off, and the plan empty, when the
// configuration no longer speaks of it.
func TestWorkloadIdentityLeftOutStaysOff(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	const rest = system + "deletion_protection = false\n"
	without := value("workload_pool", knownvalue.StringExact(""))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("", hcl(rest+"workload_identity = false")), ConfigStateChecks: []statecheck.StateCheck{without}},
			{Config: g.Config("", hcl(rest)), ConfigStateChecks: []statecheck.StateCheck{without},
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
			{Config: g.Config("", hcl(rest+"shielded_nodes = false")), ConfigStateChecks: []statecheck.StateCheck{without}},
			{Config: g.Config("", hcl(rest+"workload_identity = true")),
				ConfigStateChecks: []statecheck.StateCheck{value("workload_pool", knownvalue.StringExact(g.Project+".svc.id.goog"))}},
		},
	})
}
