# terraform query -generate-config-out=cohorts.tf
list "tpu_kueue_cohort" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
