package sandboxcmd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

func TestCapacityTable(t *testing.T) {
	limits := []sandbox.Limit{
		{ID: "1", Kind: sandbox.Stockout, Zone: "us-west4-a", Count: 3, Trouble: fakegke.OutOfStock},
		{ID: "2", Kind: sandbox.Stockout, Project: "research", Pool: "v5e-1", Trouble: fakegke.KeyDenied},
		{ID: "3", Kind: sandbox.Quota, Region: "us-west4", Machine: "ct5lp", Count: 64},
		{ID: "4", Kind: sandbox.Quota, Metric: "PREEMPTIBLE_TPUS", Count: 1},
		{ID: "5", Kind: sandbox.Reservation, Name: "team", Zone: "us-west4-a", Machine: "ct5lp-hightpu-4t", Count: 8},
	}
	s, out, _ := clitest.Streams(120, false)
	if err := output.Print(s, output.TableFormat, limitsView(limits)); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "capacity.txt", out.String())
}

func TestWrongCapacityIsAUsageError(t *testing.T) {
	t.Setenv(EnvDir, t.TempDir())
	for _, args := range []string{
		"stockout us-west4", "stockout a b", "stockout --slices -1", "stockout --trouble typo",
		"quota", "quota many", "quota -- -1", "quota 4 --region us-west4-a", "quota 4 --machine-type n2",
		"reservation", "reservation r", "reservation r --zone us-west4-a --hosts 3", "reservation r --zone us-west4-a --hosts 3 --machine-type e2-medium",
		"preempt", "preempt a b", "preempt a --hosts-left -1", "restore",
	} {
		s, _, _ := clitest.Streams(80, false)
		err := root(s, append([]string{"sandbox", "capacity"}, strings.Fields(args)...)).ExecuteContext(t.Context())
		if exit.Code(err) != exit.Usage {
			t.Errorf("%s: %v, want a usage error", args, err)
		}
	}
}

func TestCapacityOfARunningSandbox(t *testing.T) {
	box, err := sandbox.Start(t.Context(), sandbox.WithoutControlPlanes())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := box.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	run := func(dir, line string) (string, error) {
		s, out, _ := clitest.Streams(0, false)
		err := root(s, append([]string{"sandbox", "capacity"}, append(strings.Fields(line), "--dir", dir)...)).ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, c := range []struct{ line, want string }{
		{"list", "No limits: there is enough of everything."},
		{"stockout us-west4-a --slices 3 -o name", "1\n"},
		{"stockout us-west4-a --slices 4 -o json", `"count": 4`},
		{"quota 64 --region us-west4", "64 chips"},
		{"reservation team --zone us-west4-a --machine-type ct5lp-hightpu-4t --hosts 8", "8 x ct5lp-hightpu-4t"},
		{"list -o name", "1\n2\n3\n"},
		{"clear 2", "Ended 1 limit."},
		{"clear", "Ended 2 limits."},
		{"list -o json", "[]"},
	} {
		if out, err := run(box.Dir(), c.line); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s printed %q, want %q: %v", c.line, out, c.want, err)
		}
	}
	for line, want := range map[string]string{"preempt v5e-0": "there is no node pool v5e-0", "restore v5e-0": "there is no node pool v5e-0", "clear 9": "there is no limit 9"} {
		if _, err := run(box.Dir(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	for _, line := range []string{"list", "clear", "quota 4", "preempt v5e-0"} {
		if _, err := run(t.TempDir(), line); exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), "start one") {
			t.Errorf("%s where none runs: %v", line, err)
		}
	}
}
