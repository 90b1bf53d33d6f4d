resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"

  # Jobs run as this account; the IAM binding on Google's side is made elsewhere.
  service_account = {
    name                   = "trainer"
    google_service_account = "trainer@my-project.iam.gserviceaccount.com"
  }

  submitters = ["group:ml-research@example.com", "serviceAccount:ci/runner"]
  viewers    = ["user:lead@example.com"]
}
