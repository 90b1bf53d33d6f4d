package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C in the middle of the main job ends it soon, with one clear message,
// and leaves no process and no folder behind. Phases that build are covered by
// the tests of what they build with.
func TestCtrlCLeavesNothing(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the demo: %v\n%s", err, out)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sign string
	}{
		{"while the sandbox starts", "▶ Start the sandbox"},
		{"while the cluster is made", "tpu_training_cluster.main: Creating..."},
		{"while the controllers are installed", "tpu_job_controllers.main: Creating..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			var out watched
			out.want, out.seen = c.sign, make(chan struct{})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, bin, "-root", root)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait() // its exit code is looked at below
				close(ended)
			}()
			select {
			case <-out.seen:
			case <-ended:
				t.Fatalf("ended (%v) before %q:\n%s", cmd.ProcessState, c.sign, out.buf.String())
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Fatal("still running 30 s after Ctrl-C")
			}
			t.Logf("ended %v after Ctrl-C", time.Since(began).Round(time.Millisecond))
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
			if text := out.buf.String(); !strings.Contains(text, "✗ interrupted during") || strings.Contains(text, "panic") {
				t.Errorf("no clear end:\n%s", text)
			}
			if left, err := processesUnder(temp); err != nil || len(left) > 0 {
				t.Errorf("still running: %v %v", left, err)
			}
			if left, err := filepath.Glob(filepath.Join(temp, "tpu-demo-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// watched collects output and says when it first holds a text. Only the
// command's one copying goroutine writes to it, and it is read after the end.
type watched struct {
	buf  bytes.Buffer
	want string
	seen chan struct{}
	done bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.want) {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}
