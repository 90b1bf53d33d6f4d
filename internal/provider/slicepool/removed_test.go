package slicepool_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// slicesAre checks every slice's node pool.
func slicesAre(t *testing.T, g *acctest.GKE, count int, is func(np *containerpb.NodePool) bool) resource.TestCheckFunc {
	return func(*terraform.State) error {
		pools := nodePools(t, g)
		for i := range count {
			if np := pools[fmt.Sprintf("v5e-%d", i)]; np == nil || !is(np) {
				return fmt.Errorf("v5e-%d is %v", i, np)
			}
		}
		return nil
	}
}

// A setting that is taken out goes back to its default: the plan says so, GKE
// has it afterwards, and there is nothing more to plan.
func TestRemovedSettingsGetTheirDefaults(t *testing.T) {
	t.Parallel()
	surge := func(np *containerpb.NodePool) [2]int32 {
		return [2]int32{np.UpgradeSettings.MaxSurge, np.UpgradeSettings.MaxUnavailable}
	}
	for name, c := range map[string]struct {
		set           string
		was, restored func(np *containerpb.NodePool) bool
	}{
		"management": {"upgrade = { strategy = \"surge\", max_unavailable = 2 }\nmanagement = { auto_repair = false }",
			func(np *containerpb.NodePool) bool { return !np.Management.AutoRepair && surge(np) == [2]int32{0, 2} },
			func(np *containerpb.NodePool) bool {
				return np.Management.AutoRepair && np.Management.AutoUpgrade && surge(np) == [2]int32{1, 0}
			}},
		"streaming": {"node = { image_streaming = true }",
			func(np *containerpb.NodePool) bool { return np.Config.GcfsConfig.GetEnabled() },
			func(np *containerpb.NodePool) bool { return !np.Config.GcfsConfig.GetEnabled() }},
		"nodes": {`node = { max_pods = 32, service_account = "tpu@acc-project.iam.gserviceaccount.com", secondary_boot_disks = ["projects/p/global/images/i"], boot_disk = { type = "pd-standard" } }`,
			func(np *containerpb.NodePool) bool {
				return np.MaxPodsConstraint.MaxPodsPerNode == 32 && len(np.Config.SecondaryBootDisks) == 1 && np.Config.DiskType == "pd-standard"
			},
			func(np *containerpb.NodePool) bool {
				return np.MaxPodsConstraint.MaxPodsPerNode == 15 && len(np.Config.SecondaryBootDisks) == 0 && np.Config.DiskType == "pd-balanced" && np.Config.ServiceAccount == "default"
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			config := func(body string) string {
				return g.Config("removed", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\n"+body))
			}
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: config(c.set), Check: slicesAre(t, g, 2, c.was)},
					{Config: config(""), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: slicesAre(t, g, 2, c.restored),
						ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)}},
					{Config: config(""), ConfigPlanChecks: emptyPlan},
				},
			})
		})
	}
}

// A slice that a job spares from a removal gets the default later: state has
// nothing to say about it any more, and the plan still has.
func TestRemovedSettingWaitsForBusySlice(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("later", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\n"+body))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("node = { max_pods = 32 }")},
			{
				PreConfig:          func() { g.Cluster.Run("train", "v5e-1") },
				Config:             config(""),
				ExpectNonEmptyPlan: true,
				ConfigStateChecks:  []statecheck.StateCheck{status("OUTDATED"), ready(2)},
			},
			{
				PreConfig:         func() { g.Cluster.Run("") },
				Config:            config(""),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             slicesAre(t, g, 2, func(np *containerpb.NodePool) bool { return np.MaxPodsConstraint.MaxPodsPerNode == 15 }),
				ConfigStateChecks: []statecheck.StateCheck{status("READY")},
			},
		},
	})
}

// A setting whose default only GKE knows stays when it is taken out. No plan
// promises anything else, and slices that are added are like the others.
func TestSettingsWithoutDefaultStay(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(count int, body string) string {
		return g.Config("stay", poolHCL(fmt.Sprintf("accelerator = \"v5litepod-16\"\nslice_count = %d\n%s", count, body)))
	}
	has := func(size int32) func(np *containerpb.NodePool) bool {
		return func(np *containerpb.NodePool) bool {
			return np.Config.ImageType == "UBUNTU_CONTAINERD" && np.Config.DiskSizeGb == size && np.NetworkConfig.GetEnablePrivateNodes()
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config(1, `node = { image_type = "UBUNTU_CONTAINERD", private = true, boot_disk = { size_gb = 200 } }`), Check: slicesAre(t, g, 1, has(200))},
			{Config: config(1, `node = { boot_disk = {} }`), ConfigPlanChecks: emptyPlan},
			{Config: config(1, ""), ConfigPlanChecks: emptyPlan},
			{Config: config(2, ""), Check: slicesAre(t, g, 2, has(200))},
			{Config: config(2, `node = { tags = ["a"], boot_disk = { size_gb = 300 } }`), Check: slicesAre(t, g, 2, has(300))},
			{Config: config(2, ""), Check: slicesAre(t, g, 2, func(np *containerpb.NodePool) bool { return has(300)(np) && len(np.Config.Tags) == 0 })},
		},
	})
}
