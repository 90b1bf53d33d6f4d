# terraform query -generate-config-out=pools.tf
list "tpu_slice_pool" "main" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
