package slicepool_test

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

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const clusterHCL = `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}
`

func poolHCL(body string) string {
	return clusterHCL + `
resource "tpu_slice_pool" "v5e" {
  cluster = tpu_training_cluster.main.id
  name    = "v5e"
` + body + `
}
`
}

const address = "tpu_slice_pool.v5e"

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

func clusterPath(g *acctest.GKE) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/main", g.Project, g.Zone)
}

// has checks which slices' node pools there are.
func has(t *testing.T, g *acctest.GKE, want ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		r, err := raw(t, g).ListNodePools(t.Context(), &containerpb.ListNodePoolsRequest{Parent: clusterPath(g)})
		if err != nil {
			return err
		}
		got := map[string]bool{}
		for _, np := range r.NodePools {
			if np.Name != "system" {
				got[np.Name] = true
			}
		}
		for _, w := range want {
			if !got[w] {
				return fmt.Errorf("there is no node pool %s; there are %v", w, got)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("node pools are %v, want %v", got, want)
		}
		return nil
	}
}

func deleteNodePool(t *testing.T, g *acctest.GKE, name string) {
	t.Helper()
	op, err := raw(t, g).DeleteNodePool(t.Context(), &containerpb.DeleteNodePoolRequest{Name: clusterPath(g) + "/nodePools/" + name})
	if err != nil {
		t.Fatal(err)
	}
	ended(t, g, op.Name)
}

// ended waits for the end of an operation, by its name.
func ended(t *testing.T, g *acctest.GKE, name string) {
	t.Helper()
	until(t, "the end of "+name, func() bool {
		op, err := raw(t, g).GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: fmt.Sprintf("projects/%s/locations/%s/operations/%s", g.Project, g.Zone, name)})
		if err != nil {
			t.Fatal(err)
		}
		return op.Status == containerpb.Operation_DONE
	})
}

func status(v string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("status"), knownvalue.StringExact(v))
}

func ready(n int64) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("ready_slices"), knownvalue.Int64Exact(n))
}

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, a)}}
}

var emptyPlan = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

// The life of a pool: create with the cluster in one apply, no-op, grow,
// shrink, relabel, import, another shape. terraform-plugin-testing also plans
// again after each step and wants nothing to do.
func TestLife(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string { return g.Config("life", poolHCL(body)) }
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
				Config: config(`accelerator = "v5litepod-16"
slice_count = 2`),
				Check: has(t, g, "v5e-0", "v5e-1"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("topology"), knownvalue.StringExact("4x4")),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("chips"), knownvalue.Int64Exact(32)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts_per_slice"), knownvalue.Int64Exact(4)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("zone"), knownvalue.StringExact(g.Zone)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("slices").AtMapKey("1").AtMapKey("status"), knownvalue.StringExact("RUNNING")),
				},
			},
			{
				Config: config(`accelerator = "v5e-4x4"
slice_count = 2`),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate), // another name of the same shape
				Check:            has(t, g, "v5e-0", "v5e-1"),
			},
			{
				Config: config(`accelerator = "v5litepod-16"
slice_count = 4`),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             has(t, g, "v5e-0", "v5e-1", "v5e-2", "v5e-3"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(4)},
			},
			{
				Config: config(`accelerator = "v5litepod-16"
slice_count = 1
node = { labels = { team = "research" } }
resource_labels = { cost = "tpu" }`),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             has(t, g, "v5e-0"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(1)},
			},
			{
				ResourceName: address, ImportState: true, ImportStateVerify: true,
			},
			{
				Config: config(`accelerator = "v5litepod-32"
slice_count = 1`),
				ConfigPlanChecks: action(plancheck.ResourceActionReplace),
				Check:            has(t, g, "v5e-0"),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(address, tfjsonpath.New("topology"), knownvalue.StringExact("4x8"))},
			},
			{
				Config: config(`accelerator = "v5litepod-32"
slice_count = 0`),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             has(t, g),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(0)},
			},
		},
	})
}

// What is deleted behind Terraform's back is made again: one slice in place,
// all of them from nothing.
func TestRefreshNoticesDeletion(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("drift", poolHCL(`accelerator = "v5litepod-16"
slice_count = 2`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig:         func() { deleteNodePool(t, g, "v5e-0") },
				Config:            config,
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             has(t, g, "v5e-0", "v5e-1"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
			{
				PreConfig: func() {
					deleteNodePool(t, g, "v5e-0")
					deleteNodePool(t, g, "v5e-1")
				},
				Config:           config,
				ConfigPlanChecks: action(plancheck.ResourceActionCreate),
				Check:            has(t, g, "v5e-0", "v5e-1"),
			},
		},
	})
}

// forget removes the pool from state and leaves it in GKE.
func forget(g *acctest.GKE, owner string) resource.TestStep {
	return resource.TestStep{Config: g.Config(owner, clusterHCL+`
removed {
  from = tpu_slice_pool.v5e
  lifecycle { destroy = false }
}`)}
}

// A killed create leaves node pools that no state knows. Removing the resource
// from state by hand is the same.
func TestAdoption(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	pool := poolHCL(`accelerator = "v5litepod-16"
slice_count = 2`)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("team-a", pool)},
			forget(g, "team-a"),
			{
				PreConfig:         func() { deleteNodePool(t, g, "v5e-1") },
				Config:            g.Config("team-a", pool),
				ConfigPlanChecks:  action(plancheck.ResourceActionCreate),
				Check:             has(t, g, "v5e-0", "v5e-1"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
			forget(g, "team-a"),
			{ // not with another owner, and the answer says what to do
				Config:      g.Config("team-b", pool),
				ExpectError: regexp.MustCompile(`(?s)v5e-0 already\s+exists.*owner is "team-a".*terraform import`),
			},
			{ // not with another shape
				Config:      g.Config("team-a", poolHCL(`accelerator = "v5litepod-32"`)),
				ExpectError: regexp.MustCompile(`(?s)v5e-0 already\s+exists.*another\s+specification`),
			},
			{ResourceName: address, ImportState: true, ImportStateId: clusterPath(g) + "/nodePools/v5e", ImportStatePersist: true,
				Config: g.Config("team-b", pool)},
			{Config: g.Config("team-b", pool), Check: has(t, g, "v5e-0", "v5e-1")},
		},
	})
}

func TestRefusedAtPlan(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	for name, c := range map[string]struct{ body, want string }{
		"unknown accelerator": {`accelerator = "v5litepod-17"`, `no slice of 17 chips.*v5litepod-16`},
		"impossible topology": {"accelerator = \"v5e\"\ntopology = \"4x5\"", `no topology 4x5.*4x4`},
		"contradiction":       {"accelerator = \"v5litepod-16\"\ntopology = \"4x8\"", `different\s+slices.*v5litepod-32`},
		"wrong machine":       {"accelerator = \"v5litepod-16\"\nmachine_type = \"ct5lp-hightpu-8t\"", `cannot be made of\s+ct5lp-hightpu-8t`},
		"generation only":     {`accelerator = "v5p"`, `without a size`},
		"reserved label":      {"accelerator = \"v5litepod-16\"\nresource_labels = { tpu-provider-owner = \"me\" }", `written by\s+the provider only`},
		"negative count":      {"accelerator = \"v5litepod-16\"\nslice_count = -1", `between 0 and`},
	} {
		t.Run(name, func(t *testing.T) {
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps:                    []resource.TestStep{{Config: g.Config("", poolHCL(c.body)), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)` + c.want)}},
			})
		})
	}
	if calls := g.Calls(); len(calls) != 0 {
		t.Errorf("the API was asked: %v", calls)
	}
}
