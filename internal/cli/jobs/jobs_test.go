package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/jobfile"
	"github.com/tpu-training/terraform-provider-tpu/internal/preflight"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// fake is a cluster with these runs.
type fake struct {
	runs       []training.Run
	listErr    error
	bare       bool // a cluster without JobSet
	queues     []string
	namespaces []string
	console    string
	acts       *acts
	logs       *fakeLogs
	items      []preflight.Item
	account    string
	nowhere    bool // no namespace is there
}

func (f fake) Namespaces(context.Context) ([]string, error) { return f.namespaces, nil }

func (f fake) Console(namespace, name string) string {
	if f.console == "" {
		return ""
	}
	return f.console + namespace + "/" + name
}

func (f fake) Preflight(context.Context, training.Spec) []preflight.Item { return f.items }

func (f fake) Namespace(_ context.Context, name string) []preflight.Item {
	if f.nowhere {
		return []preflight.Item{{Name: "namespace", Result: preflight.Failed, Text: name + " does not exist; did you mean research?"}}
	}
	return nil
}

func (f fake) Account(context.Context) (string, error) { return f.account, nil }

// acts are what a command did to a fake, and how that went.
type acts struct {
	mu        sync.Mutex
	done      []string
	submit    []error // of one submission after the other
	spec      training.Spec
	readings  []training.Run // of a wait
	waitErr   error
	onSubmit  func()
	onDelete  func() // the job is gone then
	deleted   bool
	deleteErr error
}

func (a *acts) did(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = append(a.done, fmt.Sprintf(format, args...))
}

func (f fake) Queues(context.Context, string) ([]string, error) { return f.queues, nil }

func (f fake) Submit(_ context.Context, s training.Spec, rehearse bool) (*jobset.JobSet, error) {
	f.acts.did("submit %s/%s to %s, rehearsal %t", s.Namespace, s.Name, s.Queue, rehearse)
	f.acts.spec = s
	if f.acts.onSubmit != nil {
		f.acts.onSubmit()
	}
	if len(f.acts.submit) > 0 {
		err := f.acts.submit[0]
		f.acts.submit = f.acts.submit[1:]
		return nil, err
	}
	return s.JobSet(), nil
}

func (f fake) Wait(ctx context.Context, _ types.NamespacedName, level training.Level, progress func(training.Run)) (training.Run, error) {
	var last training.Run
	for _, r := range f.acts.readings {
		last = r
		progress(r)
		if level.Reached(r.State) {
			return r, f.acts.waitErr
		}
	}
	<-ctx.Done()
	return last, context.Cause(ctx)
}

func (f fake) SetActive(_ context.Context, key types.NamespacedName, active bool) error {
	f.acts.did("active %s %t", key, active)
	return nil
}

func (f fake) Delete(_ context.Context, namespace, name, uid string) error {
	f.acts.did("delete %s/%s %s", namespace, name, uid)
	if f.acts.onDelete != nil {
		f.acts.onDelete()
		f.acts.deleted = true
	}
	return f.acts.deleteErr
}

func (f fake) Installed(context.Context) error {
	if f.bare {
		return &training.NotInstalledError{Cluster: "c", Controller: "JobSet"}
	}
	return nil
}

func (f fake) Select(ctx context.Context, q training.Query) (training.Listing, error) {
	runs, err := f.List(ctx, q.Namespace)
	return training.Listing{Runs: slices.DeleteFunc(runs, func(r training.Run) bool {
		return q.Name != "" && r.Name != q.Name || q.Queue != "" && r.Queue != q.Queue || q.Owner != "" && r.Owner != q.Owner || q.Experiment != "" && r.Experiment != q.Experiment || !has(r.Labels, q.Labels)
	})}, err
}

func (f fake) List(_ context.Context, namespace string) ([]training.Run, error) {
	var runs []training.Run
	for _, r := range f.runs {
		if namespace == "" || r.Namespace == namespace {
			runs = append(runs, r)
		}
	}
	return runs, f.listErr
}

func (f fake) Get(_ context.Context, namespace, name string) (training.Run, error) {
	for _, r := range f.runs {
		if r.Namespace == namespace && r.Name == name && (f.acts == nil || !f.acts.deleted) {
			return r, nil
		}
	}
	return training.Run{}, &training.NotFoundError{Cluster: "c", Namespace: namespace, Name: name}
}

func run(namespace, name string, state training.State) training.Run {
	s, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		panic(err)
	}
	return training.Run{
		Namespace: namespace, Name: name, UID: "uid-" + name, RunID: name, Owner: "ada",
		Queue: "research", Accelerator: s.Name, Slice: s, Slices: 2, HostsPerSlice: 4, HostsWanted: 8,
		State: state, MaxRestarts: 3, Created: ago(3 * time.Hour),
	}
}

// sample has one run of each kind that looks different.
func sample() fake {
	running := run("research", "train", training.Running)
	running.HostsReady, running.Restarts, running.CountedRestarts = 8, 2, 1
	running.ClusterQueue, running.Flavor, running.Priority = "research-cq", "v5e-4x4", "high"
	running.AdmittedAt, running.Started = ago(2*time.Hour), ago(110*time.Minute)
	running.Labels = map[string]string{"team": "nlp"}
	for _, tag := range []string{"suspicious", "a-tag-that-says-more-than-tables-show"} {
		key, value := jobfile.TagLabel(tag)
		running.Labels[key] = value
	}
	running.Annotations = map[string]string{jobfile.AnnotationNote: "loss spikes at step 4000", "ticket": "ML-123", "reviewed": "ada", training.AnnotationSpecHash: "abc"}
	running.SliceRuns = []training.SliceRun{
		{Index: 0, State: training.Running, NodePool: "v5e-0", HostsWanted: 4, HostsReady: 4},
		{Index: 1, State: training.Running, NodePool: "v5e-1", HostsWanted: 4, HostsReady: 3, HostsDone: 1},
	}
	running.Conditions = []training.Condition{
		{Of: "Workload", Type: "QuotaReserved", Status: true, Reason: "QuotaReserved", Message: "Quota reserved in ClusterQueue research-cq", Since: ago(2 * time.Hour)},
		{Of: "Workload", Type: "PodsReady", Status: true, Reason: "Started", Since: ago(110 * time.Minute)},
	}
	pending := run("research", "wait-for-it", training.Pending)
	pending.Reason, pending.Message = "WaitingForQuota", "couldn't assign flavors to pod set slice: insufficient unused quota for google.com/tpu in flavor v5e-4x4, 32 more needed"
	done := run("vision", "eval", training.Succeeded)
	done.Owner, done.HostsDone = "", 8
	done.Started, done.Finished = ago(2*time.Hour), ago(time.Hour)
	return fake{runs: []training.Run{running, pending, done}}
}

func nobody(target.Options) string { return "" }

func deps(f fake, width int, color bool) (Deps, func() string) {
	s, out, _ := clitest.Streams(width, color)
	return Deps{
		Streams: s, Now: func() time.Time { return now }, Account: nobody,
		Open: func(context.Context, target.Options) (Cluster, error) { return f, nil },
	}, out.String
}

func TestOutputs(t *testing.T) {
	tests := map[string]struct {
		make  func(Deps) *cobra.Command
		width int
		color bool
		args  []string
	}{
		"list.txt":          {newList, 0, false, nil},
		"list-80.txt":       {newList, 80, false, nil},
		"list-50.txt":       {newList, 50, false, nil},
		"list-color.txt":    {newList, 160, true, nil},
		"list-wide.txt":     {newList, 0, false, []string{"-o", "wide"}},
		"list-research.txt": {newList, 0, false, []string{"-n", "research"}},
		"list.json":         {newList, 0, false, []string{"-o", "json"}},
		"list-name.txt":     {newList, 0, false, []string{"-o", "name"}},
		"list-pending.yaml": {newList, 0, false, []string{"-o", "yaml", "--state", "pending"}},
		"list-none.txt":     {newList, 0, false, []string{"--state", "Failed,Gone", "--owner", "ada"}},
		"status.txt":        {newStatus, 0, false, []string{"train"}},
		"status-80.txt":     {newStatus, 80, false, []string{"train"}},
		"status.json":       {newStatus, 0, false, []string{"research/train", "-o", "json"}},
		"status-wait.txt":   {newStatus, 80, true, []string{"wait-for-it", "-n", "research"}},
		"status-done.txt":   {newStatus, 0, false, []string{"eval"}},
	}
	for golden, tt := range tests {
		t.Run(golden, func(t *testing.T) {
			d, out := deps(sample(), tt.width, tt.color)
			if err := clitest.Run(tt.make(d), tt.args...); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, golden, out())
		})
	}
}

func TestListFilters(t *testing.T) {
	for args, want := range map[string]string{
		"--state Running,SUCCEEDED": "research/train\nvision/eval\n",
		"--owner ada":               "research/train\nresearch/wait-for-it\n",
		"--queue other":             "",
		"--experiment x":            "",
		"--tag bad":                 "vision/eval\n",
		"--tag bad,good":            "",
		"-n vision":                 "vision/eval\n",
	} {
		f := sample()
		f.queues = []string{"research", "other"}
		key, value := jobfile.TagLabel("bad")
		f.runs[2].Labels = map[string]string{key: value}
		d, out := deps(f, 0, false)
		if err := clitest.Run(newList(d), append(strings.Fields(args), "-o", "name")...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out()); diff != "" {
			t.Errorf("list %s: %s", args, diff)
		}
	}
}

// What the server would read as further terms is refused, and an account is
// found by the owner that submit makes of it.
func TestListRefusesSelectors(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"--label", "sweep=bs,foo", `the value "bs,foo" of sweep`},
		{"--label", "sweep in (lr,bs)", "want KEY=VALUE"},
		{"--label", "sweep!=lr", `the key "sweep!"`},
		{"--owner", "a,foo", "want one owner or account"},
		{"--owner", "@", "want one owner or account"},
		{"--experiment", "e1,!foo", `--experiment: "e1,!foo"`},
		{"--queue", "research,foo", `--queue: "research,foo"`},
	} {
		d, _ := deps(sample(), 0, false)
		if err := clitest.Run(newList(d), tt.flag, tt.value); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v (exit code %d), want %q", tt.flag, tt.value, err, exit.Code(err), tt.want)
		}
	}
	f := sample()
	f.runs[0].Owner = jobfile.OwnerOf("ada@example.com")
	d, out := deps(f, 0, false)
	if err := clitest.Run(newList(d), "--owner", "ada@example.com", "-o", "name"); err != nil || out() != "research/train\n" {
		t.Errorf("%q, %v", out(), err)
	}
}

func TestAnEmptyListIsAnArray(t *testing.T) {
	d, out := deps(fake{}, 0, false)
	if err := clitest.Run(newList(d), "-o", "json"); err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(out()), &list); err != nil || list == nil {
		t.Errorf("%q: %v", out(), err)
	}
}

// An empty list says where it looked, and whether jobs could be there at all.
func TestNoJobs(t *testing.T) {
	queued, places := sample(), sample()
	queued.queues = []string{"research", "q"}
	places.namespaces, places.queues = []string{"default", "research", "vision"}, []string{"research", "research", "vision"}
	tests := map[string]struct {
		source fake
		args   []string
		want   string
	}{
		"no such namespace":   {places, []string{"-n", "reserch"}, "there is no namespace reserch; did you mean research?"},
		"no such queue":       {places, []string{"--queue", "q"}, "there is no queue q; there is research, vision"},
		"nor near it":         {places, []string{"--queue", "visio", "-n", "default"}, "there is no queue visio in namespace default; did you mean vision?"},
		"nowhere":             {fake{}, nil, "No training jobs.\n"},
		"not in a namespace":  {sample(), []string{"-n", "nope"}, "No training jobs in namespace nope.\n"},
		"nor of a queue":      {queued, []string{"-n", "vision", "--queue", "q"}, "No training jobs in namespace vision with queue q.\n"},
		"nothing to run them": {fake{bare: true}, nil, "Cluster c has no JobSet controller, and so no training jobs: tpu_job_controllers installs it.\n"},
		"none may be seen":    {fake{listErr: apierrors.NewForbidden(schema.GroupResource{Resource: "jobsets"}, "", errors.New("no"))}, nil, `looking for jobs in all namespaces (--namespace looks in one only): jobsets is forbidden: no`},
		"for programs":        {fake{bare: true}, []string{"-o", "json"}, "[]\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, out := deps(tt.source, 0, false)
			got := ""
			if err := clitest.Run(newList(d), tt.args...); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got+out()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Clients of a Pathways job find where its proxy is.
func TestStatusOfPathways(t *testing.T) {
	r := run("research", "head", training.Running)
	r.ProxyAddress = training.ProxyAddress("head")
	for format, want := range map[string]string{"table": "proxy address       grpc://head-head-0-0.head:29000\n", "json": `"proxy_address": "grpc://head-head-0-0.head:29000"`} {
		d, out := deps(fake{runs: []training.Run{r}}, 0, false)
		if err := clitest.Run(newStatus(d), "head", "-o", format); err != nil || !strings.Contains(out(), want) {
			t.Errorf("%v\n%s", err, out())
		}
	}
}

func TestStatusFinds(t *testing.T) {
	twice := sample()
	twice.runs = append(twice.runs, run("vision", "train", training.Pending))
	forbidden := fake{listErr: errors.New("jobsets is forbidden")}
	tests := map[string]struct {
		source fake
		args   []string
		usage  bool
		want   string // in the error
	}{
		"a slip of the pen":         {sample(), []string{"trian"}, false, "there is no job trian in any namespace; did you mean research/train?"},
		"a part of a name":          {sample(), []string{"wait"}, false, "did you mean research/wait-for-it?"},
		"in another namespace":      {sample(), []string{"-n", "vision", "train"}, false, "there is no job train in namespace vision of cluster c; there is one in namespace research: -n research"},
		"in two others":             {twice, []string{"-n", "default", "train"}, false, "; there are some in namespaces research, vision"},
		"not in that namespace":     {sample(), []string{"-n", "vision", "tran"}, false, "there is no job tran in namespace vision of cluster c; there is vision/eval"},
		"nothing there":             {fake{}, []string{"train"}, false, "there is no job train in any namespace; tpuctl list shows all jobs"},
		"no controller":             {fake{bare: true}, []string{"train"}, false, "there is no job train in any namespace\nCluster c has no JobSet controller"},
		"two of a name":             {twice, []string{"train"}, true, "in namespaces research, vision: choose one with --namespace"},
		"no name":                   {fake{runs: sample().runs[:1]}, []string{""}, true, "a job's name is empty"},
		"too much of a path":        {sample(), []string{"a/b/c"}, true, "want NAME or NAMESPACE/NAME"},
		"two namespaces given":      {sample(), []string{"research/train", "-n", "vision"}, true, "--namespace says vision"},
		"listing all not permitted": {forbidden, []string{"train"}, false, "--namespace looks in one only"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, _ := deps(tt.source, 0, false)
			err := clitest.Run(newStatus(d), tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if usage := exit.Code(err) == exit.Usage; usage != tt.usage {
				t.Errorf("%v ends with exit code %d", err, exit.Code(err))
			}
		})
	}
}

// Where the cluster is Google's, the console's link is shown whole, however
// narrow the terminal is.
func TestConsoleLink(t *testing.T) {
	f := sample()
	f.console = "https://console.cloud.google.com/logs/query;query=" + strings.Repeat("x", 60) + "/"
	d, out := deps(f, 50, false)
	if err := clitest.Run(newStatus(d), "train"); err != nil || !strings.Contains(out(), "  console             "+f.console+"research/train\n") {
		t.Errorf("%v\n%s", err, out())
	}
	d, out = deps(f, 0, false)
	if err := clitest.Run(newStatus(d), "train", "-o", "json"); err != nil || !strings.Contains(out(), `"console": "`+f.console+`research/train"`) {
		t.Errorf("%v\n%s", err, out())
	}
	f.acts = &acts{}
	for format, want := range map[string]string{"table": "\nIts logs in the console: " + f.console + "research/train\n", "json": `"console": "` + f.console + `research/train"`} {
		d, _, out, _ := acting(f)
		if err := clitest.Run(newSubmit(d), append(usual, "--queue", "q", "-o", format)...); err != nil || !strings.Contains(out(), want) {
			t.Errorf("%v\n%s", err, out())
		}
	}
}

func TestUnknownStateIsAUsageError(t *testing.T) {
	d, _ := deps(sample(), 0, false)
	err := clitest.Run(newList(d), "--state", "Run")
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "Pending, Admitted") {
		t.Errorf("got %v, exit code %d", err, exit.Code(err))
	}
}

func TestStatesOfOtherTools(t *testing.T) {
	for word, want := range map[string]string{
		"QUEUED": "; here that is Pending", "FINISHED": "; here that is Succeeded,Failed", "SUCCESSFUL": "; here that is Succeeded",
		"done": "; here that is Succeeded,Failed", "everything": "; tpuctl list without --state shows all", "gon": "Failed, GONE", "faild": "; did you mean Failed?",
	} {
		if _, err := parseStates([]string{word}); exit.Code(err) != exit.Usage || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", word, err, want)
		}
	}
	for typed, want := range map[string]string{"Failed,su": "Failed,Suspended Failed,Succeeded", "pend": "Pending", "x": ""} {
		got, _ := completeStates(nil, nil, typed)
		if strings.Join(got, " ") != want {
			t.Errorf("completion of %s: %v, want %s", typed, got, want)
		}
	}
}

func TestAgeOfTheFuture(t *testing.T) {
	if got := output.Age(now, now.Add(time.Minute)); got != "0s" {
		t.Errorf("an object made by a clock ahead of ours is %q old", got)
	}
}

func TestCompletion(t *testing.T) {
	d, _ := deps(sample(), 0, false)
	o := &oneJob{Deps: d}
	cmd := &cobra.Command{}
	cmd.SetContext(context.Background())
	got, directive := o.complete(cmd, nil, "")
	want := []string{"eval\tSucceeded, 2 x v5litepod-16", "train\tRunning, 2 x v5litepod-16", "wait-for-it\tPending, 2 x v5litepod-16"}
	if diff := cmp.Diff(want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%s (directive %d)", diff, directive)
	}
	for typed, want := range map[string]string{"t": "train", "research/t": "research/train", "x": ""} {
		got, _ := o.complete(cmd, nil, typed)
		if names, _, _ := strings.Cut(strings.Join(got, " "), "\t"); names != want {
			t.Errorf("%q: %q, want %q", typed, names, want)
		}
	}
	if got, _ := completeJobs(cmd, d, target.Options{}, "", []string{"train", "eval"}, ""); len(got) != 1 {
		t.Errorf("names that are given already are offered: %q", got)
	}
}

func has(labels, want map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
