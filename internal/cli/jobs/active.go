package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type activeOptions struct {
	oneJob
	active bool
}

func newSuspend(d Deps) *cobra.Command {
	o := &activeOptions{oneJob: oneJob{Deps: d}}
	cmd := &cobra.Command{
		Use:   "suspend JOB",
		Short: "Suspend a training job: its pods end, its slices and quota are free",
		Long: `Suspend a training job. Its pods get SIGTERM and the grace period to save their
work, then its slices and quota are free for others. tpuctl resume lets it run
again: the program starts afresh with the RUN_ID, OUTPUT_DIR and ATTEMPT that it
had, and finds its checkpoints by them.`,
		Example: `  tpuctl suspend train`,
	}
	o.add(cmd, o.run)
	return cmd
}

func newResume(d Deps) *cobra.Command {
	o := &activeOptions{oneJob: oneJob{Deps: d}, active: true}
	cmd := &cobra.Command{
		Use:     "resume JOB",
		Short:   "Let a suspended training job run again",
		Long:    `Let a suspended training job run again: it waits in its queue for its turn.`,
		Example: `  tpuctl resume train`,
	}
	o.add(cmd, o.run)
	return cmd
}

func (o *activeOptions) run(ctx context.Context, cluster Cluster, run training.Run) error {
	byUser := run.State == training.Suspended && run.Reason == training.ReasonUserSuspended
	switch {
	case !o.active && byUser:
		fmt.Fprintf(o.Streams.Out, "%s is suspended already\n", pathOf(run))
		return nil
	case o.active && run.State != training.Suspended && !run.State.Finished():
		fmt.Fprintf(o.Streams.Out, "%s is not suspended: it is %s\n", pathOf(run), run.State)
		return nil
	}
	if o.active && run.State == training.Suspended && run.Reason == training.ReasonCancelled {
		return fmt.Errorf("job %s was cancelled, which is for good: tpuctl continue %s goes on with its run", pathOf(run), pathOf(run))
	}
	if err := cluster.SetActive(ctx, keyOf(run), o.active); err != nil {
		return err
	}
	what := "Suspended"
	if o.active {
		what = "Resumed"
	}
	fmt.Fprintf(o.Streams.Out, "%s %s\n", what, pathOf(run))
	return nil
}
