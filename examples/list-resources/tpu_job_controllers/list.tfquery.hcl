# terraform query -generate-config-out=controllers.tf
list "tpu_job_controllers" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
