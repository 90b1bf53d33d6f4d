# terraform apply -invoke=action.tpu_preload_image.train
action "tpu_preload_image" "train" {
  config {
    cluster     = tpu_training_cluster.main.id
    image       = "us-docker.pkg.dev/my-project/images/train:v1"
    accelerator = "v5litepod-256"
  }
}
