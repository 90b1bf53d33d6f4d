package provider_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// isTerraform tells whether the command line is Terraform of a version or newer,
// and says aloud what is not shown if it is not.
func (s jobsScene) isTerraform(least, shown string) bool {
	s.Helper()
	out, err := s.d.Output(s.Context(), "version", "-json")
	if err != nil {
		s.Fatal(err)
	}
	var v struct {
		Terraform string `json:"terraform_version"` // OpenTofu calls its own version so too
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		s.Fatal(err)
	}
	got, err := version.ParseSemantic(v.Terraform)
	if err != nil {
		s.Fatal(err)
	}
	if strings.Contains(filepath.Base(s.d.CLI), "tofu") || got.LessThan(version.MustParseSemantic(least)) {
		s.Logf("SKIPPED: %s: they need Terraform %s or newer in TF_ACC_TERRAFORM_PATH, and this is %s %s", shown, least, filepath.Base(s.d.CLI), v.Terraform)
		return false
	}
	return true
}

// adds puts one more file beside the configuration.
func (s jobsScene) adds(from string) {
	s.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.d.Path, filepath.Base(from)), b, 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// Each action by the command line, on the real control plane: tpu_suspend_job,
// tpu_resume_job, tpu_preload_image and tpu_recreate_slice.
func (s jobsScene) actions(vars ...string) {
	if !s.isTerraform("1.14.0", "the actions, end to end") {
		return
	}
	s.adds("testdata/actions/actions.tf")
	invoke := func(action string, more ...string) string {
		s.Helper()
		return s.apply(append(append([]string{"-invoke=action." + action}, vars...), more...)...)
	}
	says := func(out string, want ...string) {
		s.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				s.Errorf("want %q in what the action says:\n%s", w, out)
			}
		}
	}
	says(invoke("tpu_suspend_job.long"), "is Suspended now", "1 invoked")
	s.becomes("long", "is suspended by an action", is(training.Suspended))
	says(invoke("tpu_suspend_job.long"), "is Suspended now")
	planIsEmpty(s.T, s.d, vars...)
	says(invoke("tpu_resume_job.long"), "1 invoked")
	s.becomes("long", "runs again", is(training.Running))
	s.settled("resumed by an action", "long", vars...)

	says(invoke("tpu_preload_image.train"), "4 of 4 hosts have train:1")

	// The slice that runs the job is not touched, the other is.
	node := s.host("long", 0)
	busy, idle := "v5e-0", "v5e-1"
	if strings.Contains(node, "v5e-1") {
		busy, idle = idle, busy
	}
	out, err := s.d.Output(s.Context(), append([]string{"apply", "-auto-approve", "-no-color", "-invoke=action.tpu_recreate_slice.one", "-var=slice=" + busy}, vars...)...)
	if err == nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(err.Error()+out, "│", " ")), " "), "vision/long") {
		s.Errorf("recreating a slice with a job at work: %v\n%s", err, out)
	}
	says(invoke("tpu_recreate_slice.one", "-var=slice="+idle), idle, "deleted, making it again")
	s.becomes("long", "runs on", is(training.Running))
	s.settled("with its neighbour made again", "long", vars...)
}
