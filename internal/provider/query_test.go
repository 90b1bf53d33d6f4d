package provider_test

import (
	"strings"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// What `terraform query` finds on the cluster of TestAccEverything, with every
// kind that can be listed, is imported by the configuration that it generates,
// and nothing is left to change.
func query(t *testing.T, project string) {
	s := jobsScene{T: t, d: acctest.Workspace(t, "testdata/query", project), project: project}
	if !s.isTerraform("1.14.0", "lists and the configuration they generate") {
		return
	}
	s.adds("testdata/query/all.tfquery.hcl")
	found := s.terraform("query", "-generate-config-out=generated.tf")
	planned := s.terraform("plan")
	for _, kind := range []string{
		"tpu_training_cluster", "tpu_slice_pool", "tpu_job_controllers", "tpu_training_namespace", "tpu_kueue_flavor",
		"tpu_kueue_cohort", "tpu_kueue_queue", "tpu_kueue_priority", "tpu_kueue_admission_check", "tpu_training_jobset",
	} {
		if !strings.Contains(found, "list."+kind+".all ") || !strings.Contains(planned, kind+".all_0 will be imported") {
			t.Errorf("%s is not listed, or not imported", kind)
		}
	}
	if !strings.Contains(planned, " to import, 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("the generated configuration plans:\n%s", planned)
	}
}
