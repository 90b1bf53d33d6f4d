# terraform apply -invoke=action.tpu_suspend_job.pretrain
action "tpu_suspend_job" "pretrain" {
  config {
    job = tpu_training_jobset.train.id
  }
}
