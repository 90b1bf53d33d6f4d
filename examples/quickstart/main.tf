# From an empty project to a finished training job in one apply: a cluster,
# two v5e slices of 16 chips, the JobSet and Kueue controllers, a queue, a job.

terraform {
  required_version = ">= 1.5"
  required_providers {
    tpu = {
      source = "registry.terraform.io/tpu-training/tpu"
    }
  }
}

provider "tpu" {
  project  = var.project
  location = var.zone
  owner    = "quickstart"
}

# The cluster and its CPU pool. A cluster that is to last keeps
# deletion_protection at its default, true.
resource "tpu_training_cluster" "main" {
  name                = "quickstart"
  release_channel     = "RAPID"
  deletion_protection = false

  cpu_pools = {
    system = {
      machine_type = "e2-standard-8"
      node_count   = 1
    }
  }
}

# Two equal slices. Topology, machine type, hosts, labels and placement all
# follow from the accelerator.
resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = var.slices
}

# JobSet runs the job, Kueue decides when.
resource "tpu_job_controllers" "main" {
  cluster = tpu_training_cluster.main.id
}

resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
}

resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "v5e-4x4"
  accelerator = "v5litepod-16"
}

# The queue may use all slices; jobs that ask for more than is free wait.
resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = [tpu_training_namespace.research.name]

  flavors = [{
    name        = tpu_kueue_flavor.v5e.name
    accelerator = tpu_kueue_flavor.v5e.accelerator
    slices      = var.slices
  }]
}

# One JobSet across both slices: 8 hosts, 32 chips. The apply ends when the
# job has ended.
resource "tpu_training_jobset" "train" {
  cluster     = tpu_slice_pool.v5e.cluster
  namespace   = tpu_training_namespace.research.name
  name        = "train"
  queue       = tpu_kueue_queue.research.name
  accelerator = tpu_slice_pool.v5e.accelerator
  slices      = var.slices
  image       = "us-docker.pkg.dev/cloud-tpu-images/jax-ai-image/tpu:latest"
  command     = ["python", "-c", "import jax; print(jax.device_count())"]
  wait_for    = "completed"
}
