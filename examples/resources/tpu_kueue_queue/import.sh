terraform import tpu_kueue_queue.research projects/my-project/locations/us-west4-a/clusters/training/clusterQueues/research
