terraform {
  required_providers {
    tpu = {
      source = "tpu-training/tpu"
    }
  }
}

# Credentials come from the environment: application default credentials, a
# key file, or an access token.
provider "tpu" {
  project  = "my-project"
  location = "us-west4-a"
  owner    = "infra"
}
