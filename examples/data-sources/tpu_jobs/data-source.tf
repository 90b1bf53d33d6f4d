# What of one experiment still runs or waits.
data "tpu_jobs" "sweep" {
  cluster    = tpu_training_cluster.main.id
  experiment = "learning-rates"
  statuses   = ["Pending", "Admitted", "Starting", "Running", "Restarting"]
}

output "left" {
  value = { for job in data.tpu_jobs.sweep.jobs : job.name => job.status }
}
