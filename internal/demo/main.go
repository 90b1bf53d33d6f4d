// Command demo is `make demo`: it does what a new user would do, with the same
// commands, and checks at each step that the world is what was promised. It
// builds the control plane, the provider and tpuctl, starts a sandbox, applies
// the quickstart, looks at it, plans again, destroys it, stops the sandbox, and
// verifies that nothing is left. It ends with the time each step took.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	cli   string // "terraform", "tofu", a path, or "" to choose
	keep  bool
	table bool
	root  string
}

func main() {
	var o options
	flag.StringVar(&o.cli, "cli", "", "command line to use: terraform, tofu (built if it is not on PATH), or a path; default: terraform if it is on PATH, else tofu")
	flag.BoolVar(&o.keep, "keep", false, "keep the working directory")
	flag.BoolVar(&o.table, "markdown", false, "end with the times as a Markdown table")
	flag.StringVar(&o.root, "root", ".", "the checkout")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "\n✗ %v\n", err)
		if ctx.Err() != nil {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	work, err := os.MkdirTemp("", "tpu-demo-")
	if err != nil {
		return fmt.Errorf("making a working directory: %w", err)
	}
	d := &demo{options: o, out: os.Stdout, work: work, bin: filepath.Join(o.root, "bin"), started: time.Now()}
	defer func() {
		err = errors.Join(err, d.cleanUp(err != nil))
	}()
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Build the provider and tpuctl", d.build},
		{"Build the control plane (cached after the first time)", d.buildControlPlane},
		{"Find Terraform or OpenTofu", d.findCLI},
		{"Start the sandbox", d.startSandbox},
		{"Init", d.init},
		{"Apply: cluster, slices, controllers, queue, job", d.apply},
		{"Check what the apply made", d.check},
		{"tpuctl list", d.list},
		{"tpuctl status train", d.status},
		{"Plan again: nothing to do", d.planEmpty},
		{"Destroy", d.destroy},
		{"Check that the fake GKE holds no object", d.checkEmpty},
		{"Stop the sandbox", d.stopSandbox},
		{"Check that no process and no port is left", d.checkNothingLeft},
	} {
		if err := d.step(ctx, s.name, s.do); err != nil {
			return err
		}
	}
	d.summary()
	return nil
}
