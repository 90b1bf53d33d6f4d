package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// errTimeout is the cause of a wait that took too long.
var errTimeout = errors.New("the --timeout has passed")

type waitOptions struct {
	oneJob
	format  output.Format
	level   string
	timeout time.Duration
}

func newWait(d Deps) *cobra.Command {
	o := &waitOptions{oneJob: oneJob{Deps: d}}
	cmd := &cobra.Command{
		Use:   "wait JOB",
		Short: "Wait until a training job has ended",
		Long: `Wait until a training job has ended, or is as far as --for says, and tell of each
change of its state on standard error. Ctrl-C ends the waiting, never the job.

Exit codes: 0 it succeeded (or is that far), 124 the timeout has passed, 125 it
ended without success, 1 anything else.`,
		Example: `  tpuctl wait train && echo done
  tpuctl wait research/train --for running --timeout 30m`,
	}
	cmd.Flags().StringVar(&o.level, "for", string(training.LevelCompleted), "admitted, running or completed")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after this long (never by default)")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(training.Levels[1:], cobra.ShellCompDirectiveNoFileComp))
	output.AddFlag(cmd, &o.format)
	o.add(cmd, o.run)
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if o.timeout == 0 {
			return inner(cmd, args)
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, errTimeout)
		defer cancel()
		cmd.SetContext(ctx)
		err := inner(cmd, args)
		var said *exit.CodeError
		if err != nil && errors.Is(context.Cause(ctx), errTimeout) && !errors.As(err, &said) { // it was not found by then
			return &exit.CodeError{Code: exit.TimedOut, Err: fmt.Errorf("%w (%s): looking for job %s: %w", errTimeout, o.timeout, args[0], err)}
		}
		return err
	}
	return cmd
}

// check refuses flags before the job is looked for.
func (o *waitOptions) check() error {
	levels := training.Levels[1:]
	switch {
	case !slices.Contains(levels, o.level):
		return exit.Usagef("--for: %q; want admitted, running or completed%s", o.level, near.Hint(o.level, levels))
	case o.timeout < 0:
		return exit.Usagef("--timeout: %s; want a duration above 0, such as 30m", o.timeout)
	}
	return nil
}

func (o *waitOptions) run(ctx context.Context, cluster Cluster, run training.Run) error {
	said := progress{w: o.Streams.Err}
	last, err := cluster.Wait(ctx, keyOf(run), training.Level(o.level), said.tell)
	if last.Name == "" { // not read a second time
		last = run
	}
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return &exit.CodeError{Code: exit.TimedOut, Err: fmt.Errorf("%w (%s): %s", errTimeout, o.timeout, standing(last))}
	}
	if err != nil && ctx.Err() != nil {
		return stopped(o.Streams, run, "waiting", "tpuctl wait "+pathOf(run)+" waits on")
	}
	if err != nil {
		return deletedMeanwhile(run, err)
	}
	v := output.View{Data: view(last, true), Names: []string{pathOf(last)}, Page: func(w io.Writer, _ bool) error {
		_, err := fmt.Fprintf(w, "%s is %s\n", pathOf(last), last.State)
		return err
	}}
	if err := output.Print(o.Streams, o.format, v); err != nil {
		return err
	}
	if last.Over() && last.State != training.Succeeded {
		return &exit.CodeError{Code: exit.Unsuccessful}
	}
	return nil
}

// standing is where a job is that was not waited for any longer.
func standing(r training.Run) string {
	text := fmt.Sprintf("job %s is %s", pathOf(r), r.State)
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	if r.State == training.Suspended {
		return text + fmt.Sprintf("; it does not go on until tpuctl resume %s", pathOf(r))
	}
	return text + "; it goes on"
}
