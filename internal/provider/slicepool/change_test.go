package slicepool_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// nodePools reads what the fake has, by name.
func nodePools(t *testing.T, g *acctest.GKE) map[string]*containerpb.NodePool {
	t.Helper()
	r, err := raw(t, g).ListNodePools(context.Background(), &containerpb.ListNodePoolsRequest{Parent: clusterPath(g)})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*containerpb.NodePool{}
	for _, np := range r.NodePools {
		out[np.Name] = np
	}
	return out
}

// disks checks the size of each slice's boot disks.
func disks(t *testing.T, g *acctest.GKE, want ...int32) resource.TestCheckFunc {
	return func(*terraform.State) error {
		pools := nodePools(t, g)
		for i, w := range want {
			if got := pools[fmt.Sprintf("v5e-%d", i)].Config.DiskSizeGb; got != w {
				return fmt.Errorf("v5e-%d has disks of %d GB, want %d", i, got, w)
			}
		}
		return nil
	}
}

// A boot disk change on four slices with a job on one: three change, the busy
// one stays until it is idle or forced, and the plans in between say so.
func TestBootDiskSliceBySlice(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(size int, more string) string {
		return g.Config("roll", poolHCL(fmt.Sprintf("accelerator = \"v5litepod-16\"\nslice_count = 4\nnode = { boot_disk = { size_gb = %d } }\n%s", size, more)))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config(100, "")},
			{
				PreConfig:          func() { g.Cluster.Run("train", "v5e-1") },
				Config:             config(200, ""),
				ConfigPlanChecks:   action(plancheck.ResourceActionUpdate),
				ExpectNonEmptyPlan: true,
				Check:              disks(t, g, 200, 100, 200, 200),
				ConfigStateChecks: []statecheck.StateCheck{status("OUTDATED"), ready(4),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("slices").AtMapKey("1").AtMapKey("message"), knownvalue.StringExact("has not got yet: node.boot_disk"))},
			},
			{
				PreConfig:         func() { g.Cluster.Run("") },
				Config:            config(200, ""),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             disks(t, g, 200, 200, 200, 200),
				ConfigStateChecks: []statecheck.StateCheck{status("READY")},
			},
			{
				PreConfig:        func() { g.Cluster.Run("train", "v5e-0") },
				Config:           config(300, "force = true\nmax_unavailable_slices = 2"),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check:            disks(t, g, 300, 300, 300, 300),
			},
		},
	})
	if n := g.Calls()["CreateNodePool"]; n != 4 {
		t.Errorf("%d creates, want 4: GKE changes disks in place", n)
	}
}

// Only another node pool can have another service account; the other settings
// of nodes are changed by GKE, all of them in place for Terraform.
func TestChangesInPlace(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("change", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\n"+body))
	}
	inPlace := action(plancheck.ResourceActionUpdate)
	creates := func(want int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if n := g.Calls()["CreateNodePool"]; n != want {
				return fmt.Errorf("%d creates, want %d", n, want)
			}
			return nil
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("")},
			{Config: config(`node = { tags = ["tpu", "train"], taints = [{ key = "team", value = "a", effect = "NoSchedule" }] }`), ConfigPlanChecks: inPlace, Check: creates(2)},
			{ResourceName: address, ImportState: true, ImportStateVerify: true},
			{Config: config(""), ConfigPlanChecks: inPlace, Check: creates(2)},
			{Config: config("upgrade = { strategy = \"surge\", max_unavailable = 1 }\nmanagement = { auto_repair = false }"), ConfigPlanChecks: inPlace, Check: creates(2)},
			{Config: config(`autoscaling = {}`), ConfigPlanChecks: inPlace, Check: creates(2)},
			{Config: config(``), ConfigPlanChecks: inPlace, Check: creates(2)},
			{Config: config(`node = { image_streaming = true, image_type = "COS_CONTAINERD" }`), ConfigPlanChecks: inPlace, Check: creates(2)},
			{Config: config(`node = { service_account = "tpu@acc-project.iam.gserviceaccount.com" }`), ConfigPlanChecks: inPlace, Check: creates(4)},
			{Config: config("node = { service_account = \"tpu@acc-project.iam.gserviceaccount.com\" }\nnode_pool_overrides = jsonencode({ config = { linux_node_config = { sysctls = { \"net.core.somaxconn\" = \"4096\" } } } })"),
				ConfigPlanChecks: inPlace, Check: creates(6)},
			{Config: config("node = { service_account = \"tpu@acc-project.iam.gserviceaccount.com\", max_pods = 32 }"), ConfigPlanChecks: inPlace, Check: creates(8)},
		},
	})
}

// A slice that does not come back stops the change: no more is put at risk.
func TestChangeStopsAtAFailure(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t, fakegke.WithTimeScale(1.0/50000))
	config := func(account string) string {
		return g.Config("stop", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 3\non_stockout = \"keep\"\nnode = { service_account = \""+account+"\" }"))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("a@acc-project.iam.gserviceaccount.com")},
			{
				PreConfig:          func() { g.SetStockout(fakegke.Stockout{Pool: "v5e-0"}) },
				Config:             config("b@acc-project.iam.gserviceaccount.com"),
				ExpectNonEmptyPlan: true,
				ConfigStateChecks:  []statecheck.StateCheck{status("DEGRADED"), ready(2)},
			},
			{
				PreConfig:         func() { g.SetStockout() },
				Config:            config("b@acc-project.iam.gserviceaccount.com"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(3)},
			},
		},
	})
}

// Each provisioning model as GKE sees it. What is not up until a job asks for
// it is READY, and the second plan is empty.
func TestProvisioningModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		is   func(np *containerpb.NodePool) bool
	}{
		"spot": {`provisioning = { model = "spot" }`, func(np *containerpb.NodePool) bool { return np.Config.Spot && np.InitialNodeCount == 4 }},
		"flex_start": {`provisioning = { model = "flex_start", max_run_duration = "24h" }`, func(np *containerpb.NodePool) bool {
			return np.Config.GetFlexStart() && !np.Management.AutoRepair && np.InitialNodeCount == 0 && np.Autoscaling.TotalMaxNodeCount == 4
		}},
		"queued": {`provisioning = { model = "queued" }`, func(np *containerpb.NodePool) bool {
			return np.QueuedProvisioning.GetEnabled() && np.InitialNodeCount == 0
		}},
		"any reservation": {`provisioning = { model = "reservation" }`, func(np *containerpb.NodePool) bool {
			return np.Config.ReservationAffinity.ConsumeReservationType == containerpb.ReservationAffinity_ANY_RESERVATION
		}},
		"shared sub-block": {`provisioning = { model = "reservation", reservation = "projects/shared/reservations/r/reservationBlocks/b/reservationSubBlocks/s" }`, func(np *containerpb.NodePool) bool {
			return np.Config.ReservationAffinity.Values[0] == "projects/shared/reservations/r/reservationBlocks/b/reservationSubBlocks/s"
		}},
		"spot, autoscaled": {"provisioning = { model = \"spot\" }\nautoscaling = {}", func(np *containerpb.NodePool) bool {
			return np.Config.Spot && np.Autoscaling.Enabled
		}},
		"autoscaled": {`autoscaling = { location_policy = "BALANCED" }`, func(np *containerpb.NodePool) bool {
			return np.InitialNodeCount == 0 && np.Autoscaling.Enabled && np.Autoscaling.TotalMaxNodeCount == 4
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			config := g.Config("models", poolHCL("accelerator = \"v5litepod-16\"\n"+c.body))
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: config, ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(1)}, Check: func(*terraform.State) error {
						if np := nodePools(t, g)["v5e-0"]; !c.is(np) {
							return fmt.Errorf("the node pool is %v", np)
						}
						return nil
					}},
					{Config: config, ConfigPlanChecks: emptyPlan},
					// Imported into an empty state, the same configuration has nothing to do.
					forget(g, "models"),
					{ResourceName: address, ImportState: true, ImportStateId: clusterPath(g) + "/nodePools/v5e", ImportStatePersist: true, Config: config},
					{Config: config, ConfigPlanChecks: emptyPlan},
				},
			})
		})
	}
}
