# The actions on the jobs and slices of ../jobs, for Terraform 1.14 and newer.

action "tpu_suspend_job" "long" {
  config {
    job = tpu_training_jobset.long.id
  }
}

action "tpu_resume_job" "long" {
  config {
    job = tpu_training_jobset.long.id
  }
}

action "tpu_preload_image" "train" {
  config {
    cluster     = local.job.cluster
    namespace   = local.job.namespace
    image       = "train:1"
    accelerator = local.job.accelerator
  }
}

variable "slice" {
  type    = string
  default = "v5e-0"
}

action "tpu_recreate_slice" "one" {
  config {
    cluster = local.job.cluster
    slice   = var.slice
  }
}
