package sandboxcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// settings are what a sandbox is started with: the flags that up hands on to
// serve.
type settings struct {
	dir         string
	port        int
	project     string
	zone        string
	jobDuration time.Duration
	timeScale   float64
}

func (c *settings) addFlags(cmd *cobra.Command) {
	addDir(cmd, &c.dir)
	f := cmd.Flags()
	f.IntVar(&c.port, "port", 0, "port of the GKE API on 127.0.0.1 (default: a free one)")
	f.StringVar(&c.project, "project", sandbox.DefaultProject, "project that the environment names; any project works")
	f.StringVar(&c.zone, "zone", sandbox.DefaultZone, "zone that the environment names; any zone works")
	f.DurationVar(&c.jobDuration, "job-duration", 5*time.Second, "how long a job runs on its simulated hosts")
	f.Float64Var(&c.timeScale, "time-scale", 0.0002, "pace of GKE's operations: 1 is GKE's own (a node pool takes 2.5 minutes), 0 is as fast as it goes")
}

// check refuses what cannot work before anything is done.
func (c *settings) check() error {
	switch {
	case c.port < 0 || c.port > 65535:
		return exit.Usagef("--port=%d: a port is between 1 and 65535, or 0 for a free one", c.port)
	case c.jobDuration <= 0:
		return exit.Usagef("--job-duration=%s: a job runs for some time, such as 5s", c.jobDuration)
	case c.timeScale < 0:
		return exit.Usagef("--time-scale=%g: want 0 or more", c.timeScale)
	case c.project == "" || c.zone == "":
		return exit.Usagef("--project and --zone must not be empty")
	}
	return nil
}

// args are the flags for serve.
func (c *settings) args(dir string) []string {
	return []string{
		"--dir=" + dir,
		"--port=" + strconv.Itoa(c.port),
		"--project=" + c.project,
		"--zone=" + c.zone,
		"--job-duration=" + c.jobDuration.String(),
		"--time-scale=" + strconv.FormatFloat(c.timeScale, 'g', -1, 64),
	}
}

type upOptions struct {
	settings
	streams    *term.Streams
	foreground bool
}

func newUp(s *term.Streams) *cobra.Command {
	o := &upOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a sandbox, and build its control plane if that was not done before",
		Long: `Start a sandbox in the background and return when it is ready. Clusters that it
had when it last stopped ('down --keep'), or when it was killed, are started
again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.foreground, "foreground", false, "stay, and stop the sandbox on Ctrl-C (its state is kept)")
	return cmd
}

func (o *upOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := process.Supported(); err != nil { // before minutes of building
		return err
	}
	dir, err := folder(o.dir)
	if err != nil {
		return err
	}
	if pid, running := sandbox.Running(dir); running {
		return hint(&sandbox.RunningError{Dir: dir, Pid: pid}, o.dir)
	}
	if _, err := binaries.ControlPlane(ctx, binaries.NewProgress(o.streams.Err)); err != nil {
		return err
	}
	began := time.Now()
	if o.foreground {
		err := serve(ctx, dir, o.settings, func(s *sandbox.Sandbox) error {
			o.ready(dir, s.Endpoint(), time.Since(began))
			fmt.Fprintln(o.streams.Out, "\nCtrl-C stops it and keeps its state.")
			return nil
		})
		return hint(err, o.dir)
	}
	endpoint, err := detach(ctx, o.args(dir))
	if err != nil {
		return err
	}
	o.ready(dir, endpoint, time.Since(began))
	return nil
}

// ready says how to use the sandbox.
func (o *upOptions) ready(dir, endpoint string, took time.Duration) {
	say := func(format string, args ...any) { fmt.Fprintf(o.streams.Out, format+"\n", args...) }
	say("%s The sandbox is ready (%s).", o.streams.Paint(term.Good, "✓"), took.Round(100*time.Millisecond))
	say("")
	say("  GKE API   %s", endpoint)
	say("  folder    %s", dir)
	say("")
	say("Point this shell's Terraform, tpuctl and kubectl at it:")
	say("  eval \"$(%s)\"", command("env", o.dir))
	say("")
	chdir := ""
	if isCheckout(".") {
		chdir = " -chdir=" + quickstart
		say("Then, here in the checkout:")
		say("  make install        # the provider, beside the configuration")
	} else {
		say("Then, in a folder with a configuration such as %s, with the provider installed", quickstart)
		say("(`make install DIR=...` in a checkout puts it there):")
	}
	say("  terraform%s init", chdir)
	say("  terraform%s apply -var project=%s -var zone=%s", chdir, o.project, o.zone)
	say("  %s list", program())
	say("  kubectl get nodes   # after the eval above once more: KUBECONFIG is set when a cluster exists")
	say("")
	say("Look at it:  %s", command("status", o.dir))
	say("End it:      %s", command("down", o.dir))
}

// quickstart is the configuration that a checkout brings along.
const quickstart = "examples/quickstart"

// isCheckout tells whether dir is this project's source.
func isCheckout(dir string) bool {
	for _, file := range []string{"GNUmakefile", filepath.Join("cmd", "tpuctl", "main.go"), filepath.Join(quickstart, "main.tf")} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			return false
		}
	}
	return true
}

// report is what the background process tells the one that waits for it.
type report struct {
	Endpoint string `json:"endpoint,omitempty"`
	Error    string `json:"error,omitempty"`
}

// reportFD is the descriptor on which serve reports: the first after the
// standard three.
const reportFD = 3

func openReport() io.WriteCloser { return os.NewFile(reportFD, "report") }
