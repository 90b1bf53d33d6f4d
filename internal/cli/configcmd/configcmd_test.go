package configcmd

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
)

const path = "projects/p/locations/us-west4-a/clusters/"

// at points the commands at a file of the test's own.
func at(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deep", "config.yaml")
	t.Setenv(contexts.Variable, file)
	return file
}

func config(line string) (string, error) {
	s, out, _ := clitest.Streams(0, false)
	err := clitest.Run(New(s), strings.Fields(line)...)
	return out.String(), err
}

// The life of the file, command by command.
func TestContexts(t *testing.T) {
	file := at(t)
	golden := map[string]string{}
	for _, step := range []struct{ line, golden string }{
		{"list", ""},
		{"set lab --cluster " + path + "lab", ""},
		{"set other --cluster other --project p --location us-west4", ""},
		{"set kind --kube-context kind-kind --kubeconfig /tmp/kc --namespace research --alias lr=--config.lr --alias seed=env:SEED --alias b=--batch", ""},
		{"set kind --alias b= --alias lr=--config.training.lr", ""},
		{"list", "list.txt"},
		{"list -o json", "list.json"},
		{"list -o name", "list-name.txt"},
		{"get", "get.txt"},
		{"get kind -o yaml", "get.yaml"},
		{"use other", ""},
		{"get -o name", "get-name.txt"},
		{"set other --location us-east5-a", ""},
		{"delete lab", ""},
		{"list", "list-after.txt"},
		{"use --none", ""},
	} {
		out, err := config(step.line)
		if err != nil {
			t.Fatalf("config %s: %v", step.line, err)
		}
		if step.golden != "" {
			golden[step.golden] = out
		}
	}
	for name, out := range golden {
		clitest.Golden(t, name, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != 0o600 {
		t.Errorf("the file's mode is %o", mode)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".config-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestWrongContexts(t *testing.T) {
	file := at(t)
	if _, err := config("set lab --cluster " + path + "lab"); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"set":                                "want the name of one context",
		"set a b --project p":                "want the name of one context; 2 were given",
		"set -x --project p":                 "unknown shorthand flag",
		"set a/b --project p":                `"a/b" is no name for a context`,
		"set new":                            "a context says where a cluster is",
		"set new --cluster c":                "give its whole path projects/P/locations/L/clusters/c, or --project too",
		"set new --cluster projects/p/c":     "is not a cluster path",
		"set lab --kube-context kind":        "--cluster and --kube-context both name a cluster",
		"set new --project p --kubeconfig f": "--kubeconfig is read with --kube-context only",
		"get nope":                           `there is no context "nope" in ` + file + "; it has lab",
		"use nope":                           "it has lab",
		"set lab --alias lr":                 `--alias: "lr"; want NAME=ARGUMENT`,
		"set lab --alias lr=":                "there is no alias \"lr\" to take out",
		"set lab --alias lr=a=b":             `"lr" stands for "a=b"; want an argument`,
		"use lba":                            "did you mean lab?",
		"set lab --namespace A_b":            `"A_b" is no name for a namespace`,
		"delete nope":                        "it has lab",
	} {
		_, err := config(line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("config %s: %v, want %q", line, err, want)
		}
	}
	if _, err := config("get nope"); exit.Code(err) != exit.Usage {
		t.Errorf("exit code %d", exit.Code(err))
	}
	if err := os.WriteFile(file, []byte("contexts: {lab: {clusterr: x}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"list", "get lab", "set lab --cluster " + path + "lab"} {
		if _, err := config(line); err == nil || !strings.Contains(err.Error(), "reading tpuctl's configuration "+file) || !strings.Contains(err.Error(), "clusterr") {
			t.Errorf("config %s of a broken file: %v", line, err)
		}
	}
}

// Of many changes at a time none is lost.
func TestChangesAtATime(t *testing.T) {
	at(t)
	var tasks sync.WaitGroup
	for i := range 20 {
		tasks.Go(func() {
			if _, err := config(fmt.Sprintf("set c%d --project p", i)); err != nil {
				t.Error(err)
			}
		})
	}
	tasks.Wait()
	out, err := config("list -o name")
	if err != nil || strings.Count(out, "\n") != 20 {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestComplete(t *testing.T) {
	at(t)
	if names, _ := complete(&cobra.Command{}, nil, ""); len(names) != 0 {
		t.Errorf("without a file: %v", names)
	}
	if _, err := config("set lab --project p"); err != nil {
		t.Fatal(err)
	}
	if names, _ := complete(&cobra.Command{}, nil, ""); len(names) != 1 || names[0] != "lab" {
		t.Errorf("%v", names)
	}
}
