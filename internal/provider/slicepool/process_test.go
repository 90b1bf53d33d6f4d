package slicepool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// terraformBlock says where the provider comes from.
const terraformBlock = "terraform {\n  required_providers {\n    tpu = { source = \"" + tfrun.Source + "\" }\n  }\n}\n"

// workspace is the real command line with the built provider, against the
// in-process fake: what interrupts or kills a provider needs a process of its
// own.
func workspace(t *testing.T, g *acctest.GKE, config string) *tfrun.Dir {
	t.Helper()
	cli := tfrun.FindCLI()
	if cli == "" {
		t.Fatal("neither terraform nor tofu is on PATH")
	}
	d, err := tfrun.New(filepath.Join(t.TempDir(), "module"), "", cli, acctest.ProviderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write("main.tf", terraformBlock+config); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Output(t.Context(), "init", "-no-color"); err != nil {
		t.Fatal(err)
	}
	return d
}

// until polls a condition of the fake; it fails the test after a minute.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// poolState reads the pool's attributes out of the state file.
func poolState(t *testing.T, d *tfrun.Dir) (attrs map[string]any, tainted bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.Path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Resources []struct {
			Type      string
			Instances []struct {
				Status     string
				Attributes map[string]any
			}
		}
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Resources {
		if r.Type == "tpu_slice_pool" {
			return r.Instances[0].Attributes, r.Instances[0].Status == "tainted"
		}
	}
	return nil, false
}

// privateState is what the provider keeps for itself with the pool: base64 of
// JSON, in which each value is base64 again.
func privateState(t *testing.T, d *tfrun.Dir) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.Path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Resources []struct {
			Type      string
			Instances []struct{ Private []byte }
		}
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Resources {
		if r.Type == "tpu_slice_pool" {
			var values map[string][]byte
			if err := json.Unmarshal(r.Instances[0].Private, &values); err != nil {
				t.Fatal(err)
			}
			return string(values["operations"])
		}
	}
	return ""
}

// An interrupt in the middle of creation returns within two seconds, keeps
// what is known without a taint, and the next apply goes on: no duplicates.
func TestInterruptResumes(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t, fakegke.WithTimeScale(1.0/75)) // a node pool takes 2 s
	d := workspace(t, g, g.Config("interrupt", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 3")))
	if _, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color", "-target=tpu_training_cluster.main"); err != nil {
		t.Fatal(err)
	}
	cmd := d.Command(context.Background(), "apply", "-auto-approve", "-no-color")
	var out acctest.Output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first node pools", func() bool { return g.Calls()["CreateNodePool"] >= 3 })
	begin := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the interrupt took %s", took)
	}
	attrs, tainted := poolState(t, d)
	if attrs == nil || tainted || attrs["status"] != "PROVISIONING" || len(attrs["slices"].(map[string]any)) != 3 {
		t.Fatalf("after the interrupt: tainted %v, state %v\n%s", tainted, attrs, out.String())
	}
	if !strings.Contains(privateState(t, d), `"v5e-2":"operation-`) {
		t.Errorf("the operations are not remembered: %s", privateState(t, d))
	}
	if _, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatal(err)
	}
	if attrs, _ := poolState(t, d); attrs["status"] != "READY" || attrs["ready_slices"] != 3.0 {
		t.Errorf("after the second apply: %v", attrs)
	}
	if n := g.Calls()["CreateNodePool"]; n != 3 {
		t.Errorf("%d creates, want 3", n)
	}
	if out, err := d.Output(t.Context(), "plan", "-detailed-exitcode", "-no-color"); err != nil {
		t.Errorf("the next plan is not empty: %v\n%s", err, out)
	}
}

// kill -9 of the provider in mid-create loses the state of every pool in
// flight: the next apply finds them by owner and specification.
func TestKilledCreateIsAdopted(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t, fakegke.WithTimeScale(1.0/75))
	d := workspace(t, g, g.Config("kill", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 3")))
	if _, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color", "-target=tpu_training_cluster.main"); err != nil {
		t.Fatal(err)
	}
	cmd := d.Command(context.Background(), "apply", "-auto-approve", "-no-color")
	var out acctest.Output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first node pools", func() bool { return g.Calls()["CreateNodePool"] >= 2 })
	kill(t, cmd.Process.Pid)
	if err := cmd.Wait(); err == nil {
		t.Fatal("the apply did not notice that its provider was killed")
	}
	if attrs, _ := poolState(t, d); attrs != nil {
		t.Fatalf("there is a state: %v", attrs)
	}
	text, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "takes over") {
		t.Errorf("no warning about the adoption:\n%s", text)
	}
	if attrs, _ := poolState(t, d); attrs["status"] != "READY" || attrs["ready_slices"] != 3.0 {
		t.Errorf("after the second apply: %v", attrs)
	}
	if err := has(t, g, "v5e-0", "v5e-1", "v5e-2")(nil); err != nil {
		t.Error(err)
	}
	if out, err := d.Output(t.Context(), "plan", "-detailed-exitcode", "-no-color"); err != nil {
		t.Errorf("the next plan is not empty: %v\n%s", err, out)
	}
}

// kill ends the provider that is a child of the command line at pid, as the
// kernel's out-of-memory killer would.
func kill(t *testing.T, pid int) {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=,comm=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(errors.New("listing the children of the command line: " + err.Error()))
	}
	for line := range bytes.Lines(out) {
		fields := bytes.Fields(line)
		if len(fields) == 2 && bytes.HasPrefix(fields[1], []byte("terraform-provi")) {
			child, _ := strconv.Atoi(string(fields[0]))
			p, _ := os.FindProcess(child)
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("the command line has no provider among its children:\n%s", out)
}
