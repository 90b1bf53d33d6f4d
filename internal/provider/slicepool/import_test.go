package slicepool_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	compute "google.golang.org/api/compute/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// byHand makes a node pool that carries no label of ours.
func byHand(t *testing.T, g *acctest.GKE, np *containerpb.NodePool) {
	t.Helper()
	np.Locations = []string{g.Zone}
	c := raw(t, g)
	op, err := c.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: clusterPath(g), NodePool: np})
	if err != nil {
		t.Fatal(err)
	}
	for op.Status != containerpb.Operation_DONE {
		if op, err = c.GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: fmt.Sprintf("projects/%s/locations/%s/operations/%s", g.Project, g.Zone, op.Name)}); err != nil {
			t.Fatal(err)
		}
	}
	if op.Error != nil {
		t.Fatal(op.Error)
	}
}

func importPool(g *acctest.GKE, config string) resource.TestStep {
	return resource.TestStep{ResourceName: address, ImportState: true, ImportStateId: clusterPath(g) + "/nodePools/v5e", ImportStatePersist: true, Config: config}
}

// Large tpu7x slices that were made by hand say their topology only by their
// workload policy. They are imported as what they are, and nothing is planned;
// later plans do not ask for the policy again.
func TestImportOfSlicesPlacedByAPolicy(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("byhand", poolHCL(`accelerator = "tpu7x-256"
slice_count = 2
placement_policy = "byhand"`))
	makeAll := func() {
		policy := &compute.ResourcePolicy{Name: "byhand", WorkloadPolicy: &compute.ResourcePolicyWorkloadPolicy{Type: "HIGH_THROUGHPUT", AcceleratorTopology: "4x4x8"}}
		op, err := engine(t, g).ResourcePolicies.Insert(g.Project, "us-west4", policy).Do()
		for err == nil && op.Status != "DONE" {
			op, err = engine(t, g).RegionOperations.Wait(g.Project, "us-west4", op.Name).Do()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			byHand(t, g, &containerpb.NodePool{Name: fmt.Sprintf("v5e-%d", i), InitialNodeCount: 32,
				Config:            &containerpb.NodeConfig{MachineType: "tpu7x-standard-4t", DiskType: "hyperdisk-balanced"},
				MaxPodsConstraint: &containerpb.MaxPodsConstraint{MaxPodsPerNode: 15},
				PlacementPolicy:   &containerpb.NodePool_PlacementPolicy{PolicyName: "byhand"}})
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("byhand", clusterHCL)},
			func() resource.TestStep { s := importPool(g, config); s.PreConfig = makeAll; return s }(),
			{Config: config, ConfigPlanChecks: emptyPlan, Check: func(*terraform.State) error {
				if n := g.Calls()["GetResourcePolicy"]; n != 1 {
					return fmt.Errorf("the policy was read %d times, want once", n)
				}
				return nil
			}, ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("topology"), knownvalue.StringExact("4x4x8")),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts_per_slice"), knownvalue.Int64Exact(32))}},
		},
	})
}

// Node pools that differ in what they have for life are no slices of one pool,
// and an import says so.
func TestImportOfUnlikeSlices(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("unlike", poolHCL(`accelerator = "v5litepod-16"
slice_count = 2`))
	slice := func(i int, spot bool) *containerpb.NodePool {
		return &containerpb.NodePool{Name: fmt.Sprintf("v5e-%d", i), InitialNodeCount: 4,
			Config:          &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-4t", Spot: spot},
			PlacementPolicy: &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT, TpuTopology: "4x4"}}
	}
	refused := importPool(g, config)
	refused.PreConfig = func() { byHand(t, g, slice(0, false)); byHand(t, g, slice(1, true)) }
	refused.ExpectError = regexp.MustCompile(`(?s)v5e-0 and v5e-1 are no slices of one pool.*provisioning\s+model\s+differs\s+\("on_demand"\s+and\s+"spot"\)`)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		// force: the cluster goes at the end with node pools that nothing manages.
		Steps: []resource.TestStep{{Config: g.Config("unlike", strings.Replace(clusterHCL, "deletion_protection = false", "deletion_protection = false\n  force = true", 1))}, refused},
	})
}

// An import that finds nothing says what it looked for, and which id was meant.
func TestImportOfNoPool(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("none", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 1"))
	refused := func(name, want string) resource.TestStep {
		return resource.TestStep{ResourceName: address, ImportState: true, ImportStateId: clusterPath(g) + "/nodePools/" + name, Config: config, ExpectError: words(want)}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			refused("v5e-0", "import its whole pool, by the name without the index:.*nodePools/v5e"),
			refused("system", "has no TPU node pool called system-0, system-1 and so on"),
		},
	})
}
