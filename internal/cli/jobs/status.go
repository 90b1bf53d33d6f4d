package jobs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type statusOptions struct {
	oneJob
	format output.Format
}

func newStatus(d Deps) *cobra.Command {
	o := &statusOptions{oneJob: oneJob{Deps: d}}
	cmd := &cobra.Command{
		Use:   "status JOB",
		Short: "Show where a training job stands, slice by slice",
		Long: `Show one training job: its state and the reason for it, what it runs on, its
queue, restarts and times, each of its slices, and the conditions that JobSet and
Kueue report. Without --namespace the job is looked for in all of them.`,
		Example: `  tpuctl status train
  tpuctl status research/train -o json`,
	}
	output.AddFlag(cmd, &o.format)
	o.add(cmd, o.run)
	return cmd
}

func (o *statusOptions) run(_ context.Context, cluster Cluster, run training.Run) error {
	v := view(run, true)
	v.Console = cluster.Console(run.Namespace, run.Name)
	return output.Print(o.Streams, o.format, output.View{
		Data:  v,
		Names: []string{pathOf(run)},
		Page: func(w io.Writer, wide bool) error {
			page, err := o.page(run, v.Console, wide)
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, page)
			return err
		},
	})
}

func (o *statusOptions) page(r training.Run, console string, wide bool) (string, error) {
	now := o.Now()
	p := output.NewPage(o.Streams, r.Namespace+"/"+r.Name)
	p.Styled("state", string(r.State), stateStyle(string(r.State)))
	p.Field("reason", r.Reason)
	p.Field("message", r.Message)
	p.Field("slices", slicesLine(r))
	p.Field("chips", chipsLine(r))
	p.Field("hosts", hostsLine(r))
	p.Field("proxy address", r.ProxyAddress)
	p.Field("queue", queueLine(r))
	p.Field("flavor", r.Flavor)
	p.Field("priority", r.Priority)
	p.Field("restarts", restartsLine(r))
	p.Field("created", output.Moment(now, r.Created))
	p.Field("admitted", output.Moment(now, r.AdmittedAt))
	p.Field("started", output.Moment(now, r.Started))
	p.Field("finished", output.Moment(now, r.Finished))
	if !r.Started.IsZero() {
		end := r.Finished
		if end.IsZero() {
			end = now
		}
		p.Field("running time", output.Age(end, r.Started))
	}
	p.Field("owner", r.Owner)
	p.Field("experiment", r.Experiment)
	if r.RunID != r.Name {
		p.Field("run id", r.RunID)
	}
	p.Field("note", r.Annotations[jobfile.AnnotationNote])
	p.Field("tags", strings.Join(jobfile.TagsOf(r.Labels), ", "))
	own := annotations(r)
	for i, key := range slices.Sorted(maps.Keys(own)) {
		name := "annotations"
		if i > 0 {
			name = ""
		}
		p.Field(name, key+"="+own[key])
	}
	p.Link("console", console)
	if len(r.SliceRuns) > 0 {
		p.Section("slices")
		if err := p.Table(sliceTable(r), wide); err != nil {
			return "", err
		}
	}
	if len(r.Conditions) > 0 {
		p.Section("conditions")
		if err := p.Table(conditionTable(now, r), wide); err != nil {
			return "", err
		}
	}
	return p.String(), nil
}

func slicesLine(r training.Run) string {
	line := shape(r)
	if !r.Slice.Topology.IsZero() {
		line += fmt.Sprintf(" (%s, %s on %s each)", r.Slice.Topology, plural(r.HostsPerSlice, "host"), r.Slice.MachineType)
	}
	return line
}

func chipsLine(r training.Run) string {
	if r.Chips() == 0 {
		return ""
	}
	return fmt.Sprint(r.Chips())
}

func hostsLine(r training.Run) string {
	line := fmt.Sprintf("%d wanted, %d ready", r.HostsWanted, r.HostsReady)
	if r.HostsDone > 0 {
		line += fmt.Sprintf(", %d done", r.HostsDone)
	}
	return line
}

func queueLine(r training.Run) string {
	switch {
	case r.Queue == "":
		return "none: the job does not wait for quota"
	case r.ClusterQueue != "" && r.ClusterQueue != r.Queue:
		return r.Queue + " (cluster queue " + r.ClusterQueue + ")"
	}
	return r.Queue
}

// restartsLine keeps apart what uses up the job's allowance and what does not:
// disruptions of a host are free.
func restartsLine(r training.Run) string {
	line := fmt.Sprintf("%d of %d allowed", r.CountedRestarts, r.MaxRestarts)
	if free := r.Restarts - r.CountedRestarts; free > 0 {
		line += fmt.Sprintf(", and %d after disruptions, which are not counted", free)
	}
	return line
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func sliceTable(r training.Run) output.Table {
	t := output.Table{Columns: []output.Column{
		{Name: "slice"}, {Name: "state", Style: stateStyle}, {Name: "node pool", Optional: true}, {Name: "hosts"},
		{Name: "done"}, {Name: "failed"}, {Name: "message", Optional: true},
	}}
	for _, s := range r.SliceRuns {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(s.Index), string(s.State), s.NodePool, hosts(s.HostsReady, s.HostsDone, s.HostsWanted),
			fmt.Sprint(s.HostsDone), fmt.Sprint(s.HostsFailed), s.Message,
		})
	}
	return t
}

func conditionTable(now time.Time, r training.Run) output.Table {
	t := output.Table{Columns: []output.Column{
		{Name: "since"}, {Name: "of", Yield: 2}, {Name: "condition"}, {Name: "status"}, {Name: "reason"}, {Name: "message", Yield: 1},
	}}
	for _, c := range r.Conditions {
		status := "no"
		if c.Status {
			status = "yes"
		}
		t.Rows = append(t.Rows, []string{output.Age(now, c.Since), c.Of, c.Type, status, c.Reason, c.Message})
	}
	return t
}
