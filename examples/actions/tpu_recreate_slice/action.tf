# terraform apply -invoke=action.tpu_recreate_slice.second
action "tpu_recreate_slice" "second" {
  config {
    cluster = tpu_training_cluster.main.id
    slice   = tpu_slice_pool.v5e.slices["1"].node_pool
  }
}
