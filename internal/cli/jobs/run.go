package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
	"github.com/tpu-training/terraform-provider-tpu/internal/training/logs"
)

type runOptions struct{ submission }

func newRun(d Deps) *cobra.Command {
	o := &runOptions{submission{Deps: d}}
	o.then = o.follow
	cmd := &cobra.Command{
		Use:   "run [NAME] --accelerator SLICE --image IMAGE [flags] [-- COMMAND...]",
		Short: "Submit a training job, print its logs, and end as it does",
		Long: `Submit a training job as tpuctl submit does, print what its hosts print until it
has ended, and end with its result. A job that is there already is followed.
Ctrl-C ends the following, never the job.

Exit codes: 0 it succeeded; else the exit code of the host that failed first, or
125 where none is known; 1 anything else.`,
		Example: `  tpuctl run smoke --accelerator v5litepod-16 --image python:3.13 -- python -c 'print(1)'
  tpuctl run -f job.yaml --set steps=10`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.start(cmd, args, o.submission.run) },
	}
	o.add(cmd)
	o.addJobFile(cmd)
	o.addTaken(cmd)
	o.addDryRun(cmd)
	return cmd
}

// follow prints the logs of the job, and ends as it does.
func (o *runOptions) follow(ctx context.Context, cluster Cluster, spec training.Spec, what string) error {
	path := spec.Namespace + "/" + spec.Name
	fmt.Fprintln(o.Streams.Err, o.submittedLine(what, spec))
	if console := cluster.Console(spec.Namespace, spec.Name); console != "" {
		fmt.Fprintln(o.Streams.Err, "Its logs in the console: "+console)
	}
	run, err := cluster.Get(ctx, spec.Namespace, spec.Name)
	switch {
	case err != nil && ctx.Err() != nil:
		return stoppedReading(o.Streams, training.Run{Namespace: spec.Namespace, Name: spec.Name})
	case err != nil:
		return fmt.Errorf("job %s is submitted, but reading it back failed: %w", path, err)
	}
	p := newLinePrinter(o.Streams, run)
	said := progress{w: o.Streams.Err}
	last, err := cluster.FollowLogs(ctx, run, logs.Options{Tail: logs.All, Note: func(s string) { fmt.Fprintln(o.Streams.Err, s) }}, p.print, said.tell)
	switch {
	case err != nil && ctx.Err() != nil:
		return stoppedReading(o.Streams, run)
	case errors.As(err, new(*training.NotFoundError)):
		return deletedMeanwhile(run, err)
	case err != nil:
		return fmt.Errorf("following job %s, which goes on without it: %w", path, err)
	case last.State == training.Succeeded:
		return nil
	}
	if f := last.Failure; f != nil {
		fmt.Fprintf(o.Streams.Err, "%s\n", f)
		if f.ExitCode > 0 {
			return &exit.CodeError{Code: f.ExitCode}
		}
	}
	return &exit.CodeError{Code: exit.Unsuccessful}
}
