# Jobs in queues that name the check start when the autoscaler has promised all
# of their machines.
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
