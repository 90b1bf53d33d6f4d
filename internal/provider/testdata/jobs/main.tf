# Jobs alone, on a cluster that has all they need.

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

variable "active" {
  type    = bool
  default = null
}

variable "trigger" {
  type    = string
  default = null
}

variable "spot" {
  type    = bool
  default = false
}

provider "tpu" {
  project = var.project
}

locals {
  job = {
    cluster     = "projects/${var.project}/locations/us-west4-a/clusters/main"
    namespace   = "vision"
    queue       = "research"
    accelerator = "v5litepod-8"
    # What the sandbox's hosts run until somebody ends it.
    lasting = { "pod-complete.stage.kwok.x-k8s.io/delay" = "1h", "pod-complete.stage.kwok.x-k8s.io/jitter-delay" = "1h" }
  }
}

# Its program is not there.
resource "tpu_training_jobset" "typo" {
  cluster         = local.job.cluster
  namespace       = local.job.namespace
  queue           = local.job.queue
  accelerator     = local.job.accelerator
  name            = "typo"
  slices          = 1
  image           = "train:1"
  command         = ["pyhton", "train.py"]
  pod_annotations = { "pod-fail.stage.kwok.x-k8s.io/exit-code" = "127" }
  output_dir      = "gs://runs"
  rerun_trigger   = var.trigger
  wait_for        = "completed"
}

resource "tpu_training_jobset" "long" {
  cluster         = local.job.cluster
  namespace       = local.job.namespace
  queue           = local.job.queue
  accelerator     = local.job.accelerator
  name            = "long"
  slices          = 1
  image           = "train:1"
  pod_annotations = local.job.lasting
  active          = var.active
  wait_for        = "running"
}

resource "tpu_training_jobset" "spot" {
  count           = var.spot ? 1 : 0
  cluster         = local.job.cluster
  namespace       = local.job.namespace
  queue           = local.job.queue
  accelerator     = local.job.accelerator
  name            = "spot"
  slices          = 2
  image           = "train:1"
  pod_annotations = local.job.lasting
  wait_for        = "running"
}
