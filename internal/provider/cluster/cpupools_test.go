package cluster_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
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
