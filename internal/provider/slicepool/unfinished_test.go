package slicepool_test

import (
	"fmt"
	"regexp"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"google.golang.org/grpc/codes"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// every checks one thing of each of two slices.
func every(t *testing.T, g *acctest.GKE, what string, is func(np *containerpb.NodePool) bool) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, name := range []string{"v5e-0", "v5e-1"} {
			if np := nodePools(t, g)[name]; !is(np) {
				return fmt.Errorf("%s has not %s: %v", name, what, np)
			}
		}
		return nil
	}
}

func tagged(tag string) func(np *containerpb.NodePool) bool {
	return func(np *containerpb.NodePool) bool { return len(np.Config.Tags) == 1 && np.Config.Tags[0] == tag }
}

// A change in place that GKE refused for one slice is what the next plan shows,
// and the next apply makes.
func TestRefusedChangeIsNotForgotten(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(tag string) string {
		return g.Config("refused", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\nnode = { tags = [\""+tag+"\"] }"))
	}
	var heal func()
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("x")},
			{
				PreConfig: func() {
					heal = g.Fail(fakegke.Fault{Method: "UpdateNodePool", Call: 2, Code: codes.PermissionDenied, Message: "Required permission."})
				},
				Config:      config("y"),
				ExpectError: regexp.MustCompile(`permission denied`),
			},
			{
				PreConfig:         func() { heal() },
				Config:            config("y"),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             every(t, g, "its new tag", tagged("y")),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
		},
	})
}

// What somebody changes on one slice of several is seen by the next plan, and
// the apply changes it back; so is a slice without hosts.
func TestDriftOfOneSlice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *container.ClusterManagerClient, pool string) (*containerpb.Operation, error)
		is     func(np *containerpb.NodePool) bool
	}{
		"tags": {func(c *container.ClusterManagerClient, pool string) (*containerpb.Operation, error) {
			return c.UpdateNodePool(t.Context(), &containerpb.UpdateNodePoolRequest{Name: pool, Tags: &containerpb.NetworkTags{Tags: []string{"z"}}})
		}, tagged("x")},
		"management": {func(c *container.ClusterManagerClient, pool string) (*containerpb.Operation, error) {
			return c.SetNodePoolManagement(t.Context(), &containerpb.SetNodePoolManagementRequest{Name: pool, Management: &containerpb.NodeManagement{AutoUpgrade: true}})
		}, func(np *containerpb.NodePool) bool { return np.Management.AutoRepair }},
		"autoscaling": {func(c *container.ClusterManagerClient, pool string) (*containerpb.Operation, error) {
			return c.SetNodePoolAutoscaling(t.Context(), &containerpb.SetNodePoolAutoscalingRequest{Name: pool,
				Autoscaling: &containerpb.NodePoolAutoscaling{Enabled: true, TotalMaxNodeCount: 4, LocationPolicy: containerpb.NodePoolAutoscaling_ANY}})
		}, func(np *containerpb.NodePool) bool { return !np.Autoscaling.GetEnabled() }},
		"hosts": {func(c *container.ClusterManagerClient, pool string) (*containerpb.Operation, error) {
			return c.SetNodePoolSize(t.Context(), &containerpb.SetNodePoolSizeRequest{Name: pool})
		}, func(np *containerpb.NodePool) bool { return np.InitialNodeCount == 4 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			config := g.Config("drift", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\nmanagement = { auto_repair = true }\nnode = { tags = [\"x\"] }"))
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: config},
					{
						PreConfig: func() {
							op, err := c.change(raw(t, g), clusterPath(g)+"/nodePools/v5e-1")
							if err != nil {
								t.Fatal(err)
							}
							ended(t, g, op.Name)
						},
						Config:            config,
						ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
						Check:             every(t, g, "what it should", c.is),
						ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
					},
				},
			})
			if n := g.Calls()["CreateNodePool"]; n != 2 {
				t.Errorf("%d creates, want 2: drift is mended in place", n)
			}
		})
	}
}

// Autoscaled slices stand at no hosts until a job wants them. Without
// autoscaling they have all of theirs.
func TestAutoscalingTurnedOffAtNoHosts(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("scaling", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\n"+body))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("autoscaling = {}"), ConfigStateChecks: []statecheck.StateCheck{status("READY")}},
			{
				Config:           config(""),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: every(t, g, "all of its hosts", func(np *containerpb.NodePool) bool {
					return np.InitialNodeCount == 4 && !np.Autoscaling.GetEnabled()
				}),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
		},
	})
}
