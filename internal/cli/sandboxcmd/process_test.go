//go:build unix

package sandboxcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
)

// asTpuctl makes this test binary behave as tpuctl, so that `up` can run it
// again in the background.
const asTpuctl = "SANDBOXCMD_TEST_AS_TPUCTL"

func TestMain(m *testing.M) {
	if os.Getenv(asTpuctl) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &term.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := root(s, os.Args[1:]).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(exit.Code(err))
}

// tpuctl runs a command in a process of its own and returns what it wrote.
func tpuctl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{"sandbox"}, args...)...)
	cmd.Env = append(os.Environ(), asTpuctl+"=1")
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	// A background process that kept our pipes would keep us waiting.
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	return b.String(), err
}

func code(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// noPrograms stands in for the control plane: a sandbox without clusters runs
// none of them.
func noPrograms(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "jobset", "kueue"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(binaries.EnvFolder, dir)
}

// box is a folder whose sandbox, if any, is stopped when the test ends.
func box(t *testing.T) string {
	t.Helper()
	noPrograms(t)
	dir := filepath.Join(t.TempDir(), "box")
	t.Cleanup(func() {
		if _, err := sandbox.Down(context.Background(), dir, false); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestUpEnvStatusDown(t *testing.T) {
	dir := box(t)
	out, err := tpuctl(t, "up", "--dir", dir)
	if err != nil || !strings.Contains(out, "The sandbox is ready") || !strings.Contains(out, "sandbox env --dir "+dir) {
		t.Fatalf("up: %v\n%s", err, out)
	}
	out, err = tpuctl(t, "env", "--dir", dir)
	if err != nil || !strings.HasPrefix(out, "export TPU_GKE_ENDPOINT=http://127.0.0.1:") {
		t.Errorf("env: %v\n%s", err, out)
	}
	out, err = tpuctl(t, "up", "--dir", dir)
	pid, running := sandbox.Running(dir)
	if !running || code(err) != 1 || !strings.Contains(out, fmt.Sprintf("already runs in %s (process %d)", dir, pid)) {
		t.Errorf("up twice: %v\n%s", err, out)
	}
	out, err = tpuctl(t, "status", "--dir", dir)
	if err != nil || !strings.Contains(out, "No clusters yet") {
		t.Errorf("status: %v\n%s", err, out)
	}
	out, err = tpuctl(t, "down", "--dir", dir)
	if err != nil || !strings.Contains(out, "No process and no port is left") {
		t.Errorf("down: %v\n%s", err, out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
	for verb, want := range map[string]int{"status": 1, "env": 1, "down": 0} {
		if out, err := tpuctl(t, verb, "--dir", dir); code(err) != want {
			t.Errorf("%s without a sandbox: exit %d, want %d\n%s", verb, code(err), want, out)
		}
	}
}

func TestUpAfterAKillHasTheSameAddress(t *testing.T) {
	dir := box(t)
	if out, err := tpuctl(t, "up", "--dir", dir); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	before, err := sandbox.EnvironmentOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := sandbox.Running(dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // it is not our child: there is nothing to wait on but its lock
		if _, running := sandbox.Running(dir); !running {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("a killed sandbox holds its lock")
		}
	}
	if out, err := tpuctl(t, "status", "--dir", dir); code(err) != 1 {
		t.Errorf("status of a killed one: %v\n%s", err, out)
	}
	if out, err := tpuctl(t, "up", "--dir", dir); err != nil {
		t.Fatalf("up again: %v\n%s", err, out)
	}
	after, err := sandbox.EnvironmentOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the environment changed (-before +after):\n%s", diff)
	}
}

func TestForegroundStopsOnInterrupt(t *testing.T) {
	dir := box(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "sandbox", "up", "--foreground", "--dir", dir)
	cmd.Env = append(os.Environ(), asTpuctl+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it speaks when it is ready
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, running := sandbox.Running(dir); running {
		t.Error("it still runs")
	}
}

func TestUpThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	noPrograms(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := tpuctl(t, "up", "--dir", filepath.Join(file, "box"))
	if code(err) != 1 || !strings.Contains(out, "use another folder (--dir)") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d, want 1 with one line:\n%s", code(err), out)
	}
}

// A write that fails is the background process's to notice and up's to tell.
func TestUpWhereNothingCanBeWritten(t *testing.T) {
	noPrograms(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "box")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 0; exec "$0" sandbox up --dir "$1"`, self, dir)
	cmd.Env = append(os.Environ(), asTpuctl+"=1")
	out, err := cmd.CombinedOutput()
	if code(err) != 1 || !strings.Contains(string(out), "file too large") {
		t.Errorf("exit %d, want 1 and the cause:\n%s", code(err), out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was left behind", dir)
	}
}
