package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// stopBound is how long the clean-up after a failure or Ctrl-C may take.
const stopBound = 2 * time.Minute

type demo struct {
	options
	out     io.Writer
	work    string // temporary directory of this run
	bin     string // where the built binaries are
	started time.Time
	steps   []timedStep

	sandboxUp bool
	processes []int // what the sandbox ran, to see that it is gone
	env       map[string]string
	tf        *tfrun.Dir
}

type timedStep struct {
	name string
	took time.Duration
}

func (d *demo) step(ctx context.Context, name string, do func(context.Context) error) error {
	fmt.Fprintf(d.out, "\n▶ %s\n", name)
	start := time.Now()
	if err := do(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted during %q", name)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(start)
	d.steps = append(d.steps, timedStep{name, took})
	fmt.Fprintf(d.out, "✓ %s (%s)\n", name, seconds(took))
	return nil
}

func (d *demo) tool(name string) string { return filepath.Join(d.bin, name) }

// command runs one of our own binaries or go. Ctrl-C reaches it as one
// interrupt from us.
func (d *demo) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := (&tfrun.Dir{CLI: name}).Command(ctx, args...)
	cmd.Dir = d.root
	for k, v := range d.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

func (d *demo) stream(ctx context.Context, name string, args ...string) error {
	fmt.Fprintf(d.out, "$ %s %s\n", filepath.Base(name), strings.Join(args, " "))
	cmd := d.command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = d.out, d.out
	return cmd.Run()
}

func (d *demo) read(ctx context.Context, name string, args ...string) (string, error) {
	cmd := d.command(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

func (d *demo) build(ctx context.Context) error {
	return d.stream(ctx, "make", "--no-print-directory", "build")
}

func (d *demo) buildControlPlane(ctx context.Context) error {
	return d.stream(ctx, d.tool("tpuctl"), "sandbox", "build")
}

func (d *demo) findCLI(ctx context.Context) error {
	cli := d.cli
	if cli == "" {
		cli = tfrun.FindCLI()
	}
	if path, err := exec.LookPath(cli); cli != "" && err == nil {
		cli = path
	} else if cli == "" || cli == "tofu" {
		fmt.Fprintln(d.out, "Building OpenTofu from its pinned module (once).")
		if err := d.stream(ctx, d.tool("tpuctl"), "sandbox", "build", "--opentofu"); err != nil {
			return err
		}
		if cli, err = d.read(ctx, d.tool("tpuctl"), "sandbox", "build", "--opentofu", "-o", "name"); err != nil {
			return err
		}
	} else {
		return err
	}
	var err error
	if d.tf, err = tfrun.New(filepath.Join(d.work, "quickstart"), filepath.Join(d.root, "examples", "quickstart"), cli, d.tool("terraform-provider-tpu")); err != nil {
		return err
	}
	version, err := d.tf.Output(ctx, "version")
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out, strings.SplitN(version, "\n", 2)[0])
	return nil
}

func (d *demo) sandboxDir() string { return filepath.Join(d.work, "sandbox") }

func (d *demo) startSandbox(ctx context.Context) error {
	d.sandboxUp = true // also a start that fails half-way is stopped
	if err := d.stream(ctx, d.tool("tpuctl"), "sandbox", "up", "--dir", d.sandboxDir()); err != nil {
		return err
	}
	env, err := d.read(ctx, d.tool("tpuctl"), "sandbox", "env", "--dir", d.sandboxDir(), "-o", "json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(env), &d.env); err != nil {
		return fmt.Errorf("reading the sandbox's environment: %w", err)
	}
	for k, v := range d.env {
		d.tf.Env = append(d.tf.Env, k+"="+v)
	}
	d.tf.Env = append(d.tf.Env, "TF_VAR_project="+d.env["GOOGLE_PROJECT"], "TF_VAR_zone="+d.env["GOOGLE_ZONE"])
	return nil
}

func (d *demo) terraform(ctx context.Context, args ...string) error {
	fmt.Fprintf(d.out, "$ %s %s\n", filepath.Base(d.tf.CLI), strings.Join(args, " "))
	return d.tf.Run(ctx, d.out, args...)
}

func (d *demo) init(ctx context.Context) error {
	return d.terraform(ctx, "init", "-no-color")
}

func (d *demo) apply(ctx context.Context) error {
	return d.terraform(ctx, "apply", "-auto-approve", "-no-color")
}

func (d *demo) list(ctx context.Context) error {
	return d.stream(ctx, d.tool("tpuctl"), "list")
}

func (d *demo) status(ctx context.Context) error {
	return d.stream(ctx, d.tool("tpuctl"), "status", "train", "--namespace", "research")
}

func (d *demo) planEmpty(ctx context.Context) error {
	err := d.terraform(ctx, "plan", "-detailed-exitcode", "-no-color")
	if tfrun.ExitCode(errors.Unwrap(err)) == 2 {
		return errors.New("the second plan is not empty")
	}
	return err
}

func (d *demo) destroy(ctx context.Context) error {
	return d.terraform(ctx, "destroy", "-auto-approve", "-no-color")
}

func (d *demo) stopSandbox(ctx context.Context) error {
	var err error
	if d.processes, err = d.sandboxProcesses(ctx); err != nil {
		return err
	}
	if err := d.stream(ctx, d.tool("tpuctl"), "sandbox", "down", "--dir", d.sandboxDir()); err != nil {
		return err
	}
	d.sandboxUp = false
	return nil
}

// cleanUp leaves nothing behind, whatever happened before.
func (d *demo) cleanUp(failed bool) error {
	if d.sandboxUp {
		ctx, cancel := context.WithTimeout(context.Background(), stopBound)
		defer cancel()
		fmt.Fprintln(d.out, "\nStopping the sandbox.")
		if out, err := d.read(ctx, d.tool("tpuctl"), "sandbox", "down", "--dir", d.sandboxDir()); err != nil {
			return fmt.Errorf("stopping the sandbox: %w", err)
		} else {
			fmt.Fprintln(d.out, out)
		}
	}
	if d.keep {
		fmt.Fprintf(d.out, "Kept %s\n", d.work)
		return nil
	}
	return os.RemoveAll(d.work)
}
