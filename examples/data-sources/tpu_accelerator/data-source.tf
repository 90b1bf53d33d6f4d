data "tpu_accelerator" "v5p" {
  name = "v5p-128" # 128 TensorCores: 64 chips, 4x4x4, 16 hosts
}

output "hosts" {
  value = data.tpu_accelerator.v5p.hosts
}
