# One job across two slices. A job that fails is a warning, because a tainted
# job would be deleted and run again; the postcondition turns the apply red.
resource "tpu_training_jobset" "train" {
  cluster     = tpu_job_controllers.main.cluster
  namespace   = "language"
  name        = "pretrain"
  queue       = tpu_kueue_queue.research.name
  accelerator = "v5litepod-256"
  slices      = 2
  image       = "us-docker.pkg.dev/my-project/images/train:v1"
  command     = ["python", "-m", "train"]
  args        = ["--steps=100000"]
  wait_for    = "completed"

  lifecycle {
    postcondition {
      condition     = self.status == "Succeeded"
      error_message = "The job is ${self.status}: ${self.reason}"
    }
  }
}
