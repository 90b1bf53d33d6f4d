locals {
  cluster = "projects/${var.project}/locations/us-west4-a/clusters/main"
}

list "tpu_training_cluster" "all" {
  provider         = tpu
  include_resource = true
  config {}
}

list "tpu_slice_pool" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_job_controllers" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_training_namespace" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_kueue_flavor" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_kueue_cohort" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_kueue_queue" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_kueue_priority" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_kueue_admission_check" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}

list "tpu_training_jobset" "all" {
  provider         = tpu
  include_resource = true
  config {
    cluster = local.cluster
  }
}
