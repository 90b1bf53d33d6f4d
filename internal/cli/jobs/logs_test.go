package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
	"github.com/tpu-training/terraform-provider-tpu/internal/training/logs"
)

// fakeLogs is what a fake's hosts print, and what was asked for.
type fakeLogs struct {
	lines    []logs.Line
	programs int
	asked    logs.Options
	failure  *training.Failure
	readings []training.Run
	err      error
	notes    []string
	before   func() // the reading ends
}

func (f fake) read(o logs.Options, emit func(logs.Line) error) error {
	f.logs.asked = o
	for _, n := range f.logs.notes {
		o.Note(n)
	}
	for _, l := range f.logs.lines {
		if err := emit(l); err != nil {
			return err
		}
	}
	if f.logs.before != nil {
		f.logs.before()
	}
	return f.logs.err
}

func (f fake) Logs(_ context.Context, _ training.Run, o logs.Options, emit func(logs.Line) error) (int, error) {
	return f.logs.programs, f.read(o, emit)
}

func (f fake) FollowLogs(_ context.Context, _ training.Run, o logs.Options, emit func(logs.Line) error, progress func(training.Run)) (training.Run, error) {
	var last training.Run
	for _, r := range f.logs.readings {
		last = r
		progress(r)
	}
	return last, f.read(o, emit)
}

func (f fake) FirstFailure(context.Context, training.Run) (*training.Failure, error) {
	return f.logs.failure, nil
}

func logLines() []logs.Line {
	at := now.Add(-time.Minute)
	line := func(job string, slice, host int, text string) logs.Line {
		at = at.Add(time.Second)
		return logs.Line{Job: job, Slice: slice, Host: host, Pod: "p", Container: "main", Time: at, Text: text}
	}
	return []logs.Line{
		line(training.SliceJob, 0, 0, "step 1"), line(training.SliceJob, 1, 12, "step 1"), line("uploader", 0, 0, "uploaded 3 files"), line(training.SliceJob, 0, 0, ""),
	}
}

func logging(f fake, l *fakeLogs, color bool) (d Deps, out, errs func() string) {
	s, o, e := clitest.Streams(0, color)
	f.logs, f.acts = l, &acts{}
	return Deps{Streams: s, Now: func() time.Time { return now }, Open: func(context.Context, target.Options) (Cluster, error) { return f, nil }}, o.String, e.String
}

func TestLogs(t *testing.T) {
	for name, tt := range map[string]struct {
		args  []string
		color bool
		want  string
	}{
		"all hosts":   {nil, false, "0/0 | step 1\n1/12 | step 1\nuploader/0 | uploaded 3 files\n0/0        | \n"},
		"bare":        {[]string{"--no-prefix"}, false, "step 1\nstep 1\nuploaded 3 files\n\n"},
		"with times":  {[]string{"--timestamps", "--no-prefix"}, false, "2026-03-04T11:59:01Z step 1\n2026-03-04T11:59:02Z step 1\n2026-03-04T11:59:03Z uploaded 3 files\n2026-03-04T11:59:04Z \n"},
		"with colour": {nil, true, "\x1b[36m0/0 |\x1b[0m step 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLogs{lines: logLines(), programs: 3}
			if tt.color {
				l.lines = l.lines[:1]
			}
			d, out, _ := logging(sample(), l, tt.color)
			if err := clitest.Run(newLogs(d), append([]string{"train"}, tt.args...)...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogsAsks(t *testing.T) {
	for args, want := range map[string]string{
		"":                            "[] All  0 since 0001 previous false",
		"--host 0/3,1 --host up":      "[0/3 1 up] All  0 since 0001 previous false",
		"-c trainer --tail 10 -p":     "[] 10 trainer 0 since 0001 previous true",
		"--since 90s":                 "[] All  0 since 11:58:30 previous false",
		"--since 2026-03-04T11:00:00": "[] All  0 since 11:00:00 previous false",
	} {
		l := &fakeLogs{programs: 1}
		d, _, _ := logging(sample(), l, false)
		if err := clitest.Run(newLogs(d), append([]string{"train"}, strings.Fields(args)...)...); err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		tail, since := "All", l.asked.Since.Format("15:04:05")
		if l.asked.Tail != logs.All {
			tail = fmt.Sprint(l.asked.Tail)
		}
		if l.asked.Since.IsZero() {
			since = "0001"
		}
		got := fmt.Sprintf("%v %s %s 0 since %s previous %t", l.asked.Hosts, tail, l.asked.Container, since, l.asked.Previous)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
}

func TestLogsRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--host 0-3":              `--host: "0-3": want SLICE/HOST such as 0/3`,
		"--tail -2":               "--tail: -2; want a number of lines",
		"--since yesterday":       `--since: "yesterday"; want a duration such as 10m`,
		"--since -5m":             `--since: "-5m"; want a duration above 0`,
		"--follow --previous":     "give one of them",
		"--first-failure -f":      "--first-failure finds the host itself",
		"--host x/y --since soon": "--host",
	} {
		d, _, _ := logging(sample(), &fakeLogs{}, false)
		err := clitest.Run(newLogs(d), append([]string{"train"}, strings.Fields(args)...)...)
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (exit code %d), want %q", args, err, exit.Code(err), want)
		}
	}
}

func TestFirstFailure(t *testing.T) {
	l := &fakeLogs{programs: 1, lines: logLines()[:1], failure: &training.Failure{ReplicatedJob: training.SliceJob, Slice: 1, Host: 2, Node: "v5e-1-2", Pod: "train-slice-1-2-x", Container: "main", ExitCode: 137, Reason: "OOMKilled"}}
	d, out, errs := logging(sample(), l, false)
	if err := clitest.Run(newLogs(d), "train", "--first-failure"); err != nil {
		t.Fatal(err)
	}
	if out() != "step 1\n" || errs() != "slice 1, host 2 (v5e-1-2) ended with exit code 137: it used more memory than its limit\n" {
		t.Errorf("%q, %q", out(), errs())
	}
	if l.asked.Pod != "train-slice-1-2-x" || l.asked.Container != "main" {
		t.Errorf("asked for %+v", l.asked)
	}
	d, _, _ = logging(sample(), &fakeLogs{}, false)
	if err := clitest.Run(newLogs(d), "train", "--first-failure"); err == nil || err.Error() != "no host of job research/train has failed, as far as its pods tell: it is Running" {
		t.Errorf("no failure: %v", err)
	}
}

func TestNoLogs(t *testing.T) {
	for job, want := range map[string]string{
		"wait-for-it": "job research/wait-for-it (Pending) has no pod whose log can be read: it has not started",
		"eval":        "job vision/eval (Succeeded) has no pod whose log can be read: the pods of a finished job go with it, or with its restart",
	} {
		d, _, _ := logging(sample(), &fakeLogs{}, false)
		if err := clitest.Run(newLogs(d), job); err == nil || err.Error() != want {
			t.Errorf("%s: %v", job, err)
		}
	}
	d, _, _ := logging(sample(), &fakeLogs{}, false)
	if err := clitest.Run(newLogs(d), "train", "--host", "1/0", "-c", "x"); err == nil || !strings.Contains(err.Error(), "has no pod of host 1/0, container x whose log") {
		t.Errorf("a container that there is not: %v", err)
	}
}

// A host that a job does not have is refused by what it has.
func TestNoSuchHost(t *testing.T) {
	f := sample()
	f.runs[0].Parts = []training.Part{{Name: training.SliceJob, Pods: 4, Main: true}, {Name: "uploader", Pods: 1}}
	f.runs[1].Slices, f.runs[1].HostsPerSlice = 1, 1
	for args, want := range map[string]string{
		"train --host 7/0":         "--host: job research/train has no host 7/0: it has 2 slices of 4 hosts, 0/0 to 1/3, and uploader (1 pod)",
		"train --host 0/4":         "has no host 0/4",
		"train --host 2":           "has no host 2:",
		"train --host 0,2,5/1":     "has no host 2, 5/1:",
		"train --host uploade":     "has no host uploade:",
		"train --host uploader/1":  "has no host uploader/1:",
		"wait-for-it --host 0/1":   "it has 1 slice of 1 host, 0/0",
		"train --host 1/3":         "",
		"train --host uploader,1":  "",
		"train --host slice":       "",
		"train --host=":            "--host is empty",
		"train --host uploader/-1": "want SLICE/HOST",
	} {
		d, _, _ := logging(f, &fakeLogs{programs: 1}, false)
		err := clitest.Run(newLogs(d), strings.Fields(args)...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || exit.Code(err) != exit.Usage) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	d, _, _ := logging(f, &fakeLogs{}, false)
	o := &oneJob{Deps: d}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	for typed, want := range map[string][]string{"1/": {"1/0", "1/1", "1/2", "1/3"}, "0/1,u": {"0/1,uploader"}, "9": nil} {
		if got, _ := o.completeHosts(cmd, []string{"train"}, typed); cmp.Diff(want, got, cmpopts.EquateEmpty()) != "" {
			t.Errorf("completion of %s: %v, want %v", typed, got, want)
		}
	}
}

func TestFollowLogsTellsOfTheJob(t *testing.T) {
	waits, runs, ends := run("research", "train", training.Pending), run("research", "train", training.Running), run("research", "train", training.Succeeded)
	l := &fakeLogs{lines: logLines()[:1], readings: []training.Run{waits, waits, runs, ends}, notes: []string{"0/1 (pod p): the log cannot be read for now"}}
	d, out, errs := logging(sample(), l, false)
	if err := clitest.Run(newLogs(d), "train", "-f"); err != nil {
		t.Fatal(err)
	}
	want := "research/train: Pending\nresearch/train: Running\nresearch/train: Succeeded\n0/1 (pod p): the log cannot be read for now\n"
	if diff := cmp.Diff(want, errs()); diff != "" || !strings.HasSuffix(out(), "step 1\n") {
		t.Errorf("%s%q", diff, out())
	}
}

// Ctrl-C ends the reading and says what that means for the job.
func TestLogsInterrupted(t *testing.T) {
	for _, args := range [][]string{{"train"}, {"train", "-f"}} {
		ctx, cancel := context.WithCancel(context.Background())
		l := &fakeLogs{err: context.Canceled, before: cancel}
		d, _, errs := logging(sample(), l, false)
		err := runWith(ctx, newLogs(d), args...)
		if exit.Code(err) != exit.Interrupted || !strings.Contains(errs(), "Stopped reading; job research/train goes on.") {
			t.Errorf("%v: %v (%d), %q", args, err, exit.Code(err), errs())
		}
	}
	l := &fakeLogs{err: errors.New("no answer")}
	d, _, _ := logging(sample(), l, false)
	if err := clitest.Run(newLogs(d), "train"); err == nil || err.Error() != "no answer" {
		t.Errorf("an error: %v", err)
	}
}

func runWith(ctx context.Context, cmd *cobra.Command, args ...string) error {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

// A job that goes while it is followed was deleted; what its pods lack is said
// of the job.
func TestLogsOfWhatIsNotThere(t *testing.T) {
	gone := &fakeLogs{err: &training.NotFoundError{Cluster: "c", Namespace: "research", Name: "train"}}
	lacks := &fakeLogs{err: &logs.NoPodsError{Why: "its pods have no container x; they have main"}}
	for want, tt := range map[string]struct {
		logs *fakeLogs
		args []string
	}{
		"job research/train was deleted meanwhile: ":                                 {gone, []string{"train", "-f"}},
		"job research/train (Running): its pods have no container x; they have main": {lacks, []string{"train", "-c", "x"}},
	} {
		d, _, _ := logging(sample(), tt.logs, false)
		if err := clitest.Run(newLogs(d), tt.args...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %q", tt.args, err, want)
		}
	}
}
