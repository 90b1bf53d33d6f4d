# terraform query -generate-config-out=clusters.tf
list "tpu_training_cluster" "all" {
  provider         = tpu
  include_resource = true

  config {
    project = "my-project"
  }
}
