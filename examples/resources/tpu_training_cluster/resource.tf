resource "tpu_training_cluster" "main" {
  name            = "training"
  location        = "us-west4-a"
  release_channel = "RAPID"

  cpu_pools = {
    system = {
      machine_type = "e2-standard-8"
      node_count   = 1
    }
  }
}

# A regional cluster in a shared network: private, reached by its DNS name, left
# alone during a long run, with room for the pods of a large fleet.
resource "tpu_training_cluster" "fleet" {
  name            = "fleet"
  location        = "us-east5"
  release_channel = "REGULAR"

  network    = "projects/my-host-project/global/networks/training"
  subnetwork = "projects/my-host-project/regions/us-east5/subnetworks/training"
  ip_ranges = {
    pods_range     = "pods"
    services_range = "services"
  }
  private_nodes = true
  control_plane = {
    dns_endpoint        = true
    private_endpoint    = true
    authorized_networks = { "10.0.0.0/8" = "corporate" }
  }

  maintenance = {
    window_start = "2026-01-03T00:00:00Z"
    window_end   = "2026-01-03T12:00:00Z"
    recurrence   = "FREQ=WEEKLY;BYDAY=SA,SU"
    exclusions = {
      pretraining = {
        start = "2026-12-01T00:00:00Z"
        end   = "2027-02-20T00:00:00Z"
        scope = "NO_MINOR_OR_NODE_UPGRADES"
      }
    }
  }

  addons = {
    gcs_fuse_csi_driver      = true
    high_scale_checkpointing = true
  }

  cpu_pools = {
    system = {
      machine_type = "e2-standard-8"
      node_count   = 1 # in each zone
    }
    heads = {
      machine_type = "n2-standard-64"
      autoscaling  = { max_nodes = 4, total = true }
      labels       = { role = "pathways-head" }
      taints       = [{ key = "role", value = "pathways-head", effect = "NoSchedule" }]
    }
  }
}
