package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Spec of a fake is that of its job, with nothing special in it.
func (f fake) Spec(_ context.Context, key types.NamespacedName) (training.Spec, error) {
	slice, err := accelerator.Resolve("v5litepod-16")
	return training.Spec{Namespace: key.Namespace, Name: key.Name, Queue: "q", Slice: slice, Slices: 2, Image: "train:1", Command: []string{"python", "train.py"}, RunID: "train", OutputDir: "gs://runs",
		Owner: "ada", Env: map[string]string{"A": "1"}, Restart: training.DefaultRestart()}, err
}

func (f fake) Past(context.Context, string, string) (training.Past, error) {
	past := training.Past{Next: 4}
	for _, r := range f.runs {
		if !r.Over() {
			past.Going = &r
		}
	}
	return past, nil
}

func (f fake) Cancel(_ context.Context, key types.NamespacedName, now time.Time) error {
	f.acts.did("cancel %s at %s", key, now.Format(time.TimeOnly))
	return nil
}

func (f fake) Annotate(_ context.Context, key types.NamespacedName, labels, annotations map[string]*string) error {
	var edits []string
	for what, m := range map[string]map[string]*string{"label": labels, "annotation": annotations} {
		for k, v := range m {
			if v == nil {
				edits = append(edits, fmt.Sprintf("%s %s gone", what, k))
			} else {
				edits = append(edits, fmt.Sprintf("%s %s=%s", what, k, *v))
			}
		}
	}
	slices.Sort(edits)
	f.acts.did("annotate %s: %s", key, strings.Join(edits, ", "))
	return nil
}

func TestRerunAndContinue(t *testing.T) {
	over, alive := run("research", "train", training.Failed), run("research", "train", training.Running)
	off := run("research", "train", training.Suspended)
	off.Reason = training.ReasonUserSuspended
	second := run("research", "train-2", training.Failed)
	second.RunID = "train"
	tests := map[string]struct {
		run    training.Run
		args   string
		submit []error
		did    []string
		spec   func(training.Spec) []any
		want   []any
		fails  string
		code   int
	}{
		"rerun": {run: over, args: "rerun train", submit: []error{taken(true)}, did: []string{"submit research/train to q, rehearsal false", "submit research/train-2 to q, rehearsal false"},
			spec: func(s training.Spec) []any { return []any{s.RunID, s.FirstAttempt, s.OutputDir, s.Owner, s.Command} },
			want: []any{"", 0, "gs://runs", "bob", []string{"python", "train.py"}}},
		"rerun what runs": {run: alive, args: "rerun train --name other --slices 4 -e B=2 -- sh", did: []string{"submit research/other to q, rehearsal false"},
			spec: func(s training.Spec) []any { return []any{s.Slices, s.Env, s.Command} }, want: []any{4, map[string]string{"A": "1", "B": "2"}, []string{"sh"}}},
		"rerun in its place": {run: alive, args: "rerun train --replace", submit: []error{taken(true)},
			did: []string{"submit research/train to q, rehearsal false", "delete research/train uid-train", "submit research/train to q, rehearsal false"}},
		"continue": {run: over, args: "continue train --accelerator v6e-16", submit: []error{taken(false)}, did: []string{"submit research/train to q, rehearsal false", "submit research/train-2 to q, rehearsal false"},
			spec: func(s training.Spec) []any { return []any{s.RunID, s.FirstAttempt, s.OutputDir, s.Slice.Name} }, want: []any{"train", 4, "gs://runs", "v6e-16"}},
		"continue the second": {run: second, args: "continue train-2", submit: []error{taken(false), taken(false)},
			did: []string{"submit research/train to q, rehearsal false", "submit research/train-2 to q, rehearsal false", "submit research/train-3 to q, rehearsal false"}},
		"continue under a name":   {run: over, args: "continue train --name next", did: []string{"submit research/next to q, rehearsal false"}},
		"continue what runs":      {run: alive, args: "continue train", fails: "job research/train is Running, and goes on with run train by itself; end it first: tpuctl cancel research/train", code: exit.Failure},
		"continue what is off":    {run: off, args: "continue train", fails: "let it run again: tpuctl resume research/train", code: exit.Failure},
		"continue another run":    {run: over, args: "continue train --run-id x", fails: "keeps its run id", code: exit.Usage},
		"a name and its taking":   {run: over, args: "rerun train --replace --name x", fails: "--replace takes the name of the old job", code: exit.Usage},
		"its own name":            {run: over, args: "rerun train --name train", fails: "--name: train is the job's own name: --replace deletes it", code: exit.Usage},
		"to go on in its name":    {run: over, args: "continue train --name train", fails: "--replace deletes it", code: exit.Usage},
		"nobody":                  {run: over, args: "rerun", fails: "the job has no name", code: exit.Usage},
		"nobody there":            {run: over, args: "continue tarin", fails: "there is no job tarin", code: exit.Failure},
		"a name that cannot be":   {run: over, args: "rerun train --name X", fails: `--name: "X" cannot name a job`, code: exit.Usage},
		"a flag that cannot be":   {run: over, args: "rerun train --slices 0", fails: "--slices: 0; a job needs", code: exit.Usage},
		"another's name is taken": {run: over, args: "rerun train --name x", submit: []error{taken(false)}, did: []string{"submit research/x to q, rehearsal false"}, fails: "nothing was changed", code: exit.Failure},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, acts, out, _ := acting(fake{runs: []training.Run{tt.run}, acts: &acts{submit: tt.submit}})
			d.Account = func(target.Options) string { return "bob" }
			args := strings.Fields(tt.args)
			cmd := map[string]func(Deps) *cobra.Command{"rerun": newRerun, "continue": newContinue}[args[0]](d)
			err := clitest.Run(cmd, args[1:]...)
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails) || exit.Code(err) != tt.code) {
				t.Fatalf("got %v (exit code %d), want %q", err, exit.Code(err), tt.fails)
			}
			if diff := cmp.Diff(tt.did, acts.done); diff != "" {
				t.Errorf("what was done: %s", diff)
			}
			if tt.spec != nil {
				if diff := cmp.Diff(tt.want, tt.spec(acts.spec)); diff != "" {
					t.Errorf("the job: %s", diff)
				}
			}
			if tt.fails == "" && !strings.HasPrefix(out(), "Submitted research/") {
				t.Errorf("said %q", out())
			}
		})
	}
}

// A job that is made again is of whoever does it: not of its old owner, also
// where only the cluster knows who that is.
func TestOwnerOfAJobMadeAgain(t *testing.T) {
	over := run("research", "train", training.Failed)
	for name, tt := range map[string]struct{ here, there, args, want string }{
		"known here":  {here: "bob@example.com", there: "else", want: "bob-example.com"},
		"known there": {there: "sandbox-admin", want: "sandbox-admin"},
		"nobody":      {},
		"said":        {here: "bob", there: "else", args: " --owner ada", want: "ada"},
	} {
		for verb, of := range map[string]func(Deps) *cobra.Command{"rerun": newRerun, "continue": newContinue} {
			d, acts, _, _ := acting(fake{runs: []training.Run{over}, account: tt.there})
			d.Account = func(target.Options) string { return tt.here }
			if err := clitest.Run(of(d), strings.Fields("train"+tt.args)...); err != nil {
				t.Fatal(err)
			}
			if acts.spec.Owner != tt.want {
				t.Errorf("%s, %s: the owner is %q, want %q", verb, name, acts.spec.Owner, tt.want)
			}
		}
	}
}

func TestCancelAJob(t *testing.T) {
	gone := run("research", "gone", training.Suspended)
	gone.Reason = training.ReasonCancelled
	f := sample()
	f.runs = append(f.runs, gone)
	for name, want := range map[string]struct{ says, did string }{
		"train": {"Cancelled research/train\n", "cancel research/train at 12:00:00"},
		"eval":  {"vision/eval is over already: Succeeded\n", ""},
		"gone":  {"research/gone is over already: Suspended, Cancelled\n", ""},
	} {
		f.acts = &acts{}
		d, acts, out, _ := acting(f)
		if err := clitest.Run(newCancel(d), name); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(acts.done, ", "); out() != want.says || got != want.did {
			t.Errorf("%s: said %q, did %q", name, out(), got)
		}
	}
}

func TestAnnotateAJob(t *testing.T) {
	for args, want := range map[string]struct{ did, fails string }{
		"train --note why --tag a,b --untag c x/y=1 z- e=": {did: "annotate research/train: annotation e=, annotation tpu-training.github.io/note=why, annotation x/y=1, annotation z gone, " +
			"label tag.tpu-training.github.io/a=true, label tag.tpu-training.github.io/b=true, label tag.tpu-training.github.io/c gone"},
		"train --note=":             {did: "annotate research/train: annotation tpu-training.github.io/note gone"},
		"train":                     {fails: "what is to be said about job train?"},
		"train --tag=":              {fails: "--tag: an empty tag"},
		"train --tag a,,b":          {fails: "--tag: an empty tag"},
		"train --untag a/b":         {fails: `--untag: "a/b": want letters`},
		"train k=1 k=2":             {fails: `annotation k is given twice, as "k=1" and as "k=2": leave one out`},
		"train k=1 k-":              {fails: `annotation k is given twice, as "k=1" and as "k-"`},
		"train k=1 k=1":             {did: "annotate research/train: annotation k=1"},
		"train --tag a,t --untag t": {fails: "tag t is given and taken away"},
		"train x":                   {fails: `"x"; want KEY=VALUE`},
		"train =x":                  {fails: `"=x"; want KEY=VALUE`},
		"train -- -":                {fails: `"-"; want KEY=VALUE`},
		"":                          {fails: "want the name of one job, and what to say about it"},
	} {
		f := sample()
		d, acts, _, _ := acting(f)
		err := clitest.Run(newAnnotate(d), strings.Fields(args)...)
		if want.fails == "" && err != nil || want.fails != "" && (err == nil || !strings.Contains(err.Error(), want.fails)) {
			t.Errorf("%q: %v, want %q", args, err, want.fails)
		}
		if got := strings.Join(acts.done, ", "); got != want.did {
			t.Errorf("%q: did\n%s\nwant\n%s", args, got, want.did)
		}
	}
}

func TestRun(t *testing.T) {
	at := func(s training.State) training.Run { return run("research", "train", s) }
	failed := at(training.Failed)
	failed.Failure = &training.Failure{ReplicatedJob: training.SliceJob, Slice: 1, Host: 2, ExitCode: 42}
	lost := at(training.Failed)
	cancelled := at(training.Suspended)
	cancelled.Reason = training.ReasonCancelled
	args := append(slices.Clone(usual), "--queue", "q")
	for name, tt := range map[string]struct {
		last   training.Run
		submit []error
		err    error
		code   int
		tells  string
	}{
		"succeeds":        {last: at(training.Succeeded), tells: "Submitted research/train: 1 x v5litepod-16 in queue q\nresearch/train: Running\nresearch/train: Succeeded\n"},
		"is there":        {last: at(training.Succeeded), submit: []error{taken(true)}, tells: "Unchanged: there is already research/train: 1 x v5litepod-16 in queue q (Running)\n"},
		"fails":           {last: failed, code: 42, tells: "slice 1, host 2 ended with exit code 42"},
		"nobody knows":    {last: lost, code: exit.Unsuccessful},
		"is cancelled":    {last: cancelled, code: exit.Unsuccessful},
		"taken":           {submit: []error{taken(false)}, code: exit.Failure},
		"is not followed": {last: at(training.Running), err: fmt.Errorf("no answer"), code: exit.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLogs{lines: logLines()[:1], readings: []training.Run{at(training.Running), tt.last}, err: tt.err}
			d, _, out, errs := acting(fake{runs: []training.Run{at(training.Running)}, logs: l, acts: &acts{submit: tt.submit}})
			err := clitest.Run(newRun(d), args...)
			if exit.Code(err) != tt.code {
				t.Errorf("exit code %d (%v), want %d", exit.Code(err), err, tt.code)
			}
			if !strings.Contains(errs(), tt.tells) {
				t.Errorf("told %q, want %q", errs(), tt.tells)
			}
			if tt.code == 0 && !strings.Contains(out(), "step 1") {
				t.Errorf("printed %q", out())
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	d, _, _, errs := acting(fake{runs: []training.Run{at(training.Running)}, logs: &fakeLogs{err: context.Canceled, before: cancel}})
	if err := runWith(ctx, newRun(d), args...); exit.Code(err) != exit.Interrupted || !strings.Contains(errs(), "job research/train goes on. tpuctl logs research/train --follow reads on, tpuctl cancel research/train ends it") {
		t.Errorf("interrupted: %v, %q", err, errs())
	}
}
