package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/near"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type listOptions struct {
	Deps
	target    target.Options
	format    output.Format
	namespace string

	states                   []string
	labels, tags             []string
	everywhere               bool
	queue, owner, experiment string
	watch                    bool
	interval                 time.Duration
}

func newList(d Deps) *cobra.Command {
	o := &listOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List training jobs, one row each",
		Long: `List the training jobs of a cluster, oldest first: what they run on, where they
stand, and why. HOSTS are those ready or done, of those wanted.

The server chooses by queue, owner, experiment, label and namespace. Of more than
a hundred jobs, those that wait or have ended are listed without a reason and
their times, and a line below the table says so; -o wide, json and yaml read them
all the same, which takes longer. In so long a list a job that was suspended in the
last seconds may still be Pending. tpuctl status says why one job waits.`,
		Example: `  tpuctl list
  tpuctl list --owner ada --watch
  tpuctl list -n research --state Pending,Running
  tpuctl list --tag suspicious -o wide
  tpuctl list --cluster projects/p/locations/us-west4-a/clusters/c -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "only this namespace (the context's; else all)")
	f.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "all namespaces, whatever the context says")
	f.StringSliceVar(&o.states, "state", nil, "only these states: "+states())
	f.StringVar(&o.queue, "queue", "", "only jobs of this queue")
	f.StringVar(&o.owner, "owner", "", "only jobs of this owner, or account")
	f.StringVar(&o.experiment, "experiment", "", "only jobs of this experiment")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "KEY=VALUE: only jobs with this label")
	f.StringSliceVar(&o.tags, "tag", nil, "only jobs with this tag")
	f.BoolVarP(&o.watch, "watch", "w", false, "go on, and print each job again that has changed; Ctrl-C ends it")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "with --watch, how often to look")
	_ = cmd.RegisterFlagCompletionFunc("state", completeStates)
	o.target.AddFlags(cmd)
	completeNames(cmd, &o.target, &o.namespace)
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
	var problems []string
	switch {
	case o.everywhere && o.namespace != "":
		return exit.Usagef("--namespace and --all-namespaces: give one of them")
	case !o.everywhere:
		if err := o.inContext(o.target, &o.namespace); err != nil {
			return err
		}
	}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	q := training.Query{
		Namespace: o.namespace, Queue: o.queue, Owner: ownedBy(o.owner, bad), Experiment: o.experiment,
		Labels: selected(o.labels, o.tags, bad),
		Whole:  o.format == output.Wide || o.format.Structured(),
	}
	place("--queue", o.queue, bad)
	place("--experiment", o.experiment, bad)
	if o.watch && o.format != output.TableFormat && o.format != output.Wide && o.format != output.Name {
		problems = append(problems, fmt.Sprintf("--watch prints lines: not with -o %s", o.format))
	}
	if o.interval < 100*time.Millisecond {
		problems = append(problems, fmt.Sprintf("--interval: %s; want 100ms or more", o.interval))
	}
	if len(problems) > 0 {
		return exit.Usagef("%s", strings.Join(problems, "\n"))
	}
	source, err := o.Open(ctx, o.target)
	if err != nil {
		return err
	}
	found, err := o.find(ctx, source, q, wanted)
	if err != nil && q.Namespace == "" && apierrors.IsForbidden(err) {
		return fmt.Errorf("looking for jobs in all namespaces (--namespace looks in one only): %w", err)
	}
	if err != nil {
		return err
	}
	empty := "No training jobs" + o.where() + "."
	if len(found.Runs) == 0 {
		var missing *training.NotInstalledError
		if err := source.Installed(ctx); errors.As(err, &missing) {
			empty = noController(missing)
		} else if err != nil {
			return err
		} else if err := missingPlace(ctx, source, o.namespace, o.queue); err != nil {
			return err
		}
	}
	if err := output.Print(o.Streams, o.format, o.view(found.Runs, empty)); err != nil {
		return err
	}
	if found.Brief && !q.Whole && o.Streams.Width > 0 && o.format == output.TableFormat {
		fmt.Fprintln(o.Streams.Err, "Of so many jobs, those that wait or have ended are shown without reason and times: -o wide shows them.")
	}
	if !o.watch {
		return nil
	}
	return o.follow(ctx, source, q, wanted, found.Runs)
}

func (o *listOptions) find(ctx context.Context, source Source, q training.Query, wanted []training.State) (training.Listing, error) {
	found, err := source.Select(ctx, q)
	found.Runs = slices.DeleteFunc(found.Runs, func(r training.Run) bool { return len(wanted) > 0 && !slices.Contains(wanted, r.State) })
	return found, err
}

// follow prints jobs that have changed since they were printed. A moment
// without an answer is not the end.
func (o *listOptions) follow(ctx context.Context, source Source, q training.Query, wanted []training.State, before []training.Run) error {
	printed := map[string]string{}
	for _, r := range before {
		printed[r.UID] = progressLine(r)
	}
	for {
		select {
		case <-ctx.Done():
			return &exit.CodeError{Code: exit.Interrupted} // as it was told to end
		case <-time.After(o.interval):
		}
		found, err := o.find(ctx, source, q, wanted)
		if err != nil && ctx.Err() == nil && kube.Transient(err) {
			continue
		}
		if err != nil {
			return err
		}
		changed := slices.DeleteFunc(found.Runs, func(r training.Run) bool { return printed[r.UID] == progressLine(r) })
		if len(changed) == 0 {
			continue
		}
		for _, r := range changed {
			printed[r.UID] = progressLine(r)
		}
		if err := output.Print(o.Streams, o.format, o.view(changed, "")); err != nil {
			return err
		}
	}
}

// elsewhere are words that other tools have for states, and for all of them.
var elsewhere = map[string]string{
	"queued": string(training.Pending), "finished": "Succeeded,Failed", "done": "Succeeded,Failed", "completed": "Succeeded,Failed",
	"successful": string(training.Succeeded), "success": string(training.Succeeded),
}

func parseStates(names []string) ([]training.State, error) {
	var parsed []training.State
	for _, name := range names {
		i := slices.IndexFunc(training.States, func(s training.State) bool { return strings.EqualFold(string(s), name) })
		if i >= 0 {
			parsed = append(parsed, training.States[i])
			continue
		}
		// No list shows jobs that are gone.
		hint := near.Hint(name, slices.DeleteFunc(strings.Split(states(), ", "), func(s string) bool { return s == string(training.Gone) }))
		if own := elsewhere[strings.ToLower(name)]; own != "" {
			hint = "; here that is " + own
		} else if strings.EqualFold(name, "everything") {
			hint = "; tpuctl list without --state shows all"
		}
		return nil, exit.Usagef("there is no state %q: a job is one of %s%s", name, states(), hint)
	}
	return parsed, nil
}

// completeStates completes the last of several states with commas between them.
func completeStates(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	given := typed[:strings.LastIndexByte(typed, ',')+1]
	var names []string
	for _, s := range training.States {
		if s != training.Gone && strings.HasPrefix(strings.ToLower(string(s)), strings.ToLower(typed[len(given):])) {
			names = append(names, given+string(s))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (o *listOptions) view(runs []training.Run, empty string) output.View {
	data := make([]runView, 0, len(runs))
	v := output.View{Table: output.Table{
		Columns: []output.Column{
			{Name: "name"}, {Name: "namespace", Optional: true, Yield: 4}, {Name: "owner", Optional: true, Yield: 7}, {Name: "slices", Yield: 3},
			{Name: "queue", Yield: 5}, {Name: "state", Style: stateStyle}, {Name: "hosts", Yield: 1}, {Name: "restarts", Yield: 6}, {Name: "age", Yield: 2},
			{Name: "done", Wide: true}, {Name: "chips", Wide: true}, {Name: "priority", Wide: true}, {Name: "flavor", Wide: true},
			{Name: "started", Wide: true}, {Name: "finished", Wide: true}, {Name: "run id", Wide: true},
			{Name: "tags", Wide: true, Optional: true},
			{Name: "reason", Optional: true, Whole: true},
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
			fmt.Sprint(r.Restarts), output.Age(now, r.Created),
			fmt.Sprint(r.HostsDone), fmt.Sprint(r.Chips()), r.Priority, r.Flavor, output.Age(now, r.Started), output.Age(now, r.Finished), r.RunID, short(strings.Join(jobfile.TagsOf(r.Labels), ","), widestTags),
			r.Reason,
		})
	}
	v.Data = data
	return v
}

// widestTags is how much of a job's tags a table shows.
const widestTags = 40

// short is the beginning of a text that is too long.
func short(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// where says what an empty list was looked for in.
func (o *listOptions) where() string {
	in := ""
	if o.namespace != "" {
		in = " in namespace " + o.namespace
	}
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"state", strings.Join(o.states, " or ")}, {"queue", o.queue}, {"owner", o.owner}, {"experiment", o.experiment}, {"label", strings.Join(o.labels, ", ")}, {"tag", strings.Join(o.tags, ", ")},
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
