terraform import tpu_training_namespace.research projects/my-project/locations/us-west4-a/clusters/training/namespaces/research
