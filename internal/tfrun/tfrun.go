// Package tfrun is a working directory of Terraform or OpenTofu with a built
// provider in it, driven as a user would: the real command line, no registry,
// no network. The demo and the tests of whole processes share it. It knows
// nothing of what is configured.
package tfrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Version is the version under which a built provider is installed.
const Version = "0.1.0"

// Source is the provider's address, with the host spelled out so that
// OpenTofu looks in the same place.
const Source = "registry.terraform.io/tpu-training/tpu"

// interruptPatience is how long an interrupted command may take to save its
// state before it is killed.
const interruptPatience = 90 * time.Second

// Dir is one working directory.
type Dir struct {
	Path string   // the root module
	CLI  string   // the terraform or tofu binary
	Env  []string // added to the environment, KEY=VALUE
}

// New makes path a working directory: it copies the *.tf files of module into
// it (module may be "") and installs the provider binary beside them.
func New(path, module, cli, providerBinary string) (*Dir, error) {
	plugins := filepath.Join(path, "terraform.d", "plugins", filepath.FromSlash(Source), Version, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		return nil, fmt.Errorf("making a working directory: %w", err)
	}
	name := "terraform-provider-tpu_v" + Version
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := link(providerBinary, filepath.Join(plugins, name)); err != nil {
		return nil, fmt.Errorf("installing the provider: %w", err)
	}
	// The user's own CLI configuration must not decide which provider runs.
	if err := os.WriteFile(filepath.Join(path, "terraformrc"), nil, 0o600); err != nil {
		return nil, fmt.Errorf("making a working directory: %w", err)
	}
	d := &Dir{Path: path, CLI: cli}
	if module == "" {
		return d, nil
	}
	files, err := filepath.Glob(filepath.Join(module, "*.tf"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no *.tf files in %s", module)
	}
	for _, f := range files {
		if err := copyFile(f, filepath.Join(path, filepath.Base(f)), 0o644); err != nil {
			return nil, fmt.Errorf("copying the configuration: %w", err)
		}
	}
	return d, nil
}

// Write puts a configuration file into the directory.
func (d *Dir) Write(name, content string) error {
	return os.WriteFile(filepath.Join(d.Path, name), []byte(content), 0o644)
}

// Command prepares a command in the directory. When ctx ends the command is
// interrupted once, as by Ctrl-C, and killed if it does not stop in time. It
// does not share the terminal's process group, so that one Ctrl-C of the user
// does not reach it twice.
func (d *Dir) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.CLI, args...)
	cmd.Dir = d.Path
	cmd.Env = append(os.Environ(),
		"TF_CLI_CONFIG_FILE="+filepath.Join(d.Path, "terraformrc"),
		"TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1",
		"TF_PLUGIN_CACHE_DIR=", "TF_DATA_DIR=", "TF_WORKSPACE=")
	cmd.Env = append(cmd.Env, d.Env...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptPatience
	return cmd
}

// Run runs a command and streams what it prints to out. The error of a
// command that failed carries the last lines of its standard error.
func (d *Dir) Run(ctx context.Context, out io.Writer, args ...string) error {
	cmd := d.Command(ctx, args...)
	var tail bytes.Buffer
	cmd.Stdout = out
	cmd.Stderr = io.MultiWriter(out, &tail)
	return d.explain(ctx, cmd.Run(), tail.String(), args)
}

// Output runs a command and returns what it printed on standard output.
func (d *Dir) Output(ctx context.Context, args ...string) (string, error) {
	cmd := d.Command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := d.explain(ctx, cmd.Run(), stderr.String(), args)
	return stdout.String(), err
}

func (d *Dir) explain(ctx context.Context, err error, stderr string, args []string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s was interrupted: %w", filepath.Base(d.CLI), args[0], context.Cause(ctx))
	}
	const keep = 2000
	if len(stderr) > keep {
		stderr = "..." + stderr[len(stderr)-keep:]
	}
	return fmt.Errorf("%s %s: %w\n%s", filepath.Base(d.CLI), strings.Join(args, " "), err, strings.TrimSpace(stderr))
}

// ExitCode returns the exit code that err carries, 0 for nil, -1 for anything
// else.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// FindCLI returns the command line to use: the one that
// TF_ACC_TERRAFORM_PATH names, else terraform or tofu on PATH, else "".
func FindCLI() string {
	if p := os.Getenv("TF_ACC_TERRAFORM_PATH"); p != "" {
		return p
	}
	for _, name := range []string{"terraform", "tofu"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return ""
}

func link(from, to string) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to, 0o755) // another file system
}

func copyFile(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, mode)
}
