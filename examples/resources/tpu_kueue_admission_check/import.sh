terraform import tpu_kueue_admission_check.queued projects/my-project/locations/us-west4-a/clusters/training/admissionChecks/queued
