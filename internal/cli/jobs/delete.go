package jobs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type deleteOptions struct {
	Deps
	target    target.Options
	namespace string
	states    []string
	labels    []string
	yes       bool
}

// atOnce is how many jobs are deleted at a time.
const atOnce = 8

func newDelete(d Deps) *cobra.Command {
	o := &deleteOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "delete [JOB...]",
		Aliases: []string{"rm"},
		Short:   "Delete training jobs, by name, state or label",
		Long: `Delete training jobs, and return when their pods have ended and their slices and
quota are free. Jobs are named, or chosen by --state and --label, which must all
fit. A job that has not ended is asked about first; --yes does not ask.

What the job wrote is not touched. Of a job that Terraform manages, the next plan
says that it is gone.`,
		Example: `  tpuctl delete train
  tpuctl delete -n research --state Failed,Succeeded
  tpuctl delete --label sweep=lr --yes`,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeJobs(cmd, d, o.target, o.namespace)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "only in this namespace (all by default)")
	f.StringSliceVar(&o.states, "state", nil, "those in one of these states: "+states())
	f.StringArrayVarP(&o.labels, "label", "l", nil, "KEY=VALUE: those with this label")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(strings.Split(states(), ", "), cobra.ShellCompDirectiveNoFileComp))
	o.target.AddFlags(cmd)
	completeNames(cmd, &o.target)
	return cmd
}

func (o *deleteOptions) run(ctx context.Context, names []string) error {
	wanted, err := parseStates(o.states)
	if err != nil {
		return err
	}
	var problems []string
	labels := pairs("--label", o.labels, func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) })
	chosen := len(wanted) > 0 || len(labels) > 0
	switch {
	case len(problems) > 0:
		return exit.Usagef("%s", strings.Join(problems, "\n"))
	case len(names) > 0 && chosen:
		return exit.Usagef("jobs are either named or chosen by --state and --label: give one of them")
	case len(names) == 0 && !chosen:
		return exit.Usagef("name the jobs to delete, or choose them by --state or --label")
	}
	cluster, err := o.Open(ctx, o.target)
	if err != nil {
		return err
	}
	var doomed []training.Run
	for _, name := range names {
		run, err := find(ctx, cluster, o.namespace, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(doomed, func(r training.Run) bool { return r.UID == run.UID }) {
			doomed = append(doomed, run)
		}
	}
	if chosen {
		all, err := cluster.Select(ctx, training.Query{Namespace: o.namespace, Labels: labels})
		if err != nil {
			return err
		}
		for _, r := range all.Runs {
			if len(wanted) == 0 || slices.Contains(wanted, r.State) {
				doomed = append(doomed, r)
			}
		}
		if len(doomed) == 0 {
			fmt.Fprintln(o.Streams.Out, "No such job: nothing was deleted.")
			return nil
		}
	}
	if err := o.confirm(doomed); err != nil {
		return err
	}
	return o.remove(ctx, cluster, doomed)
}

// confirm asks about jobs that have not ended.
func (o *deleteOptions) confirm(doomed []training.Run) error {
	var alive []string
	for _, r := range doomed {
		if !r.State.Finished() {
			alive = append(alive, fmt.Sprintf("  %s  %s, %s", pathOf(r), r.State, shape(r)))
		}
	}
	if o.yes || len(alive) == 0 {
		return nil
	}
	ended := ""
	if n := len(doomed) - len(alive); n > 0 {
		ended = fmt.Sprintf(" and %s that ended", plural(n, "job"))
	}
	fmt.Fprintf(o.Streams.Err, "This ends %s%s:\n%s\n", plural(len(alive), "job"), ended, strings.Join(alive, "\n"))
	if !o.Streams.Asks {
		return exit.Usagef("nothing was deleted: there is no terminal to ask on; --yes does not ask")
	}
	fmt.Fprint(o.Streams.Err, "Delete? [y/N] ")
	answer, _ := bufio.NewReader(o.Streams.In).ReadString('\n') // no answer is no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was deleted (--yes does not ask)")
}

func (o *deleteOptions) remove(ctx context.Context, cluster Cluster, doomed []training.Run) error {
	errs := make([]error, len(doomed))
	var mu sync.Mutex
	var tasks sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, r := range doomed {
		tasks.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if errs[i] = cluster.Delete(ctx, r.Namespace, r.Name, r.UID); errs[i] == nil {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(o.Streams.Out, "Deleted %s\n", pathOf(r))
			}
		})
	}
	tasks.Wait()
	return errors.Join(errs...)
}
