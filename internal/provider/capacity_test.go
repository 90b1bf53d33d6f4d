package provider_test

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/sandboxcmd"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// What a user of the sandbox sees of a zone that has room for three slices of
// four: a warning in GKE's words and no taint; when there is room, an apply
// that makes the one that is missing, and then nothing more to do. The same
// with a slice whose hosts are taken away.
func TestAccCapacityRunsOutAndReturns(t *testing.T) {
	const project = "acc-capacity"
	d := acctest.Workspace(t, "testdata/capacity", project)
	box := acctest.Sandbox(t)
	capacity := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := sandboxcmd.New(&term.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		cmd.SetArgs(append(append([]string{"capacity"}, args...), "--dir", box.Dir()))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("capacity %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(out.String())
	}
	terraform := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := d.Run(t.Context(), &out, append(args, "-no-color")...); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		return strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", " ")), " ") // without its line breaks
	}
	says := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("it does not say %q:\n%s", w, out)
			}
		}
	}
	noChanges := func(when string) {
		t.Helper()
		if out, err := d.Output(t.Context(), "plan", "-detailed-exitcode", "-no-color"); err != nil {
			t.Errorf("%s the plan is not empty (exit %d):\n%s", when, tfrun.ExitCode(err), out)
		}
	}

	id := capacity("stockout", "us-west4-a", "--slices", "3", "--project", project, "-o", "name")
	says(terraform("apply", "-auto-approve"),
		"Warning:", "3 of 4 slices are ready", "no capacity", "ready_slices = 3", "0 changed, 0 destroyed")
	says(terraform("plan"), "# tpu_slice_pool.v5e will be updated in-place", "0 to add, 1 to change, 0 to destroy")
	capacity("clear", id)
	says(terraform("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed", "ready_slices = 4")
	noChanges("with capacity")

	says(capacity("preempt", project+"/us-west4-a/capacity/v5e-2", "--hosts-left", "1"), "v5e-2 has 1 of its 4 hosts left")
	var nodes corev1.NodeList
	cl := acctest.Connect(t, "projects/"+project+"/locations/us-west4-a/clusters/capacity")
	if err := cl.List(t.Context(), &nodes, client.MatchingLabels{"cloud.google.com/gke-nodepool": "v5e-2"}); err != nil || len(nodes.Items) != 1 {
		t.Errorf("%d nodes in the cluster, want one: %v", len(nodes.Items), err)
	}
	says(terraform("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed", "ready_slices = 4")
	noChanges("with the slice made again")
	terraform("destroy", "-auto-approve")
}
