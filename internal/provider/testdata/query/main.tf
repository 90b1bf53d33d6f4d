# What `terraform query` finds on the cluster of ../everything.

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
  project = var.project
}
