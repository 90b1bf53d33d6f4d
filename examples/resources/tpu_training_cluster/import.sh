# The whole path, or a short form: PROJECT/LOCATION/NAME, LOCATION/NAME with the
# provider's project, and NAME with the provider's project and location.
terraform import tpu_training_cluster.main projects/my-project/locations/us-west4-a/clusters/training
terraform import tpu_training_cluster.main my-project/us-west4-a/training
terraform import tpu_training_cluster.main us-west4-a/training
terraform import tpu_training_cluster.main training
