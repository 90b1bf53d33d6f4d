package slicepool_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"golang.org/x/oauth2"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// ironwood is a pool of slices that a workload policy places.
func ironwood(name, body string) string {
	return fmt.Sprintf(`
resource "tpu_slice_pool" %[1]q {
  cluster = tpu_training_cluster.main.id
  name    = %[1]q
%[2]s
}
`, name, body)
}

// hasPolicies checks which workload policies there are, by the beginnings of
// their names.
func hasPolicies(g *acctest.GKE, prefixes ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		var left []string
		for _, path := range g.Policies() {
			name := path[strings.LastIndex(path, "/")+1:]
			i := slices.IndexFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
			if i < 0 {
				left = append(left, name)
				continue
			}
			prefixes = slices.Delete(slices.Clone(prefixes), i, i+1)
		}
		if len(left)+len(prefixes) > 0 {
			return fmt.Errorf("policies: %v are too many, %v are missing", left, prefixes)
		}
		return nil
	}
}

// The policy comes before the slices, serves all of them, changes with the
// shape, and goes with the pool.
func TestWorkloadPolicyLife(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string { return g.Config("placed", clusterHCL+ironwood("v7x", body)) }
	two, three := config("accelerator = \"tpu7x-64\"\nslice_count = 2"), config("accelerator = \"tpu7x-64\"\nslice_count = 3")
	long := config("accelerator = \"tpu7x\"\ntopology = \"4x4x16\"") // 256 chips, and not their most compact shape
	placed := func(prefix string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("tpu_slice_pool.v7x", tfjsonpath.New("placement_policy"), knownvalue.StringRegexp(regexp.MustCompile("^"+prefix+"-[0-9a-f]{8}$")))
	}
	readyAll := func(n int64) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("tpu_slice_pool.v7x", tfjsonpath.New("ready_slices"), knownvalue.Int64Exact(n))
	}
	does := func(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("tpu_slice_pool.v7x", a)}}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: two, Check: hasPolicies(g, "v7x-2x4x4-"), ConfigStateChecks: []statecheck.StateCheck{placed("v7x-2x4x4"), readyAll(2)}},
			{Config: two, ConfigPlanChecks: emptyPlan},
			{ResourceName: "tpu_slice_pool.v7x", ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"timeouts"}},
			{Config: three, ConfigPlanChecks: does(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{placed("v7x-2x4x4"), readyAll(3)}},
			{Config: strings.Replace(three, `"placed"`, `"another-owner"`, 1), ConfigPlanChecks: does(plancheck.ResourceActionUpdate)},
			{Config: config("accelerator = \"tpu7x-64\""), ConfigPlanChecks: does(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{placed("v7x-2x4x4"), readyAll(1)}},
			{Config: long, ConfigPlanChecks: does(plancheck.ResourceActionDestroyBeforeCreate), Check: hasPolicies(g, "v7x-4x4x16-"),
				ConfigStateChecks: []statecheck.StateCheck{placed("v7x-4x4x16"), readyAll(1)}},
			{Config: long, ConfigPlanChecks: emptyPlan},
		},
	})
	if !g.Empty() {
		t.Errorf("something is left in Google Cloud: policies %v", g.Policies())
	}
	if n := g.Calls()["InsertResourcePolicy"]; n != 2 {
		t.Errorf("%d policies were made, want 2", n)
	}
}

// A single host and other generations need no policy, and nothing is asked of
// Compute Engine for them.
func TestNoPolicyWhereNoneIsNeeded(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("none", clusterHCL+ironwood("one", `accelerator = "tpu7x-8"`)+ironwood("v5e", `accelerator = "v5litepod-16"`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("tpu_slice_pool.one", tfjsonpath.New("placement_policy"), knownvalue.Null()),
				statecheck.ExpectKnownValue("tpu_slice_pool.v5e", tfjsonpath.New("placement_policy"), knownvalue.Null()),
			}},
			{Config: config, ConfigPlanChecks: emptyPlan},
		},
	})
	for method, n := range g.Calls() {
		if strings.Contains(method, "ResourcePolic") {
			t.Errorf("%d calls of %s", n, method)
		}
	}
}

// A plan need not know the pool's name: the policy's follows when it is applied.
func TestPolicyOfAPoolWhoseNameIsKnownLater(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("later", clusterHCL+`
resource "terraform_data" "name" {
  input = "v7x"
}

resource "tpu_slice_pool" "v7x" {
  cluster     = tpu_training_cluster.main.id
  name        = terraform_data.name.output
  accelerator = "tpu7x-32"
}
`)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: hasPolicies(g, "v7x-2x2x4-"), ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownValue("tpu_slice_pool.v7x", tfjsonpath.New("placement_policy"))}}},
			{Config: config, ConfigPlanChecks: emptyPlan},
		},
	})
	if !g.Empty() {
		t.Errorf("something is left in Google Cloud: policies %v", g.Policies())
	}
}

// engine is a client of Compute Engine that is not ours.
func engine(t *testing.T, g *acctest.GKE) *compute.Service {
	t.Helper()
	c, err := compute.NewService(t.Context(), option.WithEndpoint(g.Endpoint+"/compute/v1/"),
		option.WithHTTPClient(oauth2.NewClient(t.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: acctest.Token}))))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Pools of one shape have a policy each. Pools that name one share it, and it
// stays: it is the user's.
func TestPoolsThatShareAPolicyOrDoNot(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	shared := &compute.ResourcePolicy{Name: "shared", WorkloadPolicy: &compute.ResourcePolicyWorkloadPolicy{Type: "HIGH_THROUGHPUT", AcceleratorTopology: "2x2x4"}}
	if _, err := engine(t, g).ResourcePolicies.Insert(g.Project, "us-west4", shared).Do(); err != nil {
		t.Fatal(err)
	}
	const named = "accelerator = \"tpu7x-32\"\nplacement_policy = \"shared\""
	all := g.Config("many", clusterHCL+ironwood("a", `accelerator = "tpu7x-32"`)+ironwood("b", `accelerator = "tpu7x-32"`)+ironwood("c", named)+ironwood("d", named))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: all, Check: hasPolicies(g, "a-2x2x4-", "b-2x2x4-", "shared")},
			{Config: all, ConfigPlanChecks: emptyPlan},
			// A pool keeps the policy that the configuration no longer names.
			{Config: strings.Replace(all, `placement_policy = "shared"`, "", 1), ConfigPlanChecks: emptyPlan},
			{
				Config: g.Config("many", clusterHCL+ironwood("b", `accelerator = "tpu7x-32"`)+ironwood("d", named)),
				Check:  resource.ComposeTestCheckFunc(hasPolicies(g, "b-2x2x4-", "shared"), has(t, g, "b-0", "d-0")),
			},
		},
	})
	if err := hasPolicies(g, "shared")(nil); err != nil {
		t.Error(err)
	}
}

// A creation that is refused leaves no policy, and says what the account
// needs; the next apply succeeds.
func TestRefusalsAroundThePolicy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fakegke.Fault
		want  string
	}{
		"of the policy": {fakegke.Fault{Method: "InsertResourcePolicy", Code: codes.PermissionDenied, Message: "Required 'compute.resourcePolicies.create' permission for 'projects/acc-project'"},
			`(?s)Could not make the workload policy of slice pool v7x.*roles/compute.instanceAdmin.v1`},
		"of the node pools": {fakegke.Fault{Method: "CreateNodePool", Code: codes.PermissionDenied, Message: "Required \"container.clusters.update\" permission(s)."},
			`Could not create slice pool v7x`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			remove := g.Fail(tc.fault)
			config := g.Config("refused", clusterHCL+ironwood("v7x", `accelerator = "tpu7x-32"`))
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: config, ExpectError: regexp.MustCompile(tc.want)},
					{
						PreConfig: func() {
							remove()
							if err := hasPolicies(g)(nil); err != nil {
								t.Error(err)
							}
						},
						Config: config, Check: hasPolicies(g, "v7x-"),
					},
					{Config: config, ConfigPlanChecks: emptyPlan},
				},
			})
			if !g.Empty() {
				t.Errorf("something is left in Google Cloud: policies %v", g.Policies())
			}
		})
	}
}

// When the policy cannot be removed, the pool stays in state until it can.
func TestPolicyThatIsNotRemovedIsNotForgotten(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config, without := g.Config("kept", clusterHCL+ironwood("v7x", `accelerator = "tpu7x-32"`)), g.Config("kept", clusterHCL)
	var remove func()
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig: func() {
					remove = g.Fail(fakegke.Fault{Method: "DeleteResourcePolicy", Code: codes.PermissionDenied, Message: "Required 'compute.resourcePolicies.delete' permission"})
				},
				Config: without, ExpectError: regexp.MustCompile(`(?s)Could not remove the workload policy.*Destroy again`),
			},
			{PreConfig: func() { remove() }, Config: without, Check: resource.ComposeTestCheckFunc(hasPolicies(g), has(t, g))},
		},
	})
	if !g.Empty() {
		t.Errorf("something is left in Google Cloud: policies %v", g.Policies())
	}
}

// Slices that somebody deleted by hand are made again under the policy that
// is left, and the pool still removes it in the end.
func TestSlicesDeletedByHandKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("healed", clusterHCL+ironwood("v7x", `accelerator = "tpu7x-32"`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig: func() { deleteNodePool(t, g, "v7x-0") },
				Config:    config, Check: resource.ComposeTestCheckFunc(hasPolicies(g, "v7x-"), has(t, g, "v7x-0")),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("tpu_slice_pool.v7x", plancheck.ResourceActionUpdate)}},
			},
			{Config: config, ConfigPlanChecks: emptyPlan},
		},
	})
	if n := g.Calls()["InsertResourcePolicy"]; n != 1 || !g.Empty() {
		t.Errorf("%d policies were made, want 1; left: %v", n, g.Policies())
	}
}

// A policy that a node pool of somebody else uses stays when its slice pool
// goes.
func TestPolicyInUseBySomebodyElse(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	// force: the cluster goes at the end with a node pool that nothing manages.
	cluster := strings.Replace(clusterHCL, "deletion_protection = false", "deletion_protection = false\n  force = true", 1)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("used", cluster+ironwood("v7x", `accelerator = "tpu7x-32"`))},
			{
				PreConfig: func() { borrowPolicy(t, g) },
				Config:    g.Config("used", cluster),
				Check:     resource.ComposeTestCheckFunc(hasPolicies(g, "v7x-"), has(t, g, "by-hand")),
			},
		},
	})
}

// borrowPolicy makes a node pool by hand that the only policy places.
func borrowPolicy(t *testing.T, g *acctest.GKE) {
	t.Helper()
	name := g.Policies()[0][strings.LastIndex(g.Policies()[0], "/")+1:]
	op, err := raw(t, g).CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: clusterPath(g), NodePool: &containerpb.NodePool{
		Name: "by-hand", InitialNodeCount: 4,
		Config:          &containerpb.NodeConfig{MachineType: "tpu7x-standard-4t", DiskType: "hyperdisk-balanced"},
		PlacementPolicy: &containerpb.NodePool_PlacementPolicy{PolicyName: name},
		Management:      &containerpb.NodeManagement{AutoRepair: true, AutoUpgrade: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the node pool made by hand", func() bool {
		return slices.ContainsFunc(g.Operations(), func(o *containerpb.Operation) bool {
			return o.Name == op.Name && o.Status == containerpb.Operation_DONE
		})
	})
}

// kill -9 of the provider between the policy and the node pools: the next
// apply uses the policy, and a destroy leaves nothing.
func TestKillBetweenPolicyAndPools(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	d := workspace(t, g, g.Config("kill", clusterHCL+ironwood("v7x", "accelerator = \"tpu7x-64\"\nslice_count = 2")))
	run := func(args ...string) {
		t.Helper()
		if out, err := d.Output(t.Context(), append(args, "-no-color")...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run("apply", "-auto-approve", "-target=tpu_training_cluster.main")
	remove := g.Fail(fakegke.Fault{Method: "CreateNodePool", Delay: time.Minute}) // held back until the caller is gone
	before := g.Calls()["CreateNodePool"]
	cmd := d.Command(context.Background(), "apply", "-auto-approve", "-no-color")
	var out acctest.Output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first node pool", func() bool { return g.Calls()["CreateNodePool"] > before })
	kill(t, cmd.Process.Pid)
	if err := cmd.Wait(); err == nil {
		t.Fatal("the apply did not notice that its provider was killed")
	}
	remove()
	if err := hasPolicies(g, "v7x-2x4x4-")(nil); err != nil {
		t.Fatal(err)
	}
	run("apply", "-auto-approve")
	run("plan", "-detailed-exitcode")
	if n := g.Calls()["InsertResourcePolicy"]; n != 1 {
		t.Errorf("%d policies were made, want 1", n)
	}
	run("destroy", "-auto-approve")
	if !g.Empty() {
		t.Errorf("something is left in Google Cloud: policies %v", g.Policies())
	}
}
