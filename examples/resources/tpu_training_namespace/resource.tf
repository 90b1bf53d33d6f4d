resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
}
