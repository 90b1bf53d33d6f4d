package cluster_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// The data source says of a cluster what the resource does.
func TestDataSource(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	const read = `
data "tpu_training_cluster" "main" {
  name = tpu_training_cluster.main.name
}
`
	var same []statecheck.StateCheck
	for _, name := range []string{"id", "project", "location", "release_channel", "network", "ip_ranges", "zones", "control_plane", "maintenance", "logging", "monitoring",
		"autoprovisioning", "addons", "security_posture", "cpu_pools", "resource_labels", "version", "endpoint", "dns_endpoint", "ca_certificate", "workload_pool", "status"} {
		same = append(same, statecheck.CompareValuePairs(address, tfjsonpath.New(name), "data."+address, tfjsonpath.New(name), compare.ValuesSame()))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("", `data "tpu_training_cluster" "main" { name = "main" }`), ExpectError: regexp.MustCompile(`(?s)There is no such cluster.*cluster\s+main\s+does\s+not\s+exist\s+in\s+us-west4-a`)},
			{Config: g.Config("", hcl(system+`deletion_protection = false
resource_labels = { team = "research" }
maintenance = { daily_start = "03:00" }`)+read), ConfigStateChecks: same},
		},
	})
}
