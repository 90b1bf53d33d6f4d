# Everything that a cluster can have of controllers, queues and jobs.

terraform {
  required_providers {
    tpu = {
      source = "registry.terraform.io/tpu-training/tpu"
    }
  }
}

variable "project" {
  type = string
}

variable "flavor" {
  type    = string
  default = "v5e"
}

# A namespace and a flavor whose names others still leave.
variable "latecomers" {
  type    = bool
  default = false
}

provider "tpu" {
  project  = var.project
  location = "us-west4-a"
  owner    = "everything"
}

resource "tpu_training_cluster" "main" {
  name                = "main"
  release_channel     = "RAPID"
  deletion_protection = false
  resource_labels     = { cost-center = "research" }
  cpu_pools           = { system = { machine_type = "e2-standard-8", node_count = 1 } }
}

resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-8"
  slice_count = 2
  node        = { labels = { team = "research" } }
}

resource "tpu_job_controllers" "main" {
  cluster      = tpu_training_cluster.main.id
  webhook_port = 9443
  max_hosts    = 64
  adopt        = true
  jobset       = { client_qps = 100, client_burst = 200 }
  kueue = {
    fair_sharing           = true
    recovery_timeout       = "30m"
    workload_retention     = "24h"
    admission_fair_sharing = { usage_half_life = "24h" }
    resources              = { memory = "1Gi" }
  }
}

resource "tpu_kueue_priority" "urgent" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "urgent"
  value       = 2000
  description = "Ask the operations team first."
}

resource "tpu_kueue_flavor" "v5e" {
  cluster      = tpu_job_controllers.main.cluster
  name         = var.flavor
  accelerator  = tpu_slice_pool.v5e.accelerator
  provisioning = "on_demand"
}

resource "tpu_kueue_flavor" "spot" {
  cluster      = tpu_job_controllers.main.cluster
  name         = "v5e-spot"
  accelerator  = "v5litepod-8"
  provisioning = "spot"
  node_taints  = [{ key = "cheap", effect = "NoSchedule" }]
  tolerations  = [{ key = "cheap", operator = "Exists" }]
}

resource "tpu_kueue_flavor" "parts" {
  cluster        = tpu_job_controllers.main.cluster
  name           = "v6e-parts"
  accelerator    = "v6e-256"
  topology_aware = {}
}

resource "tpu_kueue_cohort" "company" {
  cluster = tpu_job_controllers.main.cluster
  name    = "company"
}

resource "tpu_kueue_cohort" "lab" {
  cluster             = tpu_job_controllers.main.cluster
  name                = "lab"
  parent              = tpu_kueue_cohort.company.name
  fair_sharing_weight = "0.5"
  flavors = [{
    name          = tpu_kueue_flavor.parts.name, accelerator = tpu_kueue_flavor.parts.accelerator
    slices        = 1
    borrow_slices = 2
    lend_slices   = 0
  }]
}

resource "tpu_kueue_admission_check" "queued" {
  cluster = tpu_job_controllers.main.cluster
  name    = "queued"
  provisioning_request = {
    class             = "queued-provisioning.gke.io"
    managed_resources = ["google.com/tpu"]
    node_selector     = { "autoscaling.gke.io/provisioning-request" = "ResizeRequestName" }
    retry_limit       = 5
  }
}

resource "tpu_training_namespace" "vision" {
  cluster    = tpu_training_cluster.main.id
  name       = "vision"
  labels     = { team = "vision" }
  submitters = ["group:ml@example.com", "serviceAccount:ci/runner"]
  viewers    = ["user:lead@example.com"]
  service_account = {
    name                   = "trainer"
    google_service_account = "trainer@my-project.iam.gserviceaccount.com"
  }
}

resource "tpu_training_namespace" "language" {
  cluster = tpu_training_cluster.main.id
  name    = "language"
  viewers = ["user:lead@example.com"]
}

# Its slices are those of the pool; it lends one of them.
resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = [tpu_training_namespace.vision.name, tpu_training_namespace.language.name]
  cohort     = tpu_kueue_cohort.lab.name
  flavors = [{
    name        = tpu_kueue_flavor.v5e.name
    slice_pool  = tpu_slice_pool.v5e
    lend_slices = 1
    cpu         = { quota = "1000", borrow = "0" }
    memory      = { quota = "4Ti" }
  }]
  preempt_within_queue  = "LowerOrNewerEqualPriority"
  reclaim_within_cohort = "Any"
  queueing_strategy     = "StrictFIFO"
  fair_sharing_weight   = 2
  admission_mode        = "UsageBasedAdmissionFairSharing"
  namespace_weights     = { language = "0.5" }
}

resource "tpu_kueue_queue" "batch" {
  cluster                 = tpu_job_controllers.main.cluster
  name                    = "batch"
  namespaces              = [tpu_training_namespace.language.name]
  cohort                  = tpu_kueue_cohort.lab.name
  stop_policy             = "Hold" # until there is an autoscaler to ask
  namespace_stop_policies = { language = "Hold" }
  admission_checks        = [{ name = tpu_kueue_admission_check.queued.name, on_flavors = [tpu_kueue_flavor.spot.name] }]
  flavors = [
    { name = tpu_kueue_flavor.v5e.name, accelerator = tpu_kueue_flavor.v5e.accelerator, slices = 0, borrow_slices = 1 },
    { name = tpu_kueue_flavor.spot.name, accelerator = tpu_kueue_flavor.spot.accelerator, slices = 4 },
    { name = tpu_kueue_flavor.parts.name, accelerator = tpu_kueue_flavor.parts.accelerator, slices = 0 },
  ]
}

resource "tpu_training_jobset" "train" {
  cluster         = tpu_job_controllers.main.cluster
  namespace       = tpu_training_namespace.vision.name
  name            = "train"
  queue           = tpu_kueue_queue.research.name
  priority        = tpu_kueue_priority.urgent.name
  accelerator     = tpu_slice_pool.v5e.accelerator
  slices          = 2
  image           = "busybox"
  service_account = tpu_training_namespace.vision.service_account.name
  labels          = { stage = "pretraining" }
  wait_for        = "completed"

  lifecycle {
    postcondition {
      condition     = self.status == "Succeeded"
      error_message = "The job is ${self.status}: ${self.reason}"
    }
  }
}

data "tpu_queue_status" "research" {
  queue = tpu_kueue_queue.research.id
}

output "research" {
  value = data.tpu_queue_status.research.status
}

resource "tpu_training_namespace" "late" {
  count   = var.latecomers ? 1 : 0
  cluster = tpu_training_cluster.main.id
  name    = "late"
}

resource "tpu_kueue_flavor" "late" {
  count       = var.latecomers ? 1 : 0
  cluster     = tpu_job_controllers.main.cluster
  name        = "late"
  accelerator = "v5litepod-16"
}
