output "cluster" {
  description = "Pass this to tpuctl --cluster."
  value       = tpu_training_cluster.main.id
}

output "chips" {
  description = "All TPU chips of the slice pool."
  value       = tpu_slice_pool.v5e.chips
}

output "job" {
  description = "How the training job ended."
  value       = tpu_training_jobset.train.status
}
