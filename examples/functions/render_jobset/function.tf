output "jobset" {
  value = provider::tpu::render_jobset({
    name        = "pretrain"
    namespace   = "language"
    queue       = "research"
    accelerator = "v5litepod-256"
    slices      = 2
    image       = "us-docker.pkg.dev/my-project/images/train:v1"
    command     = ["python", "-m", "train"]
  })
}
