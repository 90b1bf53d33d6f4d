# terraform query -generate-config-out=priorities.tf
list "tpu_kueue_priority" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
