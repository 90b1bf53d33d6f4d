output "chips" {
  value = provider::tpu::describe_slice("v5p-128").chips # 64
}
