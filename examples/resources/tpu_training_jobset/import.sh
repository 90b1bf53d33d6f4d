terraform import tpu_training_jobset.train projects/my-project/locations/us-west4-a/clusters/training/namespaces/language/jobsets/pretrain
