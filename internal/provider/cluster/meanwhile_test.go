package cluster_test

import (
	"context"
	"regexp"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// meanwhile is what somebody else does between a plan and its apply.
type meanwhile func()

func (do meanwhile) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) {
	do()
}

// A plan is applied although the control plane was upgraded since it was made;
// the refresh after that shows the new version.
func TestUpgradeBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(more string) string {
		return g.Config("", hcl(system+"deletion_protection = false\n"+more))
	}
	upgrade := func() {
		op, err := raw(t, g).UpdateCluster(t.Context(), &containerpb.UpdateClusterRequest{Name: path(g), Update: &containerpb.ClusterUpdate{DesiredMasterVersion: "1.35"}})
		wait(t, g, op, err)
	}
	older := knownvalue.StringRegexp(regexp.MustCompile(`^1\.34\.`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config(`min_master_version = "1.34"`), ConfigStateChecks: []statecheck.StateCheck{value("version", older)}},
			{
				Config:            config("min_master_version = \"1.34\"\nshielded_nodes = false"),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{meanwhile(upgrade)}},
				ConfigStateChecks: []statecheck.StateCheck{value("shielded_nodes", knownvalue.Bool(false))},
			},
			{RefreshState: true},
			{Config: config("min_master_version = \"1.34\"\nshielded_nodes = false"),
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
				ConfigStateChecks: []statecheck.StateCheck{value("version", knownvalue.StringRegexp(regexp.MustCompile(`^1\.35\.`)))}},
		},
	})
}
