package slicepools_test

import (
	"fmt"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"golang.org/x/oauth2"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// iron makes a tpu7x slice of 128 chips as one does by hand: a workload policy,
// and a node pool that names it and says nothing of its topology.
func iron(t *testing.T, g *acctest.GKE) {
	t.Helper()
	client := option.WithHTTPClient(oauth2.NewClient(t.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: acctest.Token})))
	engine, err := compute.NewService(t.Context(), client, option.WithEndpoint(g.Endpoint+"/compute/v1/"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := engine.ResourcePolicies.Insert(g.Project, "us-west4", &compute.ResourcePolicy{Name: "wide",
		WorkloadPolicy: &compute.ResourcePolicyWorkloadPolicy{Type: "HIGH_THROUGHPUT", AcceleratorTopology: "4x4x8"}}).Do()
	for err == nil && made.Status != "DONE" {
		made, err = engine.RegionOperations.Wait(g.Project, "us-west4", made.Name).Do()
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClusterManagerRESTClient(t.Context(), client, option.WithEndpoint(g.Endpoint))
	if err != nil {
		t.Fatal(err)
	}
	location := fmt.Sprintf("projects/%s/locations/%s", g.Project, g.Zone)
	op, err := c.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: location + "/clusters/main", NodePool: &containerpb.NodePool{
		Name: "iron", InitialNodeCount: 32, Locations: []string{g.Zone},
		Config:            &containerpb.NodeConfig{MachineType: "tpu7x-standard-4t", DiskType: "hyperdisk-balanced"},
		MaxPodsConstraint: &containerpb.MaxPodsConstraint{MaxPodsPerNode: 15},
		PlacementPolicy:   &containerpb.NodePool_PlacementPolicy{PolicyName: "wide"}}})
	for err == nil && op.Status != containerpb.Operation_DONE {
		op, err = c.GetOperation(t.Context(), &containerpb.GetOperationRequest{Name: location + "/operations/" + op.Name})
	}
	if err != nil || op.Error != nil {
		t.Fatal(err, op.GetError())
	}
}

// A large tpu7x slice that somebody made by hand is listed as what its workload
// policy says, and as a slice of unknown shape when the policy cannot be read.
func TestSlicePlacedByAPolicy(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	cluster := g.Config("", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  force               = true # the node pool is not its own
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}
`)
	config := cluster + "data \"tpu_slice_pools\" \"all\" {\n  cluster = tpu_training_cluster.main.id\n}\n"
	listed := func(accelerator, topology string, chips, hosts int64) []knownvalue.Check {
		return []knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"name": knownvalue.StringExact("iron"), "managed": knownvalue.Bool(false), "accelerator": knownvalue.StringExact(accelerator),
			"topology": knownvalue.StringExact(topology), "chips": knownvalue.Int64Exact(chips), "hosts_per_slice": knownvalue.Int64Exact(hosts),
			"ready_slices": knownvalue.Int64Exact(1),
		})}
	}
	step := func(before func(), accelerator, topology string, chips, hosts int64) resource.TestStep {
		s := resource.TestStep{PreConfig: before, Config: config}
		s.ConfigStateChecks = append(s.ConfigStateChecks, is(pools(), knownvalue.ListExact(listed(accelerator, topology, chips, hosts))))
		return s
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: cluster},
			step(func() { iron(t, g) }, "tpu7x-256", "4x4x8", 128, 32),
			step(func() { g.Deny("compute.resourcePolicies.get") }, "", "", 0, 0),
		},
	})
}
