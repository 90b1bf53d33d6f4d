# Above very-high (1000).
resource "tpu_kueue_priority" "urgent" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "urgent"
  value       = 2000
  description = "Ask the operations team first."
}
