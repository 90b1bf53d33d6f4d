# terraform apply -invoke=action.tpu_resume_job.pretrain
action "tpu_resume_job" "pretrain" {
  config {
    job = tpu_training_jobset.train.id
  }
}
