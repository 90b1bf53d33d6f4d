package slices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

type recreate struct {
	streams *term.Streams
	target  target.Options
	yes     bool
	force   bool

	mu sync.Mutex // held while a line is written
}

func newRecreate(s *term.Streams) *cobra.Command {
	o := &recreate{streams: s}
	cmd := &cobra.Command{
		Use:   "recreate SLICE...",
		Short: "Delete slices and make them again as they were",
		Long: `Delete the node pools of slices and make them again as they were: same shape,
settings, labels and owner, so that the next Terraform plan has nothing to do.
This is for a slice that does not come back by itself, and works in state ERROR.

SLICE is the name of the slice's node pool, as tpuctl slices shows it. It must
belong to a tpu_slice_pool. A slice that runs a job is refused without --force.

Between the two the machines go back to Google: where capacity is scarce, the
slice may not come back soon. When the command is interrupted or killed, nothing
is lost: GKE goes on with what it was asked for, and the next terraform apply
makes what is missing.`,
		Example: `  tpuctl slices recreate v5e-1
  tpuctl slices recreate v5e-1 v5e-2 --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("name the slices to recreate, as tpuctl slices shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.force, "force", false, "also slices that run a job, which ends it there, or of which that is not known")
	o.target.AddFlags(cmd)
	return cmd
}

// doomed is a slice and what is known of it before it is deleted.
type doomed struct {
	pool *containerpb.NodePool
	jobs []string
}

func (o *recreate) run(ctx context.Context, names []string) error {
	client, cluster, err := target.Container(ctx, o.target)
	if err != nil {
		return err
	}
	slices.Sort(names)
	var all []doomed
	for _, name := range slices.Compact(names) {
		np, err := client.SliceNodePool(ctx, cluster, name)
		if err == nil {
			err = gke.MayRecreateSlice(cluster, np)
		}
		if err != nil {
			return err
		}
		all = append(all, doomed{pool: np})
	}
	if err := o.occupy(ctx, all); err != nil {
		return err
	}
	if err := o.confirm(ctx, cluster, all); err != nil {
		return err
	}
	errs := make([]error, len(all))
	var tasks sync.WaitGroup
	for i, d := range all {
		tasks.Go(func() { errs[i] = o.one(ctx, client, cluster, d.pool) })
	}
	tasks.Wait()
	return o.outcome(ctx, errs)
}

// occupy fills in what runs on the slices, and refuses busy ones.
func (o *recreate) occupy(ctx context.Context, all []doomed) error {
	uses, err := read(ctx, o.target)
	if err != nil {
		if o.force && ctx.Err() == nil {
			o.say("What runs on the slices is not known: %v\n", err)
			return nil
		}
		return fmt.Errorf("whether the slices run a job is not known, and nothing was done (--force recreates them all the same): %w", err)
	}
	var busy []string
	for i := range all {
		name := all[i].pool.GetName()
		for _, j := range uses[name].Jobs {
			all[i].jobs = append(all[i].jobs, j.String())
		}
		if len(all[i].jobs) > 0 {
			busy = append(busy, name+" runs "+strings.Join(all[i].jobs, ", "))
		}
	}
	if len(busy) > 0 && !o.force {
		return fmt.Errorf("recreating a slice ends what runs on it, and nothing was done:\n  %s\nWait for the end of the jobs, or give --force", strings.Join(busy, "\n  "))
	}
	return nil
}

// confirm shows what will be deleted, and asks.
func (o *recreate) confirm(ctx context.Context, cluster gke.ClusterName, all []doomed) error {
	o.say("On cluster %s, these slices are deleted and made again:\n", cluster)
	for _, d := range all {
		runs := "no job"
		if len(d.jobs) > 0 {
			runs = strings.Join(d.jobs, ", ")
		}
		o.say("  %s (%s) runs %s\n", d.pool.GetName(), d.pool.GetStatus(), runs)
	}
	if o.yes {
		return nil
	}
	o.say("Where capacity is scarce they may not come back soon. Go on? Only yes is taken: ")
	line, err := o.streams.Answer(ctx)
	if ctx.Err() != nil {
		o.say("\n")
		return &exit.CodeError{Code: exit.Interrupted, Err: errors.New("interrupted: nothing was done")}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if o.streams.Width == 0 || line == "" { // nobody pressed return at this terminal
		o.say("\n")
	}
	if strings.TrimSpace(line) != "yes" {
		return exit.Usagef("nothing was done: the answer was not yes (--yes does not ask)")
	}
	return nil
}

func (o *recreate) one(ctx context.Context, client *gke.Client, cluster gke.ClusterName, np *containerpb.NodePool) error {
	o.say("%s: deleting\n", np.GetName())
	err := client.RecreateSlice(ctx, cluster, np, func() { o.say("%s: deleted, making it again\n", np.GetName()) })
	if err == nil {
		o.say("%s: ready\n", np.GetName())
	}
	return err
}

// outcome says how it goes on from what went wrong.
func (o *recreate) outcome(ctx context.Context, errs []error) error {
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	const heals = "the next terraform apply of the slice pools makes what is missing"
	if ctx.Err() != nil {
		o.say("GKE goes on with what it was asked for, and %s.\n", heals)
		return err
	}
	return fmt.Errorf("%w\nNothing is lost: %s", err, heals)
}

func (o *recreate) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = fmt.Fprintf(o.streams.Err, format, args...)
}
