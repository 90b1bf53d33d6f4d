package jobs

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Somebody who waits is told what is in the way of the pods, once, though what
// the kubelet says of it goes to and fro.
func TestProgress(t *testing.T) {
	at := func(s training.State, hindrance, message string) training.Run {
		r := run("research", "train", s)
		r.Reason, r.Hindrance, r.Message = hindrance, hindrance, message
		return r
	}
	restarts := at(training.Restarting, "", "a host was lost. host 0/3: no node takes its pod")
	restarts.Reason, restarts.Hindrance = "WaitForRecovery", training.ReasonUnschedulable
	var out bytes.Buffer
	p := progress{w: &out}
	for _, r := range []training.Run{
		at(training.Admitted, "", "quota is reserved"), at(training.Starting, training.ReasonImagePull, "not found"), at(training.Starting, training.ReasonImagePull, "Back-off"),
		at(training.Starting, "CreateContainerConfigError", "no Secret"), at(training.Running, "", ""), at(training.Running, "", ""), restarts,
	} {
		p.tell(r)
	}
	want := `research/train: Admitted
research/train: Starting, 0/8 hosts (ImagePullBackOff): not found
research/train: Starting, 0/8 hosts (CreateContainerConfigError): no Secret
research/train: Running
research/train: Restarting, 0/8 hosts (WaitForRecovery): a host was lost. host 0/3: no node takes its pod
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	quiet := progress{w: &out, quiet: true}
	quiet.tell(at(training.Running, "", ""))
	if out.Len() > 0 {
		t.Errorf("that it runs was told: %s", out.String())
	}
}
