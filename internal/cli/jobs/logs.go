package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
	"github.com/tpu-training/terraform-provider-tpu/internal/training/logs"
)

type logsOptions struct {
	oneJob
	hosts        []string
	container    string
	follow       bool
	since        string
	tail         int
	previous     bool
	firstFailure bool
	noPrefix     bool
	timestamps   bool
}

func newLogs(d Deps) *cobra.Command {
	o := &logsOptions{oneJob: oneJob{Deps: d}}
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Print what the programs of a training job print, on all hosts",
		Long: `Print the logs of a job's hosts, merged by time, each line with its SLICE/HOST
before it (JOB/POD for a further job). They come through the cluster's API
server; a connection that breaks is made again, and no line is lost or doubled by
that. With --follow new lines are printed as they come, also of the pods of later
attempts, until the job has ended. Ctrl-C ends the reading, never the job.

A cluster keeps the log of a pod as long as the pod: those of earlier attempts
are gone with their pods.`,
		Example: `  tpuctl logs train --follow
  tpuctl logs train --host 0/3 --tail 100
  tpuctl logs train --host 0,uploader --since 10m
  tpuctl logs train --first-failure`,
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.hosts, "host", nil, "only these: SLICE/HOST such as 0/3, SLICE for all its hosts, JOB or JOB/POD for a further job")
	f.StringVarP(&o.container, "container", "c", "", "only this container (all but init containers by default)")
	f.BoolVarP(&o.follow, "follow", "f", false, "print new lines as they come, until the job has ended")
	f.StringVar(&o.since, "since", "", "only lines since then: a duration such as 10m, or a time such as 2026-01-02T15:04:05Z")
	f.IntVar(&o.tail, "tail", logs.All, "only so many of the newest lines of each host (all by default)")
	f.BoolVarP(&o.previous, "previous", "p", false, "what ran before: a host's earlier pod, or its container's earlier run")
	f.BoolVar(&o.firstFailure, "first-failure", false, "only the host that failed first, and what it said")
	f.BoolVar(&o.noPrefix, "no-prefix", false, "leave out the SLICE/HOST before each line")
	f.BoolVar(&o.timestamps, "timestamps", false, "print the time of each line (UTC)")
	o.add(cmd, func(ctx context.Context, cluster Cluster, run training.Run) error {
		if f.Changed("host") && len(o.hosts) == 0 {
			return exit.Usagef("--host is empty: leave it out for all hosts")
		}
		return o.run(ctx, cluster, run)
	})
	_ = cmd.RegisterFlagCompletionFunc("host", o.completeHosts)
	return cmd
}

func (o *logsOptions) run(ctx context.Context, cluster Cluster, run training.Run) error {
	opts, err := o.options()
	if err != nil {
		return err
	}
	if err := noSuchHost(run, opts.Hosts); err != nil {
		return err
	}
	p := newLinePrinter(o.Streams, run)
	p.timestamps, p.bare = o.timestamps, o.noPrefix
	if o.firstFailure {
		f, err := cluster.FirstFailure(ctx, run)
		switch {
		case err != nil:
			return err
		case f == nil:
			return fmt.Errorf("no host of job %s has failed, as far as its pods tell: it is %s", pathOf(run), run.State)
		}
		fmt.Fprintf(o.Streams.Err, "%s\n", f)
		opts.Pod, opts.Container = f.Pod, f.Container
		p.bare = true
	}
	if o.follow {
		return o.followTo(ctx, cluster, run, opts, p)
	}
	programs, err := cluster.Logs(ctx, run, opts, p.print)
	none := new(logs.NoPodsError)
	switch {
	case errors.As(err, &none):
		return &logs.NoPodsError{Run: run, Why: none.Why}
	case err != nil && ctx.Err() != nil:
		return stoppedReading(o.Streams, run)
	case err != nil:
		return err
	case programs == 0:
		return &logs.NoPodsError{Run: run, Wanted: opts.Wanted()}
	}
	return nil
}

func (o *logsOptions) followTo(ctx context.Context, cluster Cluster, run training.Run, opts logs.Options, p *linePrinter) error {
	said := progress{w: o.Streams.Err, quiet: true}
	_, err := cluster.FollowLogs(ctx, run, opts, p.print, said.tell)
	if err != nil && ctx.Err() != nil {
		return stoppedReading(o.Streams, run)
	}
	return deletedMeanwhile(run, err)
}

// noSuchHost says which of the hosts a job does not have, and which it has.
func noSuchHost(run training.Run, wanted []logs.Host) error {
	var wrong []string
	for _, h := range wanted {
		if !hasHost(run, h) {
			wrong = append(wrong, h.String())
		}
	}
	if len(wrong) == 0 || run.HostsPerSlice == 0 {
		return nil
	}
	text := fmt.Sprintf("job %s has no host %s: it has %s of %s", pathOf(run), strings.Join(wrong, ", "), plural(run.Slices, "slice"), plural(run.HostsPerSlice, "host"))
	switch {
	case run.Slices == 1 && run.HostsPerSlice == 1:
		text += ", 0/0"
	case run.Slices > 0:
		text += fmt.Sprintf(", 0/0 to %d/%d", run.Slices-1, run.HostsPerSlice-1)
	}
	var others []string
	for _, p := range run.Parts {
		if !p.Main {
			others = append(others, fmt.Sprintf("%s (%s)", p.Name, plural(p.Pods, "pod")))
		}
	}
	if len(others) > 0 {
		text += ", and " + strings.Join(others, ", ")
	}
	return exit.Usagef("--host: %s", text)
}

// hasHost tells whether a job has such hosts, or pods of a further job.
func hasHost(run training.Run, h logs.Host) bool {
	if h.Job == "" {
		return h.Slice < run.Slices && h.Host < run.HostsPerSlice
	}
	for _, p := range run.Parts {
		if p.Name == h.Job {
			return h.Host < p.Pods
		}
	}
	return len(run.Parts) == 0 // not known
}

// options refuses what cannot be meant.
func (o *logsOptions) options() (logs.Options, error) {
	opts := logs.Options{Container: o.container, Tail: o.tail, Previous: o.previous, Note: func(s string) { fmt.Fprintln(o.Streams.Err, s) }}
	var problems []string
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, s := range o.hosts {
		h, err := logs.ParseHost(s)
		if err != nil {
			refuse("--host: %v", err)
		}
		opts.Hosts = append(opts.Hosts, h)
	}
	if o.tail < logs.All {
		refuse("--tail: %d; want a number of lines", o.tail)
	}
	if o.since != "" {
		at, err := parseSince(o.Now(), o.since)
		if err != nil {
			refuse("--since: %v", err)
		}
		opts.Since = at
	}
	if o.previous && o.follow {
		refuse("--previous and --follow: what ran before says nothing new; give one of them")
	}
	if o.firstFailure && (o.follow || o.previous || len(o.hosts) > 0 || o.container != "") {
		refuse("--first-failure finds the host itself, and reads what it said: it takes no --host, --container, --follow or --previous")
	}
	if len(problems) > 0 {
		return opts, exit.Usagef("%s", strings.Join(problems, "\n"))
	}
	return opts, nil
}

// parseSince reads a duration before now, or a time.
func parseSince(now time.Time, s string) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil {
		if d <= 0 {
			return time.Time{}, fmt.Errorf("%q; want a duration above 0", s)
		}
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q; want a duration such as 10m, or a time such as 2026-01-02T15:04:05Z", s)
}
