# What a job with these arguments would create, without a cluster.
data "tpu_rendered_jobset" "train" {
  spec = {
    name        = "pretrain"
    namespace   = "language"
    queue       = "research"
    accelerator = "v5litepod-256"
    slices      = 2
    image       = "us-docker.pkg.dev/my-project/images/train:v1"
    command     = ["python", "-m", "train"]
  }
}

output "jobset" {
  value = data.tpu_rendered_jobset.train.yaml
}
