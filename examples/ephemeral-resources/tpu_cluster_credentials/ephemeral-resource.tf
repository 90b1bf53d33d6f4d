terraform {
  required_providers {
    kubernetes = {
      source = "hashicorp/kubernetes"
    }
  }
}

resource "tpu_training_cluster" "main" {
  name      = "training"
  cpu_pools = { system = { machine_type = "e2-standard-8" } }
}

# Nothing of this is written to the plan or the state.
ephemeral "tpu_cluster_credentials" "main" {
  cluster = tpu_training_cluster.main.id
}

provider "kubernetes" {
  host                   = "https://${ephemeral.tpu_cluster_credentials.main.endpoint}"
  cluster_ca_certificate = ephemeral.tpu_cluster_credentials.main.ca_certificate
  token                  = ephemeral.tpu_cluster_credentials.main.token
}

# What this provider has no resource for, in the same apply.
resource "kubernetes_config_map_v1" "settings" {
  metadata {
    name = "settings"
  }
  data = { dataset = "gs://my-bucket/dataset" }
}
