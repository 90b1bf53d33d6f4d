resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "v5e-16x16"
  accelerator = "v5litepod-256"
}

# Spot and on-demand slices of one topology: a flavor each, or slices would be
# handed out twice.
resource "tpu_kueue_flavor" "v6e" {
  for_each = toset(["on_demand", "spot"])

  cluster      = tpu_job_controllers.main.cluster
  name         = "v6e-4x4-${replace(each.key, "_", "-")}"
  accelerator  = "v6e-16"
  provisioning = each.key
}

# Jobs may ask for parts of these slices, down to 2x4.
resource "tpu_kueue_flavor" "parts" {
  cluster        = tpu_job_controllers.main.cluster
  name           = "v6e-16x16-parts"
  accelerator    = "v6e-256"
  topology_aware = {}
}

# Hosts: cpu and memory of all pods, wherever they run. It selects no nodes,
# because pods on TPU hosts get the labels of this flavor too.
resource "tpu_kueue_flavor" "hosts" {
  cluster = tpu_job_controllers.main.cluster
  name    = "hosts"
}
