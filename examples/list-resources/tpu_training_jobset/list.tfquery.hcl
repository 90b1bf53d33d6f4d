# terraform query
list "tpu_training_jobset" "language" {
  provider = tpu
  config {
    cluster   = "projects/my-project/locations/us-west4-a/clusters/training"
    namespace = "language"
  }
}
