terraform import tpu_job_controllers.main projects/my-project/locations/us-west4-a/clusters/training/jobControllers
