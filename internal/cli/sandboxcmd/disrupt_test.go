package sandboxcmd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

// There is a command for every disruption, and for no other.
func TestEveryDisruptionHasACommand(t *testing.T) {
	if len(disruptionKinds) != len(controlplane.Disruptions) {
		t.Errorf("%d commands for %d disruptions", len(disruptionKinds), len(controlplane.Disruptions))
	}
	for _, k := range disruptionKinds {
		if _, err := controlplane.ParseDisruption(k.name); err != nil {
			t.Error(err)
		}
	}
}

func TestWrongDisruptionIsAUsageError(t *testing.T) {
	t.Setenv(EnvDir, t.TempDir())
	for _, args := range []string{
		"disrupt evict", "disrupt evict a b", "disrupt evict a --job b", "disrupt lose a --for -3s",
		"disrupt evict a --slice 1", "disrupt evict a --host-index 0", "disrupt evict --job a --slice -2", "disrupt taint --job a --host-index -1",
		"exit", "exit a b", "exit a --code 256", "exit a --after -1s", "exit a --slice -2", "exit a --host-index -1",
		"print", "print a", "print a b --file f", "print a b c", "print a b --slice -2",
	} {
		s, _, _ := clitest.Streams(80, false)
		err := root(s, append([]string{"sandbox"}, strings.Fields(args)...)).ExecuteContext(t.Context())
		if exit.Code(err) != exit.Usage {
			t.Errorf("%s: %v, want a usage error", args, err)
		}
	}
}

func TestDisruptionsOfASandboxWithoutHosts(t *testing.T) {
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
	for _, line := range []string{"disrupt evict a", "disrupt lose --job train --for 3s", "disrupt list", "disrupt end", "exit train --code 3", "print train hello", "print train --file f"} {
		for dir, want := range map[string]string{box.Dir(): "without control planes", t.TempDir(): "start one"} {
			s, _, _ := clitest.Streams(80, false)
			err := root(s, append([]string{"sandbox"}, append(strings.Fields(line), "--dir", dir)...)).ExecuteContext(t.Context())
			if exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", line, err, want)
			}
		}
	}
}
