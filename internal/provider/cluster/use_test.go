package cluster_test

import (
	"fmt"
	"regexp"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"google.golang.org/protobuf/testing/protocmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

const slicePool = `
resource "tpu_slice_pool" "main" {
  cluster     = tpu_training_cluster.main.id
  name        = "%s"
  accelerator = "v5litepod-16"
  slice_count = 2
}
`

// The control plane and a CPU pool are upgraded while slices are there: the
// slices' node pools stay as they were, to the last field.
func TestUpgradeLeavesSlicesAlone(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(version string) string {
		return g.Config("", hcl(fmt.Sprintf(`deletion_protection = false
min_master_version = "%[1]s"
cpu_pools = { system = { machine_type = "e2-standard-8", version = "%[1]s" } }`, version))+fmt.Sprintf(slicePool, "v5e"))
	}
	var before map[string]*containerpb.NodePool
	slices := func() map[string]*containerpb.NodePool {
		m := map[string]*containerpb.NodePool{}
		for _, np := range g.NodePools(path(g)) {
			if np.GetName() != "system" {
				m[np.GetName()] = np
			}
		}
		return m
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("1.34"), Check: func(*terraform.State) error { before = slices(); return nil }},
			{
				Config:           config("1.35"),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if c.GetCurrentMasterVersion()[:4] != "1.35" {
						return fmt.Errorf("the control plane is at %s", c.GetCurrentMasterVersion())
					}
					for _, np := range c.GetNodePools() {
						if np.GetName() == "system" && np.GetVersion()[:4] != "1.35" {
							return fmt.Errorf("the CPU pool is at %s", np.GetVersion())
						}
					}
					if diff := cmp.Diff(before, slices(), protocmp.Transform()); diff != "" || len(before) != 2 {
						return fmt.Errorf("the slices changed: %s", diff)
					}
					return nil
				}),
			},
			{Config: config("1.35"), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
		},
	})
}

// Somebody creates node pools while the cluster is changed: both wait for each
// other, and neither fails.
func TestChangeWhilePoolsAreCreated(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	make := func() {
		for i := range 3 {
			if _, err := raw(t, g).CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: path(g),
				NodePool: &containerpb.NodePool{Name: fmt.Sprintf("other-%d", i), InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "e2-standard-2"}}}); err != nil {
				t.Error(err)
			}
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("", hcl(system+"deletion_protection = false"))},
			{PreConfig: make, ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				// The slices of another resource are made at the same time.
				Config: g.Config("", hcl(`deletion_protection = false
force = true
shielded_nodes = false
addons = { gcs_fuse_csi_driver = true }
resource_labels = { team = "research" }
cpu_pools = { system = { machine_type = "e2-standard-16" } }`)+`
resource "tpu_slice_pool" "main" {
  cluster     = "`+path(g)+`"
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = 4
}`),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if len(c.GetNodePools()) != 8 || c.GetShieldedNodes().GetEnabled() || c.GetStatus() != containerpb.Cluster_RUNNING {
						return fmt.Errorf("%d node pools, %v", len(c.GetNodePools()), c)
					}
					for _, np := range c.GetNodePools() {
						if np.GetStatus() != containerpb.NodePool_RUNNING {
							return fmt.Errorf("%s is %s: %s", np.GetName(), np.GetStatus(), np.GetStatusMessage())
						}
					}
					return nil
				})},
		},
	})
}

// A destroy stops at node pools that are not the cluster's own, and names them;
// `force` goes on.
func TestDestroyStopsWhileSlicesAreThere(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", hcl(system+"deletion_protection = false"))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{
				PreConfig: func() {
					op, err := raw(t, g).CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: path(g), NodePool: &containerpb.NodePool{
						Name: "theirs", InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-1t"}}})
					wait(t, g, op, err)
				},
				Config: config, Destroy: true,
				ExpectError: regexp.MustCompile(`(?s)is still in use.*theirs \(ct5lp-hightpu-1t\).*force\s+=\s+true`),
			},
			{Config: g.Config("", hcl(system+"deletion_protection = false\nforce = true"))},
		},
	})
	if !g.Empty() {
		t.Error("force did not delete the cluster")
	}
}

// A destroy stops at jobs that run, and names them; those that have ended or
// wait are no hindrance.
func TestDestroyStopsWhileJobsRun(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", hcl(system+"deletion_protection = false"))
	job := func(name string, conditions ...metav1.Condition) jobset.JobSet {
		return jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, UID: types.UID(name)},
			Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "slice", Replicas: 1}}},
			Status: jobset.JobSetStatus{Conditions: conditions,
				ReplicatedJobsStatus: []jobset.ReplicatedJobStatus{{Name: "slice", Active: 1, Ready: 1}}}}
	}
	done := job("done", metav1.Condition{Type: string(jobset.JobSetCompleted), Status: metav1.ConditionTrue})
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{PreConfig: func() { g.Cluster.Jobs(job("pretrain"), done) }, Config: config, Destroy: true,
				ExpectError: regexp.MustCompile(`(?s)is still in use.*Jobs run on it:\s+research/pretrain \(\w+\)\s+Nothing was\s+deleted`)},
			{PreConfig: func() { g.Cluster.Jobs(done) }, Config: config},
		},
	})
	if !g.Empty() {
		t.Error("a job that has ended kept the cluster")
	}
}

// A destroy also stops when the cluster does not say what runs on it; `force`
// goes on.
func TestDestroyStopsWhileJobsAreNotKnown(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", hcl(system+"deletion_protection = false"))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{PreConfig: func() { g.Cluster.Deny(true) }, Config: config, Destroy: true,
				ExpectError: regexp.MustCompile(`(?s)What runs on cluster main is not known.*nothing\s+was\s+deleted.*may\s+not\s+use\s+this\s+cluster.*force\s+=\s+true`)},
			{Config: g.Config("", hcl(system+"deletion_protection = false\nforce = true"))},
		},
	})
	if !g.Empty() {
		t.Error("force did not delete the cluster")
	}
}
