# Four slices of 256 chips: four node pools of 64 hosts.
resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-256"
  slice_count = 4

  # A slice that could not be made is a warning and is healed by the next
  # apply. This makes it an error as well.
  lifecycle {
    postcondition {
      condition     = self.ready_slices == 4
      error_message = "Only ${self.ready_slices} of 4 slices are ready."
    }
  }
}
