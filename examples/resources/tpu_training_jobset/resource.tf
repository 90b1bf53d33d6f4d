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

# A script, data from a bucket, a configuration file, an uploader of metrics
# beside the job, and an evaluator without which there is no result.
resource "tpu_training_jobset" "finetune" {
  cluster         = tpu_job_controllers.main.cluster
  namespace       = "language"
  name            = "finetune"
  queue           = tpu_kueue_queue.research.name
  accelerator     = "v5litepod-256"
  slices          = 1
  image           = "us-docker.pkg.dev/my-project/images/train:v1"
  service_account = "trainer"

  shell    = "python -m prepare && python -m train --config=/etc/train/config.yaml | tee $OUTPUT_DIR/log"
  env_from = [{ secret = "hugging-face", prefix = "HF_" }]
  files    = { "/etc/train/config.yaml" = yamlencode({ learning_rate = 0.0001 }) }
  volumes = {
    data = { path = "/data", bucket = "my-datasets", mount_options = ["implicit-dirs"], read_only = true }
    runs = { path = "/runs", bucket = "my-runs" }
  }
  output_dir     = "/runs"
  resources      = { memory = "180Gi" }
  max_run_time   = "72h"
  restart_policy = { max_restarts = 5 }

  jobs = {
    tensorboard = {
      image        = "us-docker.pkg.dev/my-project/images/uploader:v1"
      args         = ["--logdir=/runs"]
      starts_after = { slice = "ready" }
    }
    evaluate = {
      shell      = "python -m evaluate --watch=$OUTPUT_DIR"
      resources  = { cpu = "8", memory = "32Gi" }
      on_failure = "restart"
    }
  }
}
