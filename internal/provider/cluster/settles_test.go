package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// What GKE fills in beside a setting is no change in the next plan, and what
// the configuration says of it is sent at once: every step ends with an empty
// plan.
func TestNeighboursOfASettingSettle(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("settles", `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
`+body+`
}`)
	}
	open := func(want bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			networks := g.Clusters()[0].GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetAuthorizedNetworksConfig()
			if !networks.GetEnabled() || networks.GetGcpPublicCidrsAccessEnabled() != want {
				return errors.New("authorized networks are " + networks.String())
			}
			return nil
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config(`autoprovisioning = { enabled = true, limits = { cpu = { maximum = 100 }, memory = { maximum = 1000 } } }`)},
			{Config: config(`autoprovisioning = { enabled = true, limits = { cpu = { maximum = 200 }, memory = { maximum = 1000 } } }`)},
			{Config: config(`control_plane = { authorized_networks = { "10.0.0.0/8" = "corp" }, google_cloud_access = false }`), Check: open(false)},
		},
	})
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("")},
			{Config: config(`control_plane = { authorized_networks = { "10.0.0.0/8" = "corp" } }`), Check: open(true)},
			{Config: config(`control_plane = { authorized_networks = { "10.0.0.0/8" = "lab" } }`), Check: open(true)},
		},
	})
}

// A range that is there has a name and addresses, and an import writes both
// down; a new cluster has one of the two.
func TestARangeByNameAndAddresses(t *testing.T) {
	p := acctest.NewGKE(t).Protocol(t, "")
	config := func(cidr string) map[string]any {
		return map[string]any{"name": "main", "location": "us-west4-a",
			"cpu_pools": map[string]any{"system": map[string]any{"machine_type": "e2-standard-8"}},
			"ip_ranges": map[string]any{"pods_range": "pods", "pods_cidr": cidr}}
	}
	const typ, refusal = "tpu_training_cluster", "leave one out"
	if text := p.Validate(typ, config("10.16.0.0/14")); text != "" {
		t.Error(text)
	}
	if plan := p.Plan(typ, nil, config("10.16.0.0/14")); !strings.Contains(plan.Text, refusal) {
		t.Errorf("a new cluster: %+v", plan)
	}
	if text := p.Validate(typ, config("/14")); !strings.Contains(text, refusal) {
		t.Errorf("a range to be made beside one that is there: %s", text)
	}
}
