terraform import tpu_kueue_priority.urgent projects/my-project/locations/us-west4-a/clusters/training/workloadPriorityClasses/urgent
