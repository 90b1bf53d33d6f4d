# terraform query -generate-config-out=flavors.tf
list "tpu_kueue_flavor" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
