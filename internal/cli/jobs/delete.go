package jobs

import (
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
	tags      []string
	yes       bool
}

// mostNamed is how many jobs a prompt names.
const mostNamed = 50

// atOnce is how many jobs are deleted at a time.
const atOnce = 8

func newDelete(d Deps) *cobra.Command {
	o := &deleteOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "delete [JOB...]",
		Aliases: []string{"rm"},
		Short:   "Delete training jobs, by name, state, label or tag",
		Long: `Delete training jobs, and return when their pods have ended and their slices and
quota are free. Jobs are named, or chosen by --state, --label and --tag, which must all
fit. Where one has not ended, all are listed and you are asked first; --yes does
not ask.

What the job wrote is not touched. Of a job that Terraform manages, the next plan
says that it is gone.`,
		Example: `  tpuctl delete train
  tpuctl delete -n research --state Failed,Succeeded
  tpuctl delete --label sweep=lr --tag bad --yes`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return completeJobs(cmd, d, o.target, o.namespace, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// An empty value is a variable that is not set, and no wish for more.
			for _, name := range []string{"namespace", "state", "tag"} {
				if f := cmd.Flags().Lookup(name); f.Changed && (f.Value.String() == "" || f.Value.String() == "[]") {
					return exit.Usagef("--%s is empty: leave it out for all", name)
				}
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "only in this namespace (the context's; else all)")
	f.StringSliceVar(&o.states, "state", nil, "those in one of these states: "+states())
	f.StringArrayVarP(&o.labels, "label", "l", nil, "KEY=VALUE: those with this label")
	f.StringSliceVar(&o.tags, "tag", nil, "those with this tag")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	_ = cmd.RegisterFlagCompletionFunc("state", completeStates)
	o.target.AddFlags(cmd)
	completeNames(cmd, &o.target, &o.namespace)
	return cmd
}

func (o *deleteOptions) run(ctx context.Context, names []string) error {
	wanted, err := parseStates(o.states)
	if err != nil {
		return err
	}
	var problems []string
	labels := selected(o.labels, o.tags, func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) })
	chosen := len(wanted) > 0 || len(labels) > 0
	switch {
	case len(problems) > 0:
		return exit.Usagef("%s", strings.Join(problems, "\n"))
	case len(names) > 0 && chosen:
		return exit.Usagef("jobs are either named or chosen by --state, --label and --tag: give one of them")
	case len(names) == 0 && !chosen:
		return exit.Usagef("name the jobs to delete, or choose them by --state, --label or --tag")
	}
	cluster, err := o.Open(ctx, o.target)
	if err != nil {
		return err
	}
	var doomed []training.Run
	in := o.namespace
	if err := o.inContext(o.target, &in); err != nil {
		return err
	}
	for _, name := range names {
		where := in
		if strings.Contains(name, "/") {
			where = o.namespace
		}
		run, err := find(ctx, cluster, where, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(doomed, func(r training.Run) bool { return r.UID == run.UID }) {
			doomed = append(doomed, run)
		}
	}
	if chosen {
		all, err := cluster.Select(ctx, training.Query{Namespace: in, Labels: labels})
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
	if err := o.confirm(ctx, doomed); err != nil {
		return err
	}
	return o.remove(ctx, cluster, doomed)
}

// confirm asks about jobs that have not ended.
func (o *deleteOptions) confirm(ctx context.Context, doomed []training.Run) error {
	alive, width := 0, 0
	for _, r := range doomed {
		width = max(width, len(pathOf(r)))
		if !r.State.Finished() {
			alive++
		}
	}
	if o.yes || alive == 0 {
		return nil
	}
	does := "ends and deletes " + plural(len(doomed), "job")
	if alive < len(doomed) {
		does = fmt.Sprintf("deletes %s, and ends %d of them", plural(len(doomed), "job"), alive)
	}
	fmt.Fprintf(o.Streams.Err, "This %s:\n", does)
	for i, r := range doomed {
		if i == mostNamed && len(doomed) > mostNamed+1 {
			fmt.Fprintf(o.Streams.Err, "  and %d more\n", len(doomed)-i)
			break
		}
		fmt.Fprintf(o.Streams.Err, "  %-*s  %-10s  %s\n", width, pathOf(r), r.State, shape(r))
	}
	if !o.Streams.Asks {
		return exit.Usagef("nothing was deleted: there is no terminal to ask on; --yes does not ask")
	}
	fmt.Fprint(o.Streams.Err, "Delete? [y/N] ")
	answer, _ := o.Streams.Answer(ctx) // no answer is no
	if ctx.Err() != nil {
		fmt.Fprintln(o.Streams.Err)
		return &exit.CodeError{Code: exit.Interrupted, Err: errors.New("interrupted: nothing was deleted")}
	}
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
