resource "tpu_job_controllers" "main" {
  cluster = tpu_training_cluster.main.id
}
