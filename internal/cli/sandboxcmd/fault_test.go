package sandboxcmd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

func TestFaultTable(t *testing.T) {
	rules := []faults.Rule{
		{ID: "1", Kind: faults.Status, Method: "CreateNodePool", Code: 503, Call: 2, RetryAfter: faults.Duration(2 * time.Second), Seen: 5, Hits: 1},
		{ID: "2", Kind: faults.ResetAfter, Object: "clusters/train", Probability: .05, Seed: 7, Seen: 40, Hits: 3},
		{ID: "3", Kind: faults.Slow, Method: "kube PATCH jobsets", Delay: faults.Duration(1500 * time.Millisecond), Times: 3},
	}
	s, out, _ := clitest.Streams(100, false)
	if err := output.Print(s, output.TableFormat, faultView(rules)); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "faults.txt", out.String())
}

func TestWrongFaultsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"add"}, {"add", "typo"}, {"add", "status"}, {"add", "reset", "--code", "503"}, {"add", "slow"},
		{"add", "reset", "--probability", "2"}, {"add", "reset", "--call", "1", "--probability", "0.5"},
		{"add", "reset", "--probability", "0"}, {"add", "reset", "--probability", "NaN"}, {"add", "reset", "--seed", "1"},
		{"add", "reset", "--method", "CreateNodePol"}, {"add", "stale", "--method", "CreateNodePool"},
	} {
		s, _, _ := clitest.Streams(80, false)
		err := root(s, append([]string{"sandbox", "fault"}, append(args, "--dir", t.TempDir())...)).ExecuteContext(t.Context())
		if exit.Code(err) != exit.Usage {
			t.Errorf("%v: %v, want a usage error", args, err)
		}
	}
}

func TestFaultsOfARunningSandbox(t *testing.T) {
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
	for _, c := range []struct{ args, want string }{
		{"list", "No fault rules."},
		{"add status --method CreateNodePool --code 503 -o name", "1\n"},
		{"add lost --delay 1s -o json", `"delay": "1s"`},
		{"list -o name", "1\n2\n"},
		{"clear 2", "Ended 1 rule, which hit 0 requests."},
		{"clear", "Ended 1 rule, which hit 0 requests."},
		{"list -o json", "[]"},
	} {
		s, out, _ := clitest.Streams(0, false)
		args := append([]string{"sandbox", "fault"}, append(strings.Fields(c.args), "--dir", box.Dir())...)
		if err := root(s, args).ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s printed %q, want %q", c.args, out, c.want)
		}
	}
	s, _, _ := clitest.Streams(0, false)
	if err := root(s, []string{"sandbox", "fault", "list", "--dir", t.TempDir()}).ExecuteContext(t.Context()); exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), "start one") {
		t.Errorf("where none runs: %v", err)
	}
}
