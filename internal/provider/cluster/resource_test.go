package cluster_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const address = "tpu_training_cluster.main"

func hcl(body string) string {
	return "resource \"tpu_training_cluster\" \"main\" {\n  name = \"main\"\n" + body + "\n}\n"
}

const system = `cpu_pools = { system = { machine_type = "e2-standard-8" } }
`

// raw is a client that is not ours, to look at the fake and to meddle with it.
func raw(t *testing.T, g *acctest.GKE) *container.ClusterManagerClient {
	t.Helper()
	c, err := container.NewClusterManagerRESTClient(context.Background(), option.WithEndpoint(g.Endpoint),
		option.WithHTTPClient(oauth2.NewClient(context.Background(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: acctest.Token}))))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func path(g *acctest.GKE) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/main", g.Project, g.Zone)
}

func wait(t *testing.T, g *acctest.GKE, op *containerpb.Operation, err error) {
	t.Helper()
	for err == nil && op.Status != containerpb.Operation_DONE {
		op, err = raw(t, g).GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: fmt.Sprintf("projects/%s/locations/%s/operations/%s", g.Project, g.Zone, op.Name)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, g *acctest.GKE, check func(*containerpb.Cluster) error) resource.TestCheckFunc {
	return func(*terraform.State) error {
		c, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: path(g)})
		if err != nil {
			return err
		}
		return check(c)
	}
}

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, a)}}
}

func value(name string, v knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(name), v)
}

// The life of a cluster: create, import, change in place what can be, add,
// change and remove CPU pools, move to another network.
func TestLife(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		CheckDestroy: func(*terraform.State) error {
			if !g.Empty() {
				return fmt.Errorf("something is left in GKE")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: g.Config("life", hcl(system+`deletion_protection = false
release_channel = "RAPID"`)),
				ConfigStateChecks: []statecheck.StateCheck{
					value("id", knownvalue.StringExact(path(g))),
					value("status", knownvalue.StringExact("RUNNING")),
					value("location", knownvalue.StringExact(g.Zone)),
					value("workload_pool", knownvalue.StringExact(g.Project+".svc.id.goog")),
					value("version", knownvalue.NotNull()),
				},
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if !c.GetIpAllocationPolicy().GetUseIpAliases() || len(c.NodePools) != 1 || c.NodePools[0].Name != "system" {
						return fmt.Errorf("not the cluster that was asked for: %v", c)
					}
					return nil
				}),
			},
			{ResourceName: address, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"deletion_protection"}},
			{
				Config: g.Config("life", hcl(`deletion_protection = false
release_channel = "REGULAR"
resource_labels = { team = "research" }
cpu_pools = {
  system = { machine_type = "e2-standard-16", node_count = 3, labels = { role = "system" } }
  heads  = { machine_type = "n2-standard-64" }
}`)),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if c.ReleaseChannel.Channel != containerpb.ReleaseChannel_REGULAR || c.ResourceLabels["team"] != "research" || len(c.NodePools) != 2 {
						return fmt.Errorf("not changed: %v", c)
					}
					for _, np := range c.NodePools {
						if np.Name == "system" && (np.Config.MachineType != "e2-standard-16" || np.InitialNodeCount != 3 || np.Config.Labels["role"] != "system") {
							return fmt.Errorf("pool not changed: %v", np)
						}
					}
					return nil
				}),
			},
			{
				Config: g.Config("life", hcl(`deletion_protection = false
release_channel = "REGULAR"
cpu_pools = { heads = { machine_type = "n2-standard-64" } }`)),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if len(c.NodePools) != 1 || c.NodePools[0].Name != "heads" || c.ResourceLabels["team"] != "" {
						return fmt.Errorf("not changed: %v", c)
					}
					return nil
				}),
			},
			{
				Config: g.Config("life", hcl(system+`deletion_protection = false
network = "training"`)),
				ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			},
		},
	})
}

// A cluster that is gone is planned anew; a node pool that somebody else made
// is left alone.
func TestDrift(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", hcl(system+"deletion_protection = false"))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig: func() {
					op, err := raw(t, g).CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: path(g),
						NodePool: &containerpb.NodePool{Name: "theirs", InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "e2-standard-2"}}})
					wait(t, g, op, err)
				},
				Config:           config,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
			{
				PreConfig: func() {
					op, err := raw(t, g).DeleteNodePool(t.Context(), &containerpb.DeleteNodePoolRequest{Name: path(g) + "/nodePools/system"})
					wait(t, g, op, err)
				},
				Config:           config,
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if len(c.NodePools) != 2 {
						return fmt.Errorf("%d node pools, want system and theirs", len(c.NodePools))
					}
					return nil
				}),
			},
			{
				PreConfig: func() {
					op, err := raw(t, g).DeleteCluster(t.Context(), &containerpb.DeleteClusterRequest{Name: path(g)})
					wait(t, g, op, err)
				},
				Config:           config,
				ConfigPlanChecks: action(plancheck.ResourceActionCreate),
			},
		},
	})
}

// deletion_protection stops a destroy and a replacement, at plan.
func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("", hcl(system))},
			{Config: g.Config("", hcl(system)), Destroy: true, ExpectError: regexp.MustCompile(`protected from deletion`)},
			{Config: g.Config("", hcl(system+`network = "other"`)), ExpectError: regexp.MustCompile(`(?s)protected from\s+replacement`)},
			{Config: g.Config("", hcl(system+"deletion_protection = false")), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		},
	})
}

// A create whose state was lost is taken over by the same owner only.
func TestAdoption(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := hcl(system + "deletion_protection = false")
	forget := resource.TestStep{Config: g.Config("team-a", `
removed {
  from = tpu_training_cluster.main
  lifecycle { destroy = false }
}`)}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("team-a", config)},
			forget,
			{Config: g.Config("team-b", config), ExpectError: regexp.MustCompile(`(?s)already\s+exists.*owner is "team-a".*terraform import`)},
			{Config: g.Config("team-a", config), ConfigPlanChecks: action(plancheck.ResourceActionCreate)},
			{Config: g.Config("team-a", config), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
		},
	})
	if n := g.Calls()["CreateCluster"]; n < 3 {
		t.Errorf("%d creates", n)
	}
}

// The reply to the create is lost: the retry finds the cluster and knows it.
func TestLostReply(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	g.Fail(fakegke.Fault{Method: "CreateCluster", Call: 1, Reset: true, AfterEffect: true})
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{Config: g.Config("", hcl(system+"deletion_protection = false")),
			ConfigStateChecks: []statecheck.StateCheck{value("status", knownvalue.StringExact("RUNNING"))}}},
	})
}

func TestPermissionIsNamed(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	g.Fail(fakegke.Fault{Method: "CreateCluster", Code: codes.PermissionDenied, Message: `Required "container.clusters.create" permission(s) for "projects/acc-project".`})
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps:                    []resource.TestStep{{Config: g.Config("", hcl(system)), ExpectError: regexp.MustCompile(`(?s)container.clusters.create.*roles/container.admin`)}},
	})
}

func TestRefusedAtPlan(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	for name, c := range map[string]struct{ body, want string }{
		"no pool":      {`cpu_pools = {}`, `at least 1`},
		"TPU machine":  {`cpu_pools = { system = { machine_type = "ct5lp-hightpu-4t" } }`, `make a\s+tpu_slice_pool`},
		"location":     {system + `location = "somewhere"`, `not a location`},
		"channel":      {system + `release_channel = "FAST"`, `RAPID`},
		"version":      {system + `min_master_version = "latest"`, `not a GKE\s+version`},
		"pool name":    {`cpu_pools = { Sys = { machine_type = "e2-standard-8" } }`, `not a valid name`},
		"label prefix": {system + `resource_labels = { tpu-provider-kind = "x" }`, `written by\s+the\s+provider`},
	} {
		t.Run(name, func(t *testing.T) {
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps:                    []resource.TestStep{{Config: g.Config("", hcl(c.body)), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)` + c.want)}},
			})
		})
	}
	if calls := g.Calls(); len(calls) != 0 {
		t.Errorf("the API was asked: %v", calls)
	}
}
