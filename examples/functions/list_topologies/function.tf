output "v6e" {
  value = provider::tpu::list_topologies("v6e")[*].topology
}
