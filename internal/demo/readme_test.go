package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The README's "Play with it" works as it stands: its block is run in a copy
// of the checkout, answering yes where Terraform asks.
func TestReadmeStepsWork(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "## Play with it")
	_, rest, _ = strings.Cut(rest, "```sh\n")
	steps, _, found := strings.Cut(rest, "```")
	if !found || !strings.Contains(steps, "terraform apply") {
		t.Fatalf("no steps in the README's \"Play with it\":\n%s", steps)
	}
	dir := t.TempDir()
	checkout := filepath.Join(dir, "checkout")
	copyTree(t, "../..", checkout)
	if cli := os.Getenv("TF_ACC_TERRAFORM_PATH"); cli != "" {
		steps = strings.ReplaceAll(steps, "terraform ", cli+" ")
	}
	rc := filepath.Join(dir, "terraformrc")
	if err := os.WriteFile(rc, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sandbox := filepath.Join(dir, "sandbox")
	env := append(os.Environ(), "TPU_SANDBOX_DIR="+sandbox, "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1")
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(checkout, "bin", "tpuctl"), "sandbox", "down")
		down.Env = env
		if out, err := down.CombinedOutput(); err != nil && !strings.Contains(string(out), "nothing to stop") {
			t.Logf("%v: %s", err, out)
		}
	})
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", steps)
	cmd.Dir = checkout
	cmd.Env = env
	cmd.Stdin = yes{}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{"Apply complete! Resources: 7 added", "research/train", "Destroy complete! Resources: 7 destroyed"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if left, err := processesUnder(dir); err != nil || len(left) > 0 {
		t.Errorf("still running: %v %v", left, err)
	}
}

// yes answers yes for ever: a program reads ahead of what it needs.
type yes struct{}

func (yes) Read(p []byte) (int, error) { return copy(p, "yes\n"), nil }

// copyTree copies what git tracks.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		t.Fatalf("listing the checkout's files: %v", err)
	}
	for _, name := range strings.Split(string(bytes.TrimRight(names, "\x00")), "\x00") {
		b, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if info, err := os.Stat(filepath.Join(from, name)); err == nil && info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		if err := os.WriteFile(path, b, mode); err != nil {
			t.Fatal(err)
		}
	}
}
