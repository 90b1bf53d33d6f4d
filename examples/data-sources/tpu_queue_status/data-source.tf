# Who waits in a queue, and how much of it is taken.
data "tpu_queue_status" "research" {
  queue = tpu_kueue_queue.research.id
}

output "next_job" {
  value = one([for j in data.tpu_queue_status.research.pending : "${j.namespace}/${j.name}: ${j.message}" if j.position == 1])
}

check "research_is_open" {
  assert {
    condition     = data.tpu_queue_status.research.status == "Active"
    error_message = data.tpu_queue_status.research.message
  }
}
