# terraform query -generate-config-out=namespaces.tf
list "tpu_training_namespace" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
