resource "tpu_training_jobset" "train" {
  cluster     = "projects/p/locations/l/clusters/c"
  name        = "train"
  namespace   = "research"
  queue       = "q"
  accelerator = "v5litepod-16"
  slices      = 2
  image       = "python:3.13"
  command     = ["python", "train.py"]
  args        = ["--fast", "--config.lr=1"]
  env = {
    A = "1"
    B = "2"
  }
  # A label that begins with tag.tpu-training.github.io/ is a tag (tpuctl submit --tag).
  labels = {
    "tag.tpu-training.github.io/b" = "true"
    "tag.tpu-training.github.io/c" = "true"
    team                           = "a"
  }
  # tpu-training.github.io/note is the note (tpuctl submit --note).
  annotations = {
    "tpu-training.github.io/note" = "$${why}"
  }
  restart_policy = {
    fatal_exit_codes = [2, 126, 127]
    max_restarts     = 7
  }
  jobset_overrides = jsonencode({
    spec = {
      coordinator = {
        jobIndex      = 1
        replicatedJob = "slice"
      }
    }
  })
}
