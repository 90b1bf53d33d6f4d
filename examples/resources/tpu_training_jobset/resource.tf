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

# Pathways: one program in a head on a CPU host uses the chips of four slices,
# and goes on while one of them is replaced.
resource "tpu_training_jobset" "pathways" {
  cluster         = tpu_job_controllers.main.cluster
  namespace       = "language"
  name            = "elastic"
  queue           = tpu_kueue_queue.research.name
  accelerator     = "v6e-256"
  slices          = 4
  image           = "us-docker.pkg.dev/my-project/images/train:v1"
  command         = ["python", "-m", "train"]
  service_account = "trainer"
  placement       = { provisioning = "spot" }

  pathways = {
    scratch_location   = "gs://my-scratch/pathways"
    head_node_selector = { "cloud.google.com/gke-nodepool" = "heads" }
    elastic_slices     = 1
  }
}

# A quarter of a v6e slice of 16x16. Kueue chooses which, by the topology of the
# queue's flavor.
resource "tpu_training_jobset" "part" {
  cluster     = tpu_job_controllers.main.cluster
  namespace   = "language"
  name        = "ablation"
  queue       = tpu_kueue_queue.parts.name
  accelerator = "v6e-64"
  slices      = 1
  image       = "us-docker.pkg.dev/my-project/images/train:v1"
  placement   = { pool_accelerator = "v6e-256" }
}
