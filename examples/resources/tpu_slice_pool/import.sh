# The whole path, or a short form: PROJECT/LOCATION/CLUSTER/NAME, and CLUSTER/NAME
# with project and location from the provider.
terraform import tpu_slice_pool.v5e projects/my-project/locations/us-west4-a/clusters/training/nodePools/v5e
terraform import tpu_slice_pool.v5e my-project/us-west4-a/training/v5e
terraform import tpu_slice_pool.v5e training/v5e
