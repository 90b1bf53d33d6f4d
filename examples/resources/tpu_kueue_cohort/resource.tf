resource "tpu_kueue_cohort" "company" {
  cluster = tpu_job_controllers.main.cluster
  name    = "company"
}

# A department within it: two slices that its queues share beside their own, and
# never more than four from the rest of the company.
resource "tpu_kueue_cohort" "research" {
  cluster             = tpu_job_controllers.main.cluster
  name                = "research"
  parent              = tpu_kueue_cohort.company.name
  fair_sharing_weight = "2"

  flavors = [{
    name          = tpu_kueue_flavor.v5e.name
    accelerator   = tpu_kueue_flavor.v5e.accelerator
    slices        = 2
    borrow_slices = 4
  }]
}
