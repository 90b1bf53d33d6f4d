package cluster_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// first and second set every attribute; second changes each that GKE can change.
const (
	first = `
  location = "us-west4"
  deletion_protection = false
  force = false
  min_master_version = "1.34"
  release_channel = "REGULAR"
  network = "training"
  subnetwork = "training-west"
  ip_ranges = { pods_cidr = "10.64.0.0/14", services_cidr = "10.68.0.0/20" }
  max_pods_per_node = 64
  dataplane_v2 = true
  zones = ["us-west4-a"]
  private_nodes = false
  dns = { provider = "KUBE_DNS" }
  control_plane = {
    dns_endpoint = false
    ip_endpoint = true
    private_endpoint = false
    global_access = false
    authorized_networks = { "10.0.0.0/8" = "vpc" }
    google_cloud_access = false
    subnetwork = "control"
  }
  maintenance = {
    daily_start = "03:00"
    exclusions = { run = { start = "2026-12-01T00:00:00Z", end = "2026-12-20T00:00:00Z", scope = "NO_UPGRADES" } }
  }
  logging = { components = ["SYSTEM_COMPONENTS"] }
  monitoring = { components = ["SYSTEM_COMPONENTS"], managed_prometheus = false }
  autoscaling_profile = "BALANCED"
  autoprovisioning = {
    enabled = true
    limits = { cpu = { maximum = 1000 }, memory = { maximum = 4000 }, tpu-v5-lite-podslice = { minimum = 4, maximum = 16 } }
    service_account = "a@acc-project.iam.gserviceaccount.com"
    oauth_scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    zones = ["us-west4-a"]
  }
  addons = {
    gcs_fuse_csi_driver = true
    filestore_csi_driver = false
    lustre_csi_driver = false
    parallelstore_csi_driver = false
    persistent_disk_csi_driver = true
    high_scale_checkpointing = false
    slice_controller = false
    ray_operator = false
    node_local_dns_cache = false
    http_load_balancing = true
    horizontal_pod_autoscaling = true
  }
  workload_identity = true
  shielded_nodes = true
  security_posture = { mode = "DISABLED", vulnerability_mode = "VULNERABILITY_DISABLED" }
  resource_labels = { team = "research" }
  cluster_overrides = jsonencode({ costManagementConfig = { enabled = true } })
  cpu_pools = {
    system = {
      machine_type = "e2-standard-8"
      node_count = 2
      disk_type = "pd-balanced"
      disk_size_gb = 100
      labels = { role = "system" }
      taints = [{ key = "role", value = "system", effect = "PreferNoSchedule" }]
      zones = ["us-west4-a"]
      spot = false
      service_account = "nodes@acc-project.iam.gserviceaccount.com"
      oauth_scopes = ["https://www.googleapis.com/auth/cloud-platform"]
      max_pods_per_node = 64
      version = "1.34"
    }
    heads = {
      machine_type = "n2-standard-64"
      autoscaling = { min_nodes = 1, max_nodes = 4, location_policy = "BALANCED" }
    }
  }`
	second = `
  location = "us-west4"
  deletion_protection = false
  force = true
  min_master_version = "1.35"
  release_channel = "RAPID"
  network = "training"
  subnetwork = "training-west"
  ip_ranges = { pods_cidr = "10.64.0.0/14", services_cidr = "10.68.0.0/20" }
  max_pods_per_node = 64
  dataplane_v2 = true
  zones = ["us-west4-a", "us-west4-b"]
  private_nodes = true
  dns = { provider = "CLOUD_DNS", scope = "VPC_SCOPE", domain = "train.example" }
  control_plane = {
    dns_endpoint = true
    ip_endpoint = true
    private_endpoint = true
    global_access = true
    authorized_networks = { "10.0.0.0/8" = "vpc", "192.168.0.0/16" = "" }
    google_cloud_access = true
    subnetwork = "control"
  }
  maintenance = {
    window_start = "2026-01-03T00:00:00Z"
    window_end = "2026-01-03T12:00:00Z"
    recurrence = "FREQ=WEEKLY;BYDAY=SA,SU"
    exclusions = { run = { start = "2026-12-01T00:00:00Z", end = "2027-01-20T00:00:00Z", scope = "NO_MINOR_OR_NODE_UPGRADES" } }
  }
  logging = { components = ["SYSTEM_COMPONENTS", "WORKLOADS"] }
  monitoring = { components = ["SYSTEM_COMPONENTS", "JOBSET"], managed_prometheus = true }
  autoscaling_profile = "OPTIMIZE_UTILIZATION"
  autoprovisioning = {
    enabled = true
    limits = { cpu = { maximum = 2000 }, memory = { maximum = 4000 }, tpu-v5-lite-podslice = { maximum = 64 } }
    service_account = "b@acc-project.iam.gserviceaccount.com"
    oauth_scopes = ["https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"]
    zones = ["us-west4-b"]
  }
  addons = {
    gcs_fuse_csi_driver = true
    filestore_csi_driver = true
    lustre_csi_driver = true
    parallelstore_csi_driver = true
    persistent_disk_csi_driver = false
    high_scale_checkpointing = true
    slice_controller = true
    ray_operator = true
    node_local_dns_cache = true
    http_load_balancing = false
    horizontal_pod_autoscaling = false
  }
  workload_identity = true
  shielded_nodes = false
  security_posture = { mode = "BASIC", vulnerability_mode = "VULNERABILITY_BASIC" }
  resource_labels = { team = "production" }
  cluster_overrides = jsonencode({ costManagementConfig = { enabled = false } })
  cpu_pools = {
    system = {
      machine_type = "e2-standard-16"
      node_count = 3
      disk_type = "pd-ssd"
      disk_size_gb = 200
      labels = { role = "controllers" }
      taints = []
      zones = ["us-west4-a", "us-west4-c"]
      spot = true
      service_account = "others@acc-project.iam.gserviceaccount.com"
      oauth_scopes = ["https://www.googleapis.com/auth/logging.write"]
      max_pods_per_node = 32
      version = "1.35"
    }
    heads = {
      machine_type = "n2-standard-64"
      autoscaling = { min_nodes = 2, max_nodes = 8, total = true, location_policy = "ANY" }
    }
  }`
)

// notRead are attributes that GKE does not know, of which an import takes the
// defaults, and the least version, of which it takes the one that runs.
var notRead = []string{"cpu_pools.system.version", "deletion_protection", "force", "min_master_version", "cluster_overrides", "timeouts"}

// Every attribute: created, planned again to nothing, changed, planned again to
// nothing, and imported as it is.
func TestEveryAttribute(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	location := fmt.Sprintf("projects/%s/locations/us-west4/clusters/main", g.Project)
	empty := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	imported := resource.TestStep{ResourceName: address, ImportState: true, ImportStateId: location, ImportStateVerify: true, ImportStateVerifyIgnore: notRead}
	has := func(config string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			c, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: location})
			if err != nil {
				return err
			}
			for _, s := range gke.ClusterSettings() {
				if n := s.Name[strings.LastIndex(s.Name, ".")+1:]; s.Of(c) == nil && strings.Contains(config, n+" = ") {
					return fmt.Errorf("GKE has no %s", s.Name)
				}
			}
			return nil
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("", hcl(first))},
			{Config: g.Config("", hcl(first)), ConfigPlanChecks: empty},
			imported,
			{Config: g.Config("", hcl(second)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: has(second)},
			{Config: g.Config("", hcl(second)), ConfigPlanChecks: empty},
			imported,
			// What is left out stays as it is.
			{Config: g.Config("", hcl(`location = "us-west4"
deletion_protection = false
force = true
resource_labels = { team = "production" }
cpu_pools = {
  system = { machine_type = "e2-standard-16", node_count = 3 }
  heads = { machine_type = "n2-standard-64", autoscaling = { min_nodes = 2, max_nodes = 8, total = true } }
}`)), Check: func(*terraform.State) error {
				c, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: location})
				if err != nil {
					return err
				}
				if !c.GetAddonsConfig().GetRayOperatorConfig().GetEnabled() || c.GetShieldedNodes().GetEnabled() || c.GetCurrentMasterVersion()[:4] != "1.35" {
					return fmt.Errorf("what was left out changed: %v", c)
				}
				return nil
			}},
		},
	})
}

// first has every attribute, or the test above would not be about all of them.
func TestEveryAttributeIsTested(t *testing.T) {
	for _, s := range gke.ClusterSettings() {
		for part := range strings.SplitSeq(s.Name, ".") {
			if !strings.Contains(first+second, part+" = ") && part != "pods_range" && part != "services_range" {
				t.Errorf("%s is in neither configuration", s.Name)
			}
		}
	}
}

// What only another cluster can have is planned as a replacement, which a
// protected cluster refuses, naming the attribute and the reason.
func TestReplacements(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	const base = `deletion_protection = true
max_pods_per_node = 64
dataplane_v2 = true
ip_ranges = { pods_cidr = "/14", services_range = "services" }
network = "training"
subnetwork = "west"
control_plane = { subnetwork = "control" }
cluster_overrides = jsonencode({ description = "ours" })
`
	steps := []resource.TestStep{{Config: g.Config("", hcl(system+base))}}
	for _, c := range []struct{ from, to, says string }{
		{`max_pods_per_node = 64`, `max_pods_per_node = 32`, `max_pods_per_node: the pod ranges of nodes`},
		{`dataplane_v2 = true`, `dataplane_v2 = false`, `dataplane_v2: GKE chooses how packets travel`},
		{`pods_cidr = "/14"`, `pods_cidr = "/12"`, `ip_ranges.pods_cidr: GKE places`},
		{`services_range = "services"`, `services_range = "other"`, `ip_ranges.services_range: GKE places`},
		{`network = "training"`, `network = "other"`, `network: GKE places`},
		{`subnetwork = "west"`, `subnetwork = "east"`, `subnetwork: GKE places`},
		{`subnetwork = "control"`, `subnetwork = "other"`, `control_plane.subnetwork: the control plane's private address`},
		{`"ours"`, `"theirs"`, `cluster_overrides: GKE sets description`},
	} {
		steps = append(steps, resource.TestStep{PlanOnly: true,
			Config:      g.Config("", hcl(system+strings.Replace(base, c.from, c.to, 1))),
			ExpectError: regexp.MustCompile(`(?s)protected from\s+replacement.*` + strings.ReplaceAll(c.says, " ", `\s+`))})
	}
	free := strings.Replace(base, "protection = true", "protection = false", 1)
	steps = append(steps,
		// The same in other words is no change of the cluster.
		resource.TestStep{Config: g.Config("", hcl(system+strings.Replace(free, `network = "training"`, `network = "projects/acc-project/global/networks/training"`, 1))),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: g.Config("", hcl(system+strings.Replace(free, "dataplane_v2 = true", "dataplane_v2 = false", 1))),
			ConfigPlanChecks: action(plancheck.ResourceActionReplace)})
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: steps})
}
