# The multi-host v6e slices of up to 64 chips.
data "tpu_accelerator_topologies" "v6e" {
  generation = "v6e"
  min_hosts  = 2
  max_chips  = 64
}

output "names" {
  value = data.tpu_accelerator_topologies.v6e.topologies[*].name
}
