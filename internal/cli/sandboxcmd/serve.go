package sandboxcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// stopBound is how long the end of a sandbox may take; it takes about 2 s.
const stopBound = time.Minute

// newServe is the background half of up.
func newServe() *cobra.Command {
	var c settings
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "Be the sandbox: what `up` runs in the background",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := openReport()
			say := func(r report) error {
				defer out.Close()
				return json.NewEncoder(out).Encode(r)
			}
			ready := false
			err := serve(cmd.Context(), c.dir, c, func(s *sandbox.Sandbox) error {
				keepCrash(c.dir)
				ready = true
				return say(report{Endpoint: s.Endpoint()})
			})
			if err != nil && !ready {
				_ = say(report{Error: hint(err, c.dir).Error()})
			}
			if err != nil {
				return &exit.CodeError{Code: exit.Failure} // said already, or in the log
			}
			return nil
		},
	}
	c.addFlags(cmd)
	return cmd
}

// serve runs a sandbox until ctx ends. If nobody hears that it is ready, it
// stops too: whoever started it is gone.
func serve(ctx context.Context, dir string, c settings, ready func(*sandbox.Sandbox) error) error {
	s, err := sandbox.Start(ctx,
		sandbox.WithDir(dir),
		sandbox.WithPort(c.port),
		sandbox.WithLocation(c.project, c.zone),
		sandbox.WithJobDuration(c.jobDuration),
		sandbox.WithTimeScale(c.timeScale),
	)
	if err != nil {
		return err
	}
	if err := ready(s); err == nil {
		<-ctx.Done()
	}
	// A second Ctrl-C does not wait for the rest.
	signal.Reset(os.Interrupt)
	stop, cancel := context.WithTimeoutCause(context.Background(), stopBound, fmt.Errorf("it takes longer than %s", stopBound))
	defer cancel()
	return s.Stop(stop)
}

// keepCrash sends what the runtime says when this process crashes to a file in
// the sandbox's folder: it has no terminal to say it on.
func keepCrash(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "crash.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_ = debug.SetCrashOutput(f, debug.CrashOptions{})
	_ = f.Close() // the runtime has duplicated it
}
