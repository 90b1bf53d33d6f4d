# One slice, and the controllers in the versions that the test asks for.

terraform {
  required_providers {
    tpu = {
      source = "registry.terraform.io/tpu-training/tpu"
    }
  }
}

variable "project" {
  type = string
}

variable "controllers" {
  type    = object({ jobset = optional(string), kueue = optional(string) })
  default = {}
}

provider "tpu" {
  project  = var.project
  location = "us-west4-a"
  owner    = "upgrade"
}

resource "tpu_training_cluster" "main" {
  name                = "training"
  release_channel     = "RAPID"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8", node_count = 1 } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-8"
  slice_count = 1
}

resource "tpu_job_controllers" "main" {
  cluster = tpu_training_cluster.main.id
  jobset  = { version = var.controllers.jobset }
  kueue   = { version = var.controllers.kueue }
}

resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
}

resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "v5e"
  accelerator = tpu_slice_pool.v5e.accelerator
}

resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = [tpu_training_namespace.research.name]
  flavors    = [{ name = tpu_kueue_flavor.v5e.name, accelerator = tpu_kueue_flavor.v5e.accelerator, slices = 1 }]
}
