# terraform query -generate-config-out=queues.tf
list "tpu_kueue_queue" "training" {
  provider         = tpu
  include_resource = true

  config {
    cluster = "projects/my-project/locations/us-west4-a/clusters/training"
  }
}
