package cluster_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"google.golang.org/grpc/codes"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

func poolNamed(c *containerpb.Cluster, name string) *containerpb.NodePool {
	for _, np := range c.GetNodePools() {
		if np.GetName() == name {
			return np
		}
	}
	return nil
}

// What the configuration no longer says of a CPU pool stays as it is, also when
// the same apply has to make the pool anew.
func TestRemadePoolKeepsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	pool := func(settings string) string {
		return g.Config("", hcl("deletion_protection = false\ncpu_pools = { system = { machine_type = \"e2-standard-8\"\n"+settings+" } }"))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: pool(`
spot = true
disk_type = "pd-ssd"
disk_size_gb = 200
max_pods_per_node = 32
labels = { role = "system" }
taints = [{ key = "dedicated", value = "system", effect = "PreferNoSchedule" }]`)},
			{
				Config: pool(`service_account = "nodes@acc-project.iam.gserviceaccount.com"`),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					np := poolNamed(c, "system")
					cfg := np.GetConfig()
					if cfg.GetServiceAccount() != "nodes@acc-project.iam.gserviceaccount.com" {
						return fmt.Errorf("not made anew: %v", np)
					}
					if !cfg.GetSpot() || cfg.GetDiskType() != "pd-ssd" || cfg.GetDiskSizeGb() != 200 || cfg.GetLabels()["role"] != "system" ||
						len(cfg.GetTaints()) != 1 || np.GetMaxPodsConstraint().GetMaxPodsPerNode() != 32 {
						return fmt.Errorf("something is lost: %v", np)
					}
					return nil
				}),
			},
		},
	})
}

// poolsAre checks which node pools a cluster has.
func poolsAre(t *testing.T, g *acctest.GKE, want ...string) resource.TestCheckFunc {
	return get(t, g, func(c *containerpb.Cluster) error {
		var got []string
		for _, np := range c.GetNodePools() {
			got = append(got, np.GetName())
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("node pools %v, want %v", got, want)
		}
		return nil
	})
}

// A pool that an update made before it failed is not lost: when the
// configuration gives it up, the next plan shows that it goes.
func TestPoolOfAFailedUpdateGoes(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	denied := func() {}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("team", hcl(system+"deletion_protection = false"))},
			{
				PreConfig: func() {
					denied = g.Fail(fakegke.Fault{Method: "UpdateNodePool", Code: codes.PermissionDenied, Message: "Required \"container.clusters.update\" permission(s)."})
				},
				Config: g.Config("team", hcl(`deletion_protection = false
cpu_pools = {
  system = { machine_type = "e2-standard-8", labels = { role = "system" } }
  heads  = { machine_type = "n2-standard-64" }
}`)),
				ExpectError: regexp.MustCompile(`updating labels of node pool`),
			},
			{
				PreConfig:        func() { denied() },
				Config:           g.Config("team", hcl(system+"deletion_protection = false")),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check:            poolsAre(t, g, "system"),
			},
		},
	})
}

// A cluster that was made by hand is taken over with all its CPU pools; those
// that the configuration does not name are forgotten and stay.
func TestImportedPoolsAreForgottenNotDeleted(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	pool := func(name string) *containerpb.NodePool {
		return &containerpb.NodePool{Name: name, InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "e2-standard-4"}}
	}
	op, err := raw(t, g).CreateCluster(t.Context(), &containerpb.CreateClusterRequest{Parent: fmt.Sprintf("projects/%s/locations/%s", g.Project, g.Zone),
		Cluster: &containerpb.Cluster{Name: "main", IpAllocationPolicy: &containerpb.IPAllocationPolicy{UseIpAliases: true},
			NodePools: []*containerpb.NodePool{pool("default-pool"), pool("colleagues")}}})
	wait(t, g, op, err)
	config := g.Config("", hcl(`deletion_protection = false
force = true
cpu_pools = { default-pool = { machine_type = "e2-standard-4" } }`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config, ResourceName: address, ImportState: true, ImportStateId: path(g), ImportStatePersist: true},
			{
				Config:            config,
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             poolsAre(t, g, "colleagues", "default-pool"),
				ConfigStateChecks: []statecheck.StateCheck{value("cpu_pools", knownvalue.MapSizeExact(1))},
			},
			{ // and cannot be had under a name of the configuration's
				Config: g.Config("", hcl(`deletion_protection = false
force = true
cpu_pools = { default-pool = { machine_type = "e2-standard-4" }, colleagues = { machine_type = "e2-standard-4" } }`)),
				ExpectError: regexp.MustCompile(`There is a node pool colleagues already`),
			},
		},
	})
}

// A pool that did not come up is a change to make, and is made anew.
func TestPoolThatDidNotComeUp(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	both := g.Config("", hcl(`deletion_protection = false
cpu_pools = {
  system = { machine_type = "e2-standard-8" }
  heads  = { machine_type = "n2-standard-64", autoscaling = { max_nodes = 4 } }
}`))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("", hcl(system+"deletion_protection = false"))},
			{
				PreConfig:   func() { g.SetStockout(fakegke.Stockout{Pool: "heads"}) },
				Config:      both,
				ExpectError: regexp.MustCompile(`no capacity`),
			},
			{
				PreConfig:        func() { g.SetStockout() },
				Config:           both,
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: get(t, g, func(c *containerpb.Cluster) error {
					if np := poolNamed(c, "heads"); np.GetStatus() != containerpb.NodePool_RUNNING {
						return fmt.Errorf("not made again: %v", np)
					}
					return nil
				}),
			},
		},
	})
}
