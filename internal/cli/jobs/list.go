package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type listOptions struct {
	Deps
	target    target.Options
	format    output.Format
	namespace string

	states                   []string
	queue, owner, experiment string
}

func newList(d Deps) *cobra.Command {
	o := &listOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List training jobs, one row each",
		Long: `List the training jobs of a cluster, oldest first: what they run on, where they
stand, and why. HOSTS are those ready or done, of those wanted.`,
		Example: `  tpuctl list
  tpuctl list -n research --state Pending,Running
  tpuctl list --cluster projects/p/locations/us-west4-a/clusters/c -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "only this namespace (all by default)")
	f.StringSliceVar(&o.states, "state", nil, "only these states: "+states())
	f.StringVar(&o.queue, "queue", "", "only jobs of this queue")
	f.StringVar(&o.owner, "owner", "", "only jobs of this owner")
	f.StringVar(&o.experiment, "experiment", "", "only jobs of this experiment")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(strings.Split(states(), ", "), cobra.ShellCompDirectiveNoFileComp))
	o.target.AddFlags(cmd)
	output.AddFlag(cmd, &o.format)
	return cmd
}

func states() string {
	names := make([]string, len(training.States))
	for i, s := range training.States {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

func (o *listOptions) run(ctx context.Context) error {
	wanted, err := parseStates(o.states)
	if err != nil {
		return err
	}
	source, err := o.Open(ctx, o.target)
	if err != nil {
		return err
	}
	runs, err := source.List(ctx, o.namespace)
	if err != nil {
		return err
	}
	empty := "No training jobs" + o.where() + "."
	if len(runs) == 0 {
		var missing *training.NotInstalledError
		if err := source.Installed(ctx); errors.As(err, &missing) {
			empty = noController(missing)
		} else if err != nil {
			return err
		}
	}
	runs = slices.DeleteFunc(runs, func(r training.Run) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, r.State) ||
			o.queue != "" && r.Queue != o.queue ||
			o.owner != "" && r.Owner != o.owner ||
			o.experiment != "" && r.Experiment != o.experiment
	})
	return output.Print(o.Streams, o.format, o.view(runs, empty))
}

func parseStates(names []string) ([]training.State, error) {
	var parsed []training.State
	for _, name := range names {
		i := slices.IndexFunc(training.States, func(s training.State) bool { return strings.EqualFold(string(s), name) })
		if i < 0 {
			return nil, exit.Usagef("there is no state %q: a job is one of %s", name, states())
		}
		parsed = append(parsed, training.States[i])
	}
	return parsed, nil
}

func (o *listOptions) view(runs []training.Run, empty string) output.View {
	data := make([]runView, 0, len(runs))
	v := output.View{Table: output.Table{
		Columns: []output.Column{
			{Name: "name"}, {Name: "namespace", Optional: true, Yield: 1}, {Name: "owner", Optional: true, Yield: 4}, {Name: "slices"},
			{Name: "queue", Yield: 2}, {Name: "state", Style: stateStyle}, {Name: "hosts"}, {Name: "restarts", Yield: 3}, {Name: "age"},
			{Name: "done", Wide: true}, {Name: "chips", Wide: true}, {Name: "priority", Wide: true}, {Name: "flavor", Wide: true},
			{Name: "started", Wide: true}, {Name: "finished", Wide: true}, {Name: "run id", Wide: true},
			{Name: "reason", Optional: true},
		},
		Empty: empty,
	}}
	now := o.Now()
	for _, r := range runs {
		data = append(data, view(r, false))
		name, namespace := r.Name, r.Namespace
		if o.namespace != "" {
			namespace = ""
		}
		v.Names = append(v.Names, r.Namespace+"/"+r.Name)
		v.Table.Rows = append(v.Table.Rows, []string{
			name, namespace, r.Owner, shape(r), r.Queue, string(r.State), hosts(r.HostsReady, r.HostsDone, r.HostsWanted),
			fmt.Sprint(r.Restarts), age(now, r.Created),
			fmt.Sprint(r.HostsDone), fmt.Sprint(r.Chips()), r.Priority, r.Flavor, age(now, r.Started), age(now, r.Finished), r.RunID,
			r.Reason,
		})
	}
	v.Data = data
	return v
}

// where says what an empty list was looked for in.
func (o *listOptions) where() string {
	in := ""
	if o.namespace != "" {
		in = " in namespace " + o.namespace
	}
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"state", strings.Join(o.states, " or ")}, {"queue", o.queue}, {"owner", o.owner}, {"experiment", o.experiment},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if len(parts) == 0 {
		return in
	}
	return in + " with " + strings.Join(parts, ", ")
}
