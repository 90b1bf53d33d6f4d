data "tpu_slice_pools" "all" {
  cluster = tpu_training_cluster.main.id
}

# Which slices are idle: { "v5e-3" = "v5litepod-16" }
output "idle_slices" {
  value = merge([
    for pool in data.tpu_slice_pools.all.pools : {
      for slice in pool.slices : slice.node_pool => pool.accelerator
      if slice.status == "RUNNING" && length(slice.jobs) == 0
    }
  ]...)
}

check "every_host_is_ready" {
  assert {
    condition = alltrue([
      for pool in data.tpu_slice_pools.all.pools :
      alltrue([for slice in pool.slices : slice.hosts_ready == pool.hosts_per_slice])
    ])
    error_message = "Some TPU hosts are missing or not ready: see `tpuctl slices`."
  }
}
