// Package queues is tpuctl's view of a cluster's queues: quota, who uses it, and
// who waits in which order. It shows what internal/queue read and decides
// nothing about it.
package queues

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Source reads queues of one cluster.
type Source interface {
	List(ctx context.Context) ([]queue.Status, error)
	Get(ctx context.Context, name string) (queue.Status, error)
}

// Deps are what the command needs from outside; tests replace them.
type Deps struct {
	Streams *term.Streams
	Open    func(context.Context, target.Options) (Source, error)
	Now     func() time.Time
}

// New is the queues command over real clusters.
func New(s *term.Streams) *cobra.Command {
	return newQueues(Deps{Streams: s, Now: time.Now, Open: func(ctx context.Context, o target.Options) (Source, error) {
		c, err := target.Connect(ctx, o)
		return cluster{c}, err
	}})
}

type cluster struct{ client *kube.Client }

func (c cluster) List(ctx context.Context) ([]queue.Status, error) {
	return queue.ListStatus(ctx, c.client)
}

func (c cluster) Get(ctx context.Context, name string) (queue.Status, error) {
	return queue.ReadStatus(ctx, c.client, name)
}

type options struct {
	Deps
	target target.Options
	format output.Format
}

func newQueues(d Deps) *cobra.Command {
	o := &options{Deps: d}
	cmd := &cobra.Command{
		Use:     "queues [QUEUE]",
		Aliases: []string{"queue"},
		Short:   "Show quota, who uses it, and who waits in which order",
		Long: `Show the queues of a cluster, a row for each kind of slice: the quota, what of it
is in use, what is borrowed from the cohort, and how many jobs wait. With the name
of a queue, show that one: the jobs that hold its quota, and those that wait, the
next first. Numbers are slices; CHIPS are their chips.`,
		Example: `  tpuctl queues
  tpuctl queues research
  tpuctl queues research -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("want the name of one queue, or none for all; %d were given", len(args))
			}
			if len(args) == 1 && args[0] == "" {
				return errors.New("the queue's name is empty: leave it out for all")
			}
			return nil
		},
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := o.Open(cmd.Context(), o.target)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return o.one(cmd.Context(), source, args[0])
			}
			return o.all(cmd.Context(), source)
		},
	}
	o.target.AddFlags(cmd)
	output.AddFlag(cmd, &o.format)
	return cmd
}

func (o *options) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return target.Complete(cmd, typed, func(ctx context.Context) ([]string, error) {
		source, err := o.Open(ctx, o.target)
		if err != nil {
			return nil, err
		}
		all, err := source.List(ctx)
		var names []string
		for _, s := range all {
			names = append(names, cobra.CompletionWithDesc(s.Name, count(s.PendingJobs, "job")+" waiting"))
		}
		return names, err
	})
}

func (o *options) all(ctx context.Context, source Source) error {
	all, err := source.List(ctx)
	if err != nil {
		return err
	}
	data := []view{}
	v := output.View{Table: output.Table{
		Columns: []output.Column{
			{Name: "queue"}, {Name: "cohort", Optional: true, Yield: 4}, {Name: "flavor", Yield: 3}, {Name: "slice", Optional: true, Yield: 5},
			{Name: "quota"}, {Name: "used"}, {Name: "borrowed", Yield: 2}, {Name: "chips", Wide: true}, {Name: "used chips", Wide: true},
			{Name: "admitted", Yield: 1}, {Name: "pending"}, {Name: "status", Style: statusStyle, Optional: true},
		},
		Empty: "No queues: tpu_kueue_queue makes one.",
	}}
	for _, s := range all {
		data = append(data, viewOf(s))
		v.Names = append(v.Names, s.Name)
		rows := s.Flavors
		if len(rows) == 0 {
			rows = []queue.FlavorStatus{{}}
		}
		for i, f := range rows {
			row := []string{s.Name, s.Cohort, f.Name, f.Slice.Name, amount(f, f.Quota), amount(f, f.Reserved), amount(f, f.Borrowed),
				fmt.Sprint(f.Quota), fmt.Sprint(f.Reserved), fmt.Sprint(s.AdmittedJobs), fmt.Sprint(s.PendingJobs), standing(s)}
			if i > 0 { // the queue's own columns are told once
				row[0], row[1], row[9], row[10], row[11] = s.Name, s.Cohort, "", "", ""
			}
			v.Table.Rows = append(v.Table.Rows, row)
		}
	}
	v.Data = data
	return output.Print(o.Streams, o.format, v)
}

// amount is a number of chips in slices, or in chips where the shape is not
// known.
func amount(f queue.FlavorStatus, chips int64) string {
	if f.Slice.Chips == 0 && chips > 0 {
		return count(int(chips), "chip")
	}
	return fmt.Sprint(f.Slices(chips))
}

func standing(s queue.Status) string {
	if s.Active {
		return "Active"
	}
	if s.Reason == "" {
		return "Inactive"
	}
	return s.Reason
}

func statusStyle(status string) term.Style {
	if status == "Active" {
		return term.Good
	}
	return term.Bad
}

func (o *options) one(ctx context.Context, source Source, name string) error {
	s, err := source.Get(ctx, name)
	if none := new(queue.ErrNoQueue); errors.As(err, &none) {
		return unknown(ctx, source, name, err)
	}
	if err != nil {
		return err
	}
	v := viewOf(s)
	v.jobs(s)
	return output.Print(o.Streams, o.format, output.View{Data: v, Names: []string{s.Name}, Page: func(w io.Writer, wide bool) error {
		text, err := o.page(s, wide)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		return err
	}})
}

// unknown adds which queues there are; that they cannot be listed is no news.
func unknown(ctx context.Context, source Source, name string, err error) error {
	all, listErr := source.List(ctx)
	if listErr != nil {
		return err
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	if near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.Contains(n, name) && !strings.Contains(name, n) }); len(near) > 0 {
		names = near
	}
	if len(names) == 0 {
		return fmt.Errorf("%w, and no other: tpu_kueue_queue makes one", err)
	}
	return fmt.Errorf("%w; it has %s", err, strings.Join(names, ", "))
}

func (o *options) page(s queue.Status, wide bool) (string, error) {
	now := o.Now()
	p := output.NewPage(o.Streams, s.Name)
	p.Styled("status", standing(s), statusStyle(standing(s)))
	p.Field("message", s.Message)
	p.Field("cohort", s.Cohort)
	p.Field("jobs", fmt.Sprintf("%d admitted, %d pending", s.AdmittedJobs, s.PendingJobs))
	if len(s.Flavors) > 0 {
		p.Section("quota, in slices")
		t := output.Table{Columns: []output.Column{{Name: "flavor"}, {Name: "slice", Optional: true}, {Name: "quota"}, {Name: "used"}, {Name: "borrowed"}, {Name: "chips"}, {Name: "used chips"}}}
		for _, f := range s.Flavors {
			t.Rows = append(t.Rows, []string{f.Name, f.Slice.Name, amount(f, f.Quota), amount(f, f.Reserved), amount(f, f.Borrowed), fmt.Sprint(f.Quota), fmt.Sprint(f.Reserved)})
		}
		if err := p.Table(t, wide); err != nil {
			return "", err
		}
	}
	for _, part := range []struct {
		title string
		jobs  []queue.Job
	}{{"running or about to", s.Admitted}, {"waiting, the next first", s.Pending}} {
		if len(part.jobs) == 0 {
			continue
		}
		p.Section(part.title)
		if err := p.Table(jobTable(now, part.jobs), wide); err != nil {
			return "", err
		}
	}
	if len(s.Pending) > 0 && !s.Ordered {
		p.Line("Kueue does not tell its order here: this is by priority and age.")
	}
	return p.String(), nil
}

func jobTable(now time.Time, jobs []queue.Job) output.Table {
	t := output.Table{Columns: []output.Column{
		{Name: "position", Optional: true}, {Name: "job"}, {Name: "slices"}, {Name: "chips"}, {Name: "priority", Optional: true, Yield: 3},
		{Name: "flavor", Optional: true, Yield: 2}, {Name: "age"}, {Name: "reason", Optional: true, Yield: 1},
	}}
	for _, j := range jobs {
		position := ""
		if j.Position > 0 {
			position = fmt.Sprint(j.Position)
		}
		since := j.Created
		if !j.Admitted.IsZero() {
			since = j.Admitted
		}
		t.Rows = append(t.Rows, []string{position, j.Namespace + "/" + j.Name, fmt.Sprint(j.Slices), fmt.Sprint(j.Chips), j.PriorityClass, j.Flavor,
			duration.HumanDuration(max(0, now.Sub(since))), j.Reason})
	}
	return t
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
