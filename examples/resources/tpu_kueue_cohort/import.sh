terraform import tpu_kueue_cohort.research projects/my-project/locations/us-west4-a/clusters/training/cohorts/research
