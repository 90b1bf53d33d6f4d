package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// An update finds an operation of an interrupted one under way: it waits for
// it, reads what became of the cluster, and goes on from there.
func TestUpdateGoesOnAfterTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, body string
		interrupted  func(*testing.T, *acctest.GKE) error
	}{
		"maintenance": {"SetMaintenancePolicy", `maintenance = { daily_start = "05:00" }`, func(t *testing.T, g *acctest.GKE) error {
			have, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: path(g)})
			if err != nil {
				return err
			}
			_, err = raw(t, g).SetMaintenancePolicy(t.Context(), &containerpb.SetMaintenancePolicyRequest{Name: path(g), MaintenancePolicy: &containerpb.MaintenancePolicy{
				ResourceVersion: have.GetMaintenancePolicy().GetResourceVersion(),
				Window: &containerpb.MaintenanceWindow{Policy: &containerpb.MaintenanceWindow_DailyMaintenanceWindow{
					DailyMaintenanceWindow: &containerpb.DailyMaintenanceWindow{StartTime: "04:00"}}}}})
			return err
		}},
		"labels": {"SetLabels", `resource_labels = { team = "research" }`, func(t *testing.T, g *acctest.GKE) error {
			have, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: path(g)})
			if err != nil {
				return err
			}
			labels := have.GetResourceLabels()
			labels["team"] = "other"
			_, err = raw(t, g).SetLabels(t.Context(), &containerpb.SetLabelsRequest{Name: path(g), ResourceLabels: labels, LabelFingerprint: have.GetLabelFingerprint()})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{
					{Config: g.Config("", hcl(system+"deletion_protection = false"))},
					{
						PreConfig: func() {
							before, release := g.Calls()[c.method], g.Hold()
							if err := c.interrupted(t, g); err != nil {
								release()
								t.Fatal(err)
							}
							// It ends once the update has read the cluster and was told to wait.
							go func() {
								defer release()
								for deadline := time.Now().Add(time.Minute); g.Calls()[c.method] < before+2 && time.Now().Before(deadline); {
									time.Sleep(time.Millisecond)
								}
							}()
						},
						Config: g.Config("", hcl(system+"deletion_protection = false\n"+c.body)),
						Check: get(t, g, func(c *containerpb.Cluster) error {
							start := c.GetMaintenancePolicy().GetWindow().GetDailyMaintenanceWindow().GetStartTime()
							if name == "maintenance" && start != "05:00" || name == "labels" && c.GetResourceLabels()["team"] != "research" {
								return fmt.Errorf("not changed: %q %v", start, c.GetResourceLabels())
							}
							return nil
						}),
					},
				},
			})
		})
	}
}
