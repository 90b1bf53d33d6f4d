# terraform query -generate-config-out=checks.tf
list "tpu_kueue_admission_check" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
