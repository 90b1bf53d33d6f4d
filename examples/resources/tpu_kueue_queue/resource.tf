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

# A team with slices of its own, which others may use while they are idle. Its
# quota is that of a slice pool, and is lowered before the pool shrinks.
resource "tpu_kueue_queue" "production" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "production"
  namespaces = ["production"]
  cohort     = "everybody"

  flavors = [{
    name        = tpu_kueue_flavor.v6e.name
    slice_pool  = tpu_slice_pool.v6e
    lend_slices = 2
  }]

  # Takes back at once what it lent.
  reclaim_within_cohort = "Any"
  fair_sharing_weight   = 2
}

# Jobs with pods beside the slices, such as data loaders or a Pathways head on
# CPU nodes: the queue counts the cpu and memory of all their pods.
resource "tpu_kueue_queue" "with_helpers" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "with-helpers"
  namespaces = ["vision"]

  flavors = [{
    name        = tpu_kueue_flavor.v5e.name
    accelerator = tpu_kueue_flavor.v5e.accelerator
    slices      = 2
  }]
  host_flavors = [{
    name   = tpu_kueue_flavor.hosts.name
    cpu    = { quota = "4000" }
    memory = { quota = "16Ti" }
  }]
}
