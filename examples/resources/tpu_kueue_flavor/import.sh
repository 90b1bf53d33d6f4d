terraform import tpu_kueue_flavor.v5e projects/my-project/locations/us-west4-a/clusters/training/resourceFlavors/v5e-16x16
