data "tpu_job_status" "train" {
  job = tpu_training_jobset.train.id
}

output "where_it_stands" {
  value = "${data.tpu_job_status.train.status} with ${data.tpu_job_status.train.hosts_ready} of ${data.tpu_job_status.train.hosts_wanted} hosts"
}
