resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "v5e-16x16"
  accelerator = "v5litepod-256"
}
