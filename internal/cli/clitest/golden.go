// Package clitest is what the tests of commands share. Nothing that ships
// imports it.
package clitest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with testdata/name, or writes it there with -update.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date (go test -update rewrites it):\n%s", path, diff)
	}
}

// Streams are buffers. A width above 0 makes them a terminal of that width.
func Streams(width int, color bool) (s *term.Streams, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &term.Streams{In: &bytes.Buffer{}, Out: out, Err: err, Width: width, Color: color}, out, err
}

// Run executes cmd as the root command does.
func Run(cmd *cobra.Command, args ...string) error {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	return cmd.ExecuteContext(context.Background())
}
