# Four slices in a zone that may have less.

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

provider "tpu" {
  project  = var.project
  location = "us-west4-a"
  owner    = "capacity"
}

resource "tpu_training_cluster" "main" {
  name                = "capacity"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = 4
  on_stockout = "keep"
}

output "ready_slices" {
  value = tpu_slice_pool.v5e.ready_slices
}
