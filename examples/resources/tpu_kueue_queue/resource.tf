# Four slices for two namespaces. Each gets a LocalQueue named research.
resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = ["vision", "language"]

  flavors = [{
    name        = tpu_kueue_flavor.v5e.name
    accelerator = tpu_kueue_flavor.v5e.accelerator
    slices      = 4
  }]
}
