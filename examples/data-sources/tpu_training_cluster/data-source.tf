data "tpu_training_cluster" "shared" {
  name     = "training"
  project  = "my-project"
  location = "us-west4-a"
}

resource "tpu_slice_pool" "mine" {
  cluster     = data.tpu_training_cluster.shared.id
  name        = "mine"
  accelerator = "v5litepod-16"
  slice_count = 1
}
