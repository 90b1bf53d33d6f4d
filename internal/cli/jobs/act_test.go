package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// acting is a fake that is acted on, and its streams.
func acting(f fake) (Deps, *acts, func() string, func() string) {
	s, out, errs := clitest.Streams(0, false)
	if f.acts == nil {
		f.acts = &acts{}
	}
	d := Deps{Streams: s, Now: func() time.Time { return now }, Account: nobody, Open: func(context.Context, target.Options) (Cluster, error) { return f, nil }}
	return d, f.acts, out.String, errs.String
}

func taken(same bool) error {
	return &training.ExistsError{Key: types.NamespacedName{Namespace: "research", Name: "train"}, Cluster: "c", Same: same}
}

// usual is a submission with nothing wrong in it.
var usual = []string{"train", "-n", "research", "--accelerator", "v5litepod-16", "--image", "python:3.13"}

func TestSubmit(t *testing.T) {
	tests := map[string]struct {
		cluster fake
		args    []string // after the usual ones
		did     []string
		says    string // on standard output
		fails   string // in the error
		code    int
	}{
		"the namespace's only queue": {cluster: fake{queues: []string{"research"}}, did: []string{"submit research/train to research, rehearsal false"},
			says: "Submitted research/train: 1 x v5litepod-16 in queue research\nSee it: tpuctl status research/train\n"},
		"a queue of two must be named":  {cluster: fake{queues: []string{"b", "a"}}, fails: "namespace research has 2 queues, a, b: name one with --queue", code: exit.Usage},
		"a namespace without a queue":   {fails: "namespace research has no queue", code: exit.Usage},
		"a namespace that there is not": {cluster: fake{nowhere: true}, fails: "job research/train was not submitted: 1 thing in its way", code: exit.Failure},
		"no queue wanted":               {args: []string{"--queue", "none", "-o", "name"}, did: []string{"submit research/train to , rehearsal false"}, says: "research/train\n"},
		"the same job again": {cluster: fake{acts: &acts{submit: []error{taken(true)}}}, args: []string{"--queue", "q"}, did: []string{"submit research/train to q, rehearsal false"},
			says: "Unchanged: there is already research/train: 1 x v5litepod-16 in queue q\nSee it: tpuctl status research/train\n"},
		"the same job again, which has ended": {cluster: fake{runs: []training.Run{run("research", "train", training.Succeeded)}, acts: &acts{submit: []error{taken(true)}}}, args: []string{"--queue", "q"},
			did:  []string{"submit research/train to q, rehearsal false"},
			says: "Unchanged: there is already research/train: 1 x v5litepod-16 in queue q (Succeeded)\nIt has ended: tpuctl rerun research/train runs it again\nSee it: tpuctl status research/train\n"},
		"the same job again, which runs": {cluster: fake{runs: sample().runs, acts: &acts{submit: []error{taken(true)}}}, args: []string{"--queue", "q"},
			did: []string{"submit research/train to q, rehearsal false"}, says: "Unchanged: there is already research/train: 1 x v5litepod-16 in queue q (Running)\nSee it: tpuctl status research/train\n"},
		"another job has the name": {cluster: fake{runs: sample().runs, acts: &acts{submit: []error{taken(false)}}}, args: []string{"--queue", "q"},
			did: []string{"submit research/train to q, rehearsal false"}, fails: "made from another specification (Running); nothing was changed.\nChoose another name, or --suffix", code: exit.Failure},
		"numbered": {cluster: fake{acts: &acts{submit: []error{taken(false), taken(true)}}}, args: []string{"--queue", "q", "--suffix", "-o", "name"},
			did: []string{"submit research/train to q, rehearsal false", "submit research/train-2 to q, rehearsal false", "submit research/train-3 to q, rehearsal false"}, says: "research/train-3\n"},
		"replaced": {cluster: fake{runs: sample().runs, acts: &acts{submit: []error{taken(false)}}}, args: []string{"--queue", "q", "--replace", "-o", "name"},
			did: []string{"submit research/train to q, rehearsal false", "delete research/train uid-train", "submit research/train to q, rehearsal false"}, says: "research/train\n"},
		"replaced once": {cluster: fake{runs: sample().runs, acts: &acts{submit: []error{taken(false), taken(false)}}}, args: []string{"--queue", "q", "--replace"},
			did:   []string{"submit research/train to q, rehearsal false", "delete research/train uid-train", "submit research/train to q, rehearsal false"},
			fails: "nothing was changed", code: exit.Failure},
		"neither here nor there":           {args: []string{"--replace", "--suffix"}, fails: "give one of them", code: exit.Usage},
		"a rehearsal of the other":         {args: []string{"--dry-run=both"}, fails: `--dry-run: "both"; want client or server`, code: exit.Usage},
		"a rehearsal by nobody":            {args: []string{"--dry-run=client"}, fails: "name one with --queue", code: exit.Usage},
		"a rehearsal, the value apart":     {args: []string{"--dry-run", "server"}, fails: `"server" is not read as the value of --dry-run, which stands behind =: write --dry-run=server`, code: exit.Usage},
		"a rehearsal of an empty variable": {args: []string{"--queue", "q", "--dry-run="}, fails: `--dry-run: ""; want client or server`, code: exit.Usage},
		"an empty secret":                  {args: []string{"--queue", "q", "--env-from-secret", ""}, fails: "--env-from-secret: it is empty; want a name", code: exit.Usage},
		"a rehearsal of a taken name": {cluster: fake{acts: &acts{submit: []error{taken(false)}}}, args: []string{"--queue", "q", "--replace", "--dry-run=server"}, did: []string{"submit research/train to q, rehearsal true"},
			fails: "deletes nothing; --dry-run=client prints it", code: exit.Failure},
		"all that is wrong at once": {args: []string{"--slices", "0", "--priority", "high", "--queue", "none", "--output-dir", "here", "-e", "1A=x"},
			fails: "--slices: 0; a job needs at least one slice", code: exit.Usage},
		"a queue that there is not": {cluster: fake{acts: &acts{submit: []error{&training.QueueNotFoundError{Cluster: "c", Namespace: "research", Queue: "q", Others: []string{"r"}}}}},
			args: []string{"--queue", "q"}, did: []string{"submit research/train to q, rehearsal false"}, fails: "has no queue q: it has r", code: exit.Failure},
		"no command after all":   {args: []string{"--"}, fails: "there is no command after --", code: exit.Usage},
		"a command before --":    {args: []string{"python"}, fails: "submit train [flags] -- python", code: exit.Usage},
		"two programs":           {args: []string{"--shell", "true", "--queue", "q", "--", "false"}, fails: "shell", code: exit.Usage},
		"a number that is none":  {args: []string{"--memory", "lots", "--queue", "q"}, fails: `--memory: "lots"; want a quantity`, code: exit.Usage},
		"a label without a key":  {args: []string{"-l", "x"}, fails: `--label: "x"; want KEY=VALUE`, code: exit.Usage},
		"a label of two values":  {args: []string{"-l", "a=1", "-l", "a=2"}, fails: `--label: a is given twice, as "1" and as "2"`, code: exit.Usage},
		"a variable of two":      {args: []string{"-e", "A=1", "-e", "A=2"}, fails: `--env: A is given twice, as "1" and as "2"`, code: exit.Usage},
		"a variable of no name":  {args: []string{"-e", "=1"}, fails: `--env: "=1" has no name before =; want NAME=VALUE`, code: exit.Usage},
		"two notes":              {args: []string{"--note", "a", "--note", "b"}, fails: `there is one before it, "a"`, code: exit.Failure},
		"memory without a unit":  {args: []string{"--memory", "100", "--queue", "q"}, fails: "--memory: memory = 100 are bytes, too few for any program: a unit is missing, as in 100Gi", code: exit.Usage},
		"no CPU":                 {args: []string{"--cpu", "0", "--queue", "q"}, fails: "--cpu: cpu = 0; ask for more than nothing", code: exit.Usage},
		"a script of nothing":    {args: []string{"--shell", "", "--queue", "q"}, fails: "--shell: the script is empty", code: exit.Usage},
		"a program of no name":   {args: []string{"--queue", "q", "--", ""}, fails: `the command after --: it begins with "", which is no program`, code: exit.Usage},
		"two job files":          {args: []string{"-f", "a.yaml", "-f", "b.yaml"}, fails: `there is one before it, "a.yaml"`, code: exit.Failure},
		"a bucket of no name":    {args: []string{"--queue", "q", "--output-dir", "gs:/b"}, fails: `--output-dir: "gs:/b" is no folder in Cloud Storage`, code: exit.Usage},
		"an empty tag":           {args: []string{"--tag", ""}, fails: "--tag: an empty tag", code: exit.Usage},
		"an empty tag of two":    {args: []string{"--tag", "a,,b", "--queue", "q"}, fails: "--tag: an empty tag", code: exit.Usage},
		"a tag of two lines":     {args: []string{"--tag", "a\nb", "--queue", "q"}, fails: "--tag: \"a\\nb\": want letters", code: exit.Usage},
		"a label of two lines":   {args: []string{"-l", "a=b\nc", "--queue", "q"}, fails: "--label: a = \"b\\nc\": want letters, digits", code: exit.Usage},
		"a setting of two":       {args: []string{"--set", "lr=1", "--set", "lr=2"}, fails: `--set: lr is given twice, as "1" and as "2"`, code: exit.Usage},
		"the same twice":         {args: []string{"--queue", "q", "-o", "name", "-l", "a=1", "-l", "a=1", "-e", "A=", "-e", "A=", "--tag", "t", "--tag", "t"}, did: []string{"submit research/train to q, rehearsal false"}, says: "research/train\n"},
		"two files for one path": {args: []string{"--file", "act_test.go=/a", "--file", "wait.go=/a"}, fails: "--file: two files for /a", code: exit.Usage},
		"a file without a place": {args: []string{"--file", "act_test.go"}, fails: `--file: "act_test.go"; want LOCAL=/PATH`, code: exit.Usage},
		"a file that is nowhere": {args: []string{"--file", "missing.yaml=/etc/x"}, fails: "--file: open missing.yaml", code: exit.Usage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, acts, out, _ := acting(tt.cluster)
			err := clitest.Run(newSubmit(d), append(slices.Clone(usual), tt.args...)...)
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails) || exit.Code(err) != tt.code) {
				t.Errorf("got %v (exit code %d), want %q (%d)", err, exit.Code(err), tt.fails, tt.code)
			}
			if diff := cmp.Diff(tt.did, acts.done); diff != "" {
				t.Errorf("what was done: %s", diff)
			}
			if diff := cmp.Diff(tt.says, out()); diff != "" {
				t.Errorf("what was said: %s", diff)
			}
		})
	}
}

// Flags and the rest of a job's specification.
func TestFlagsMakeASpec(t *testing.T) {
	d, acts, _, _ := acting(fake{})
	cmd := newSubmit(d)
	t.Setenv("HOME_OF_X", "here")
	dir := t.TempDir()
	write(t, dir+"/env", "# comment\n\nA=1\r\nB=x=y\nHOME_OF_X\n")
	write(t, dir+"/train.yaml", "lr: 3\n")
	args := []string{"--queue", "q", "--slices", "2", "--env-file", dir + "/env", "-e", "A=2", "--env-from-secret", "wandb", "--file", dir + "/train.yaml=/etc/train.yaml",
		"--label", "team=vision", "--note", "first try", "--max-restarts", "1", "--fatal-exit-codes", "3,4", "--ttl", "1h", "--memory", "1Gi", "--", "python", "-c", "print(1)"}
	if err := clitest.Run(cmd, append(slices.Clone(usual), args...)...); err != nil {
		t.Fatal(err)
	}
	hour, memory := time.Hour, resource.MustParse("1Gi")
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	want := training.Spec{
		Namespace: "research", Name: "train", Queue: "q", Slice: slice, Slices: 2, Image: "python:3.13", Command: []string{"python", "-c", "print(1)"},
		Env:     map[string]string{"A": "2", "B": "x=y", "HOME_OF_X": "here"},
		EnvFrom: []training.EnvSource{{Secret: "wandb"}}, Files: map[string]string{"/etc/train.yaml": "lr: 3\n"},
		Labels: map[string]string{"team": "vision"}, Annotations: map[string]string{jobfile.AnnotationNote: "first try"},
		Restart: training.RestartPolicy{MaxRestarts: 1, FatalExitCodes: []int32{3, 4}}, TTL: &hour, Resources: training.Resources{Memory: &memory},
	}
	if diff := cmp.Diff(want, acts.spec); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A client's rehearsal prints what would be created, nothing that only a server
// writes, and asks nobody. It is what --dry-run alone is.
func TestDryRun(t *testing.T) {
	for name, make := range map[string]func(Deps) *cobra.Command{"submit": newSubmit, "run": newRun} {
		for _, args := range [][]string{{"--dry-run"}, {"--dry-run=client", "--owner", "ada"}} {
			d, acts, out, errs := acting(fake{})
			d.Open = func(context.Context, target.Options) (Cluster, error) { return nil, errors.New("a server was asked") }
			if err := clitest.Run(make(d), append(append(args, usual...), "--queue", "q")...); err != nil {
				t.Fatal(err)
			}
			var js struct {
				Kind     string
				Metadata map[string]any
				Status   any
			}
			if err := yaml.Unmarshal([]byte(out()), &js); err != nil || js.Kind != "JobSet" || js.Metadata["name"] != "train" || len(acts.done) > 0 {
				t.Errorf("%s: %v, %v, %v:\n%s", name, err, js, acts.done, out())
			}
			if js.Status != nil || js.Metadata["creationTimestamp"] != nil || strings.Contains(out(), "creationTimestamp") {
				t.Errorf("%s: what only a server writes:\n%s", name, out())
			}
			if tells := strings.Contains(errs(), "The owner is left out"); tells != (len(args) == 1) {
				t.Errorf("%s %q: told %q", name, args, errs())
			}
		}
	}
}

// A rehearsal of a job that is there changes nothing, as its submission would.
func TestRehearsalOfAJobThatIsThere(t *testing.T) {
	args := append(slices.Clone(usual), "--queue", "q")
	d, first, _, _ := acting(fake{})
	if err := clitest.Run(newSubmit(d), args...); err != nil {
		t.Fatal(err)
	}
	there := run("research", "train", training.Running)
	there.Annotations = map[string]string{training.AnnotationSpecHash: first.spec.Hash()}
	d, _, out, _ := acting(fake{runs: []training.Run{there}, acts: &acts{submit: []error{taken(false)}}})
	if err := clitest.Run(newSubmit(d), append(args, "--dry-run=server")...); err != nil || !strings.HasPrefix(out(), "Unchanged: there is already research/train") {
		t.Errorf("%v: %q", err, out())
	}
}

// A job like another one is printed under the name that it would have.
func TestDryRunAgain(t *testing.T) {
	done := run("research", "train", training.Succeeded)
	for name, tt := range map[string]struct {
		make func(Deps) *cobra.Command
		want string
	}{"rerun": {newRerun, "research/train-2\n"}, "continue": {newContinue, "research/train-2\n"}} {
		d, acts, out, _ := acting(fake{runs: []training.Run{done}})
		if err := clitest.Run(tt.make(d), "train", "--dry-run", "-o", "name"); err != nil || out() != tt.want || len(acts.done) > 0 {
			t.Errorf("%s: %v, %q, %v", name, err, out(), acts.done)
		}
	}
}

// Ctrl-C while the job is created: either it is there and named, or it is not.
func TestInterruptedSubmission(t *testing.T) {
	args := append(slices.Clone(usual), "--queue", "q")
	d, first, _, _ := acting(fake{})
	if err := clitest.Run(newSubmit(d), args...); err != nil {
		t.Fatal(err)
	}
	ours, other := run("research", "train", training.Pending), run("research", "train", training.Pending)
	ours.Annotations = map[string]string{training.AnnotationSpecHash: first.spec.Hash()}
	for want, runs := range map[string][]training.Run{
		"no job research/train was created":                                         nil,
		"no job was created; another one has the name research/train":               {other},
		"job research/train was created (Pending); tpuctl delete train -n research": {ours},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		d, _, _, _ := acting(fake{runs: runs, acts: &acts{submit: []error{context.Canceled}, onSubmit: cancel}})
		cmd := newSubmit(d)
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(ctx); exit.Code(err) != exit.Interrupted || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v (exit code %d), want %q", err, exit.Code(err), want)
		}
	}
}

// Ctrl-C before that, wherever the command is: no job, and it says so.
func TestInterruptedBeforeTheSubmission(t *testing.T) {
	queued := append(slices.Clone(usual), "--queue", "q")
	for name, tt := range map[string]struct {
		make func(Deps) *cobra.Command
		args []string
		want string
	}{
		"submit":   {newSubmit, queued, "interrupted: no job research/train was created"},
		"run":      {newRun, queued, "interrupted: no job research/train was created"},
		"rehearse": {newSubmit, append(slices.Clone(queued), "--dry-run=server"), "interrupted: nothing is created by --dry-run"},
		"rerun":    {newRerun, []string{"train"}, "interrupted: no job was created"},
		"continue": {newContinue, []string{"train"}, "interrupted: no job was created"},
		"replace":  {newRerun, []string{"train", "--replace"}, "interrupted: no job was created"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		d, acts, _, _ := acting(fake{})
		d.Open = func(ctx context.Context, _ target.Options) (Cluster, error) { cancel(); return nil, ctx.Err() }
		if err := runWith(ctx, tt.make(d), tt.args...); exit.Code(err) != exit.Interrupted || err.Error() != tt.want || len(acts.done) > 0 {
			t.Errorf("%s: got %v (exit code %d), want %q", name, err, exit.Code(err), tt.want)
		}
	}
}

// Nor does it wait for credentials that are looked for.
func TestInterruptedWhileTheAccountIsLookedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d, acts, _, _ := acting(fake{})
	over := make(chan struct{})
	defer close(over)
	d.Account = func(target.Options) string { cancel(); <-over; return "" }
	d.Open = func(ctx context.Context, _ target.Options) (Cluster, error) { return nil, ctx.Err() }
	err := runWith(ctx, newSubmit(d), append(slices.Clone(usual), "--queue", "q")...)
	if want := "interrupted: no job research/train was created"; exit.Code(err) != exit.Interrupted || err.Error() != want || len(acts.done) > 0 {
		t.Errorf("got %v, want %q", err, want)
	}
}

// What was never sent needs no asking.
func TestInterruptedBeforeItIsSent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	unsent := fmt.Errorf("creating: %w", &kube.UnsentError{Err: context.Canceled})
	d, _, _, _ := acting(fake{runs: []training.Run{run("research", "train", training.Running)}, acts: &acts{submit: []error{unsent}, onSubmit: cancel}})
	err := runWith(ctx, newSubmit(d), append(slices.Clone(usual), "--queue", "q")...)
	if want := "interrupted: no job research/train was created"; exit.Code(err) != exit.Interrupted || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// Who had the name is gone, also when its follower does not come to be.
func TestInterruptedReplacement(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := fake{runs: []training.Run{run("research", "train", training.Running)}, acts: &acts{submit: []error{taken(false)}}}
	f.acts.onDelete = cancel
	d, _, _, _ := acting(f)
	err := runWith(ctx, newSubmit(d), append(slices.Clone(usual), "--queue", "q", "--replace")...)
	if want := "interrupted: no job research/train was created; job research/train, which had the name, was deleted"; exit.Code(err) != exit.Interrupted || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestWait(t *testing.T) {
	at := func(s training.State) training.Run { return run("research", "train", s) }
	failed := at(training.Failed)
	failed.Reason, failed.Message = training.ReasonFatalExitCode, "exit code 2"
	tests := map[string]struct {
		readings []training.Run
		args     []string
		code     int
		says     string
		progress string
	}{
		"success": {readings: []training.Run{at(training.Pending), at(training.Pending), at(training.Running), at(training.Succeeded)}, says: "research/train is Succeeded\n",
			progress: "research/train: Pending\nresearch/train: Running\nresearch/train: Succeeded\n"},
		"failure":       {readings: []training.Run{failed}, code: exit.Unsuccessful, says: "research/train is Failed\n", progress: "research/train: Failed (FatalExitCode): exit code 2\n"},
		"only so far":   {readings: []training.Run{at(training.Running)}, args: []string{"--for", "running"}, says: "research/train is Running\n", progress: "research/train: Running\n"},
		"no time":       {readings: []training.Run{at(training.Running)}, args: []string{"--timeout", "1ns"}, code: exit.TimedOut, progress: "research/train: Running\n"},
		"for nothing":   {args: []string{"--for", "ever"}, code: exit.Usage},
		"negative time": {args: []string{"--timeout", "-1s"}, code: exit.Usage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := sample()
			f.acts = &acts{readings: tt.readings}
			d, _, out, errs := acting(f)
			err := clitest.Run(newWait(d), append([]string{"train"}, tt.args...)...)
			if exit.Code(err) != tt.code {
				t.Errorf("exit code %d (%v), want %d", exit.Code(err), err, tt.code)
			}
			if diff := cmp.Diff([]string{tt.says, tt.progress}, []string{out(), errs()}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// mute is a cluster that never answers.
type mute struct{ fake }

func (mute) Get(ctx context.Context, _, _ string) (training.Run, error) {
	<-ctx.Done()
	return training.Run{}, ctx.Err()
}

func (mute) Select(ctx context.Context, _ training.Query) (training.Listing, error) {
	<-ctx.Done()
	return training.Listing{}, ctx.Err()
}

// The time of --timeout begins with the command.
func TestWaitEndsInTime(t *testing.T) {
	d, _, _, _ := acting(sample())
	d.Open = func(context.Context, target.Options) (Cluster, error) { return mute{}, nil }
	for _, name := range []string{"train", "research/train"} {
		err := clitest.Run(newWait(d), name, "--timeout", "10ms")
		if want := "the --timeout has passed (10ms): looking for job " + name; exit.Code(err) != exit.TimedOut || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("a server that does not answer: %v (exit code %d), want %q", err, exit.Code(err), want)
		}
	}
	f := sample()
	f.acts = &acts{} // nothing is read while it waits
	d, _, _, _ = acting(f)
	err := clitest.Run(newWait(d), "train", "--timeout", "1ms")
	if want := "the --timeout has passed (1ms): job research/train is Running; it goes on"; exit.Code(err) != exit.TimedOut || err.Error() != want {
		t.Errorf("no time: %v (exit code %d), want %q", err, exit.Code(err), want)
	}
	err = clitest.Run(newWait(d), "no-such-job", "--for", "runnin")
	if want := `--for: "runnin"; want admitted, running or completed; did you mean running?`; exit.Code(err) != exit.Usage || err.Error() != want {
		t.Errorf("a slip of the pen: %v (exit code %d), want %q", err, exit.Code(err), want)
	}
}

func TestSuspendAndResume(t *testing.T) {
	off := run("research", "off", training.Suspended)
	off.Reason = training.ReasonUserSuspended
	f := sample()
	gone := run("research", "gone", training.Suspended)
	gone.Reason = training.ReasonCancelled
	f.runs = append(f.runs, off, gone)
	d, _, _, _ := acting(f)
	if err := clitest.Run(newResume(d), "gone"); err == nil || !strings.Contains(err.Error(), "was cancelled, which is for good: tpuctl continue research/gone") {
		t.Errorf("resuming a cancelled job: %v", err)
	}
	for args, want := range map[string]struct{ says, did string }{
		"suspend train": {"Suspended research/train\n", "active research/train false"},
		"suspend off":   {"research/off is suspended already\n", ""},
		"resume off":    {"Resumed research/off\n", "active research/off true"},
		"resume train":  {"research/train is not suspended: it is Running\n", ""},
	} {
		f.acts = &acts{}
		d, acts, out, _ := acting(f)
		verb, name, _ := strings.Cut(args, " ")
		cmd := map[string]func(Deps) *cobra.Command{"suspend": newSuspend, "resume": newResume}[verb](d)
		if err := clitest.Run(cmd, name); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(acts.done, ", "); out() != want.says || got != want.did {
			t.Errorf("%s: said %q, did %q", args, out(), got)
		}
	}
}

// wordsOf a line, where ” is an empty one.
func wordsOf(line string) []string {
	all := strings.Fields(line)
	for i := range all {
		if all[i] == "''" {
			all[i] = ""
		}
	}
	return all
}

func TestDelete(t *testing.T) {
	labelled := sample()
	for i := range labelled.runs {
		labelled.runs[i].Labels = map[string]string{"sweep": "lr", "n": fmt.Sprint(i)}
		if i == 2 {
			key, value := jobfile.TagLabel("bad")
			labelled.runs[i].Labels[key] = value
		}
	}
	tests := map[string]struct {
		args   string
		answer string
		did    []string
		asks   string
		fails  string
		code   int
	}{
		"one that ended":         {args: "eval", did: []string{"delete vision/eval uid-eval"}},
		"one that runs, agreed":  {args: "train", answer: "y\n", did: []string{"delete research/train uid-train"}, asks: "This ends and deletes 1 job:\n  research/train  Running     2 x v5litepod-16\nDelete? [y/N] "},
		"one that runs, refused": {args: "train", answer: "\n", asks: "This ends and deletes 1 job:\n  research/train  Running     2 x v5litepod-16\nDelete? [y/N] ", fails: "nothing was deleted", code: exit.Failure},
		"nobody to ask":          {args: "train", asks: "This ends and deletes 1 job:\n  research/train  Running     2 x v5litepod-16\n", fails: "there is no terminal to ask on; --yes does not ask", code: exit.Usage},
		"by state":               {args: "--state succeeded,failed", did: []string{"delete vision/eval uid-eval"}},
		"by label":               {args: "--label sweep=lr --label n=1 --yes", did: []string{"delete research/wait-for-it uid-wait-for-it"}},
		"all of a sweep":         {args: "--label sweep=lr --yes", did: []string{"delete research/train uid-train", "delete research/wait-for-it uid-wait-for-it", "delete vision/eval uid-eval"}},
		"some of them ended, refused": {args: "--label sweep=lr", answer: "n\n", fails: "nothing was deleted", code: exit.Failure,
			asks: "This deletes 3 jobs, and ends 2 of them:\n  research/train        Running     2 x v5litepod-16\n  research/wait-for-it  Pending     2 x v5litepod-16\n  vision/eval           Succeeded   2 x v5litepod-16\nDelete? [y/N] "},
		"by tag":                   {args: "--tag bad --state succeeded", did: []string{"delete vision/eval uid-eval"}},
		"no tag":                   {args: "--tag a=b", fails: "--label KEY=VALUE chooses by a label", code: exit.Usage},
		"a label that is not":      {args: "--label sweep!=lr --state succeeded --yes", fails: `--label: the key "sweep!"`, code: exit.Usage},
		"several values":           {args: "--label sweep=lr,n=1 --yes", fails: `--label: the value "lr,n=1" of sweep`, code: exit.Usage},
		"a term of a selector":     {args: "--label 'sweep in (lr,bs)' --yes", fails: "want KEY=VALUE", code: exit.Usage},
		"two equal signs":          {args: "--label sweep==lr --yes", fails: `the value "=lr"`, code: exit.Usage},
		"a tag that is none":       {args: "--tag !bad --yes", fails: "--tag: \"!bad\"", code: exit.Usage},
		"no name, of the only job": {args: "''", fails: "a job's name is empty", code: exit.Usage},
		"half a path":              {args: "research/", fails: "is no job's name", code: exit.Usage},
		"no namespace":             {args: "--state succeeded -n ''", fails: "--namespace is empty", code: exit.Usage},
		"no state":                 {args: "--label sweep=lr --state ''", fails: "--state is empty", code: exit.Usage},
		"an empty tag":             {args: "--label sweep=lr --tag ''", fails: "--tag is empty", code: exit.Usage},
		"none fits":                {args: "--label sweep=other"},
		"twice the same":           {args: "eval vision/eval", did: []string{"delete vision/eval uid-eval"}},
		"one of two is missing":    {args: "eval nope", fails: "there is no job nope", code: exit.Failure},
		"nothing said":             {fails: "name the jobs to delete", code: exit.Usage},
		"both ways":                {args: "eval --state failed", fails: "give one of them", code: exit.Usage},
		"no such state":            {args: "--state dead", fails: "there is no state", code: exit.Usage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := labelled
			if strings.Contains(name, "only job") {
				f.runs = f.runs[2:]
			}
			f.acts = &acts{}
			d, acts, _, errs := acting(f)
			d.Streams.In, d.Streams.Asks = strings.NewReader(tt.answer), tt.answer != ""
			err := clitest.Run(newDelete(d), wordsOf(tt.args)...)
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails) || exit.Code(err) != tt.code) {
				t.Errorf("got %v (exit code %d), want %q (%d)", err, exit.Code(err), tt.fails, tt.code)
			}
			slices.Sort(acts.done)
			if diff := cmp.Diff(tt.did, acts.done); diff != "" {
				t.Errorf("what was done: %s", diff)
			}
			if diff := cmp.Diff(tt.asks, errs()); diff != "" {
				t.Errorf("what was asked: %s", diff)
			}
		})
	}
}

// silent is a terminal on which nobody types, or a pipe without an end.
type silent struct {
	read context.CancelFunc // called when somebody waits for it
	end  <-chan struct{}
}

func (s silent) Read([]byte) (int, error) {
	s.read()
	<-s.end
	return 0, io.EOF
}

// Ctrl-C ends a command that waits for an answer or for a file.
func TestInterruptedReading(t *testing.T) {
	for name, tt := range map[string]struct {
		cmd  func(Deps) *cobra.Command
		args []string
		want string
	}{
		"delete": {newDelete, []string{"train"}, "interrupted: nothing was deleted"},
		"submit": {newSubmit, []string{"-f", "-"}, "interrupted: no job was created"},
	} {
		f := sample()
		f.acts = &acts{}
		d, acts, _, _ := acting(f)
		ctx, cancel := context.WithCancel(t.Context())
		d.Streams.In, d.Streams.Asks = silent{cancel, t.Context().Done()}, true
		err := runWith(ctx, tt.cmd(d), tt.args...)
		if exit.Code(err) != exit.Interrupted || err.Error() != tt.want || len(acts.done) > 0 {
			t.Errorf("%s: %v (exit code %d), %v", name, err, exit.Code(err), acts.done)
		}
	}
}
