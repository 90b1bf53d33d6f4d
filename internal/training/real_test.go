package training_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

func node(name string, labels map[string]string, slice *accelerator.Slice) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("112"), corev1.ResourceMemory: resource.MustParse("192Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if slice != nil {
		n.Status.Capacity[accelerator.ResourceName] = *resource.NewQuantity(int64(slice.ChipsPerHost), resource.DecimalSI)
		n.Spec.Taints = []corev1.Taint{{Key: accelerator.TaintKey, Value: accelerator.TaintValue, Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Status.Allocatable = n.Status.Capacity
	return n
}

func v5e16(t *testing.T) accelerator.Slice {
	t.Helper()
	s, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func job(t *testing.T, name string) training.Spec {
	return training.Spec{
		Namespace: "research", Name: name, Queue: "research", Slice: v5e16(t), Slices: 2,
		Image: "train:1", Command: []string{"python", "train.py"}, Restart: training.DefaultRestart(),
	}
}

// The life of jobs on the real controllers.
func TestJobsOnTheRealControllers(t *testing.T) {
	cl := cluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	submit := func(t *testing.T, s training.Spec) types.NamespacedName {
		t.Helper()
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, err := training.Submit(ctx, cl, s); err != nil {
			t.Fatal(err)
		}
		return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	}
	wait := func(t *testing.T, key types.NamespacedName, level training.Level) (training.Run, []training.State) {
		t.Helper()
		limit, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var seen []training.State
		r, err := training.Wait(limit, cl, key, level, func(r training.Run) {
			if len(seen) == 0 || seen[len(seen)-1] != r.State {
				seen = append(seen, r.State)
				t.Logf("%s is %s %s %s (%d/%d hosts ready, %d done)", key.Name, r.State, r.Reason, r.Message, r.HostsReady, r.HostsWanted, r.HostsDone)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return r, seen
	}
	remove := func(t *testing.T, key types.NamespacedName) {
		t.Helper()
		limit, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := training.Delete(limit, cl, key.Namespace, key.Name, ""); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("runs to its end, one slice per node pool", func(t *testing.T) {
		s := job(t, "train")
		s.Priority = "medium"
		s.PodAnnotations = map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "4s", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "4s"}
		key := submit(t, s)
		r, _ := wait(t, key, training.LevelRunning)
		pools := map[string]bool{}
		for _, sl := range r.SliceRuns {
			pools[sl.NodePool] = true
		}
		if diff := cmp.Diff(map[string]bool{"v5e-0": true, "v5e-1": true}, pools); diff != "" {
			t.Errorf("node pools (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(occupied(t, r), use(ctx, t, cl)); diff != "" {
			t.Errorf("occupancy (-want +got):\n%s", diff)
		}
		if r.State != training.Running || r.HostsReady != 8 || r.HostsWanted != 8 {
			t.Errorf("got %s with %d of %d hosts ready, want Running with 8 of 8", r.State, r.HostsReady, r.HostsWanted)
		}
		r, _ = wait(t, key, training.LevelCompleted)
		if r.State != training.Succeeded || r.HostsDone != 8 || r.Flavor != "v5e-4x4" || r.Restarts != 0 || r.Accelerator != "v5litepod-16" || r.Finished.IsZero() {
			t.Errorf("got %+v", r)
		}
		runs, err := training.List(ctx, cl, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != 1 || runs[0].State != training.Succeeded || runs[0].Flavor != "v5e-4x4" {
			t.Errorf("List: %+v", runs)
		}
		for pool, u := range use(ctx, t, cl) {
			if u.Busy() || u.HostsReady != 4 {
				t.Errorf("after the job's end node pool %s is %+v", pool, u)
			}
		}
		remove(t, key)
		if _, err := training.Get(ctx, cl, key.Namespace, key.Name); !errors.As(err, new(*training.NotFoundError)) {
			t.Errorf("after Delete: %v", err)
		}
	})

	t.Run("a second submission of the same job is recognised", func(t *testing.T) {
		s := job(t, "twice")
		s.Held = true // it need not run
		key := submit(t, s)
		_, err := training.Submit(ctx, cl, s)
		var exists *training.ExistsError
		if !errors.As(err, &exists) || !exists.Same {
			t.Errorf("got %v, want an ExistsError of the same spec", err)
		}
		s.Image = "train:2"
		if _, err = training.Submit(ctx, cl, s); !errors.As(err, &exists) || exists.Same {
			t.Errorf("got %v, want an ExistsError of another spec", err)
		}
		remove(t, key)
	})

	t.Run("a queue that is not there is named, and those that are", func(t *testing.T) {
		s := job(t, "lost")
		s.Queue = "reserch"
		_, err := training.Submit(ctx, cl, s)
		want := &training.QueueNotFoundError{Cluster: "training", Namespace: "research", Queue: "reserch", Others: []string{"research"}}
		var got *training.QueueNotFoundError
		if !errors.As(err, &got) {
			t.Fatalf("got %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})

	t.Run("waits whole when not all its slices are free, and changes in place", func(t *testing.T) {
		one := job(t, "one")
		one.Slices, one.Priority = 1, "medium"
		one.PodAnnotations = map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "1h"}
		one.Held = true
		first := submit(t, one)
		active := func(t *testing.T, active bool) {
			t.Helper()
			if err := training.SetActive(ctx, cl, first, active, "research"); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := training.Get(ctx, cl, first.Namespace, first.Name); err != nil || r.State != training.Suspended {
			t.Errorf("created suspended, it is %s (%v)", r.State, err)
		}
		active(t, true)
		wait(t, first, training.LevelRunning)
		two := job(t, "two")
		two.Priority = "low"
		second := submit(t, two)
		if err := until(ctx, func() bool {
			r, err := training.Get(ctx, cl, second.Namespace, second.Name)
			return err == nil && r.State == training.Pending && r.Reason == kueue.WorkloadQuotaReservedReasonWaitingForQuota && r.HostsReady == 0
		}); err != nil {
			r, err := training.Get(ctx, cl, second.Namespace, second.Name)
			t.Fatalf("want Pending (WaitingForQuota), got %+v %v", r, err)
		}
		changed := two
		changed.Priority, changed.Labels, changed.TTL = "high", map[string]string{"team": "a"}, ptr.To(time.Hour)
		if err := training.Change(ctx, cl, two, changed); err != nil {
			t.Fatal(err)
		}
		r, err := training.Get(ctx, cl, second.Namespace, second.Name)
		if err != nil {
			t.Fatal(err)
		}
		if r.Priority != "high" || r.Labels["team"] != "a" || r.TTL == nil || *r.TTL != time.Hour {
			t.Errorf("after Change: %+v", r)
		}
		brieflyListed(ctx, t, cl)
		// Through the workload, not through spec.suspend.
		active(t, false)
		brieflyListed(ctx, t, cl)
		if r, _ := wait(t, second, training.LevelCompleted); r.State != training.Succeeded {
			t.Errorf("the waiting job ended %s: %s", r.State, r.Message)
		}
		if r, err := training.Get(ctx, cl, first.Namespace, first.Name); err != nil || r.State != training.Suspended {
			t.Errorf("the suspended job is %s (%v)", r.State, err)
		}
		active(t, true)
		wait(t, first, training.LevelRunning)
		remove(t, first)
		remove(t, second)
	})

	t.Run("further jobs start in order, and the main job decides", func(t *testing.T) {
		s := job(t, "several")
		s.Files = map[string]string{"/etc/train.yaml": "lr: 1"}
		s.DependsOn = []training.Dependency{{Job: "prepare", Until: training.UntilComplete}}
		s.Jobs = []training.Job{
			{Name: "prepare", Pods: 2, OnFailure: training.FailureFails},
			{Name: "uploader", Pods: 1, DependsOn: []training.Dependency{{Job: training.SliceJob, Until: training.UntilReady}}},
		}
		key := submit(t, s)
		r, _ := wait(t, key, training.LevelCompleted)
		if r.State != training.Succeeded || r.HostsDone != 8 {
			t.Errorf("got %s (%s: %s) with %d hosts done", r.State, r.Reason, r.Message, r.HostsDone)
		}
		js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if found, err := cl.Fetch(ctx, js); err != nil || !found {
			t.Fatal(found, err)
		}
		back := training.FromJobSet(js)
		if err := training.ReadFiles(ctx, cl, js, &back); err != nil || back.Hash() != s.Hash() {
			t.Errorf("read back it is another job (%v): %+v", err, back)
		}
		var pods corev1.PodList
		if err := cl.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": key.Name}); err != nil {
			t.Fatal(err)
		}
		started := map[string]time.Time{}
		for i := range pods.Items {
			name, at := pods.Items[i].Labels["jobset.sigs.k8s.io/replicatedjob-name"], pods.Items[i].CreationTimestamp.Time
			if had, ok := started[name]; !ok || at.Before(had) {
				started[name] = at
			}
		}
		if p, m, u := started["prepare"], started["slice"], started["uploader"]; p.IsZero() || m.Before(p) || !u.IsZero() && u.Before(m) {
			t.Errorf("started at %v", started)
		}
		remove(t, key)
		if err := until(ctx, func() bool {
			var left corev1.ConfigMapList
			return cl.List(ctx, &left, client.InNamespace(key.Namespace), client.MatchingLabels{training.LabelRunID: key.Name}) == nil && len(left.Items) == 0
		}); err != nil {
			t.Error("the files outlive their job")
		}
	})

	t.Run("disruptions cost nothing, crashes do", func(t *testing.T) { disruptions(ctx, t, cl, stage(t)) })
}

// brieflyListed compares the listing of many runs with that of few, on jobs that
// run, wait, are suspended, start at once or have ended.
func brieflyListed(ctx context.Context, t *testing.T, cl *kube.Client) {
	t.Helper()
	queries := []training.Query{{}, {Namespace: "research", Queue: "research"}, {Labels: map[string]string{"team": "a"}}, {Owner: "nobody"}}
	clients := map[string]*kube.Client{
		// The table says everything: the jobs' metadata is most of what a long
		// list would transfer.
		"our columns": through(t, cl, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/jobsets") && !strings.Contains(r.Header.Get("Accept"), "as=Table") && r.URL.Query().Get("limit") == "" {
				t.Errorf("%s was read as %s", r.URL, r.Header.Get("Accept"))
			}
			return next.RoundTrip(r)
		}),
		"JobSet's columns alone": through(t, cl, withoutColumns),
	}
	for name, brief := range clients {
		t.Run(name, func(t *testing.T) { brieflyListedBy(ctx, t, cl, brief, queries) })
	}
}

// through is a client of the same cluster whose requests send carries out.
func through(t *testing.T, cl *kube.Client, send func(http.RoundTripper, *http.Request) (*http.Response, error)) *kube.Client {
	t.Helper()
	cfg := rest.CopyConfig(cl.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) { return send(next, r) })
	})
	other, err := kube.ForConfig(cl.Name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// withoutColumns answers as if somebody else had installed JobSet.
func withoutColumns(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || !strings.Contains(r.Header.Get("Accept"), "as=Table") {
		return resp, err
	}
	defer resp.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(resp.Body).Decode(&table); err != nil {
		return nil, err
	}
	upstream := len(table.ColumnDefinitions) - len(training.Columns())
	table.ColumnDefinitions = table.ColumnDefinitions[:upstream]
	for i := range table.Rows {
		table.Rows[i].Cells = table.Rows[i].Cells[:upstream]
	}
	text, err := json.Marshal(table)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return resp, err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func brieflyListedBy(ctx context.Context, t *testing.T, cl, brief *kube.Client, queries []training.Query) {
	t.Helper()
	for _, q := range queries {
		// What stands may change between two looks: once they agree they do.
		var diff string
		if err := until(ctx, func() bool {
			got, ok, err := training.Brief(ctx, brief, q, map[string]bool{})
			if err != nil || !ok {
				diff = fmt.Sprint("not brief: ", ok, err)
				return false
			}
			listing, err := training.Select(ctx, cl, q)
			if err != nil {
				diff = err.Error()
				return false
			}
			show := func(runs []training.Run) (out []string) {
				for _, r := range training.Sorted(runs) {
					out = append(out, fmt.Sprintf("%s/%s %s %d x %s of %d in %s, %d restarts, made %s, class %q", r.Namespace, r.Name, r.State, r.Slices, r.Accelerator, r.HostsWanted, r.Queue, r.Restarts, r.Created, r.Priority))
				}
				return out
			}
			diff = cmp.Diff(show(listing.Runs), show(got))
			return diff == ""
		}); err != nil {
			t.Errorf("%+v: whole and brief listings differ (-whole +brief):\n%s", q, diff)
		}
	}
}

func use(ctx context.Context, t *testing.T, cl *kube.Client) map[string]training.PoolUse {
	t.Helper()
	got, err := training.Occupancy(ctx, cl)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// occupied is the use of both slices when r alone runs, by its own account of
// where it was placed.
func occupied(t *testing.T, r training.Run) map[string]training.PoolUse {
	s := v5e16(t)
	want := map[string]training.PoolUse{}
	for _, sl := range r.SliceRuns {
		want[sl.NodePool] = training.PoolUse{
			Hosts: 4, HostsReady: 4, Accelerator: s.AcceleratorLabel, Topology: s.Topology.String(), Slice: s,
			Jobs: []training.Occupant{{Namespace: r.Namespace, Name: r.Name, Slice: sl.Index, Hosts: 4}},
		}
	}
	return want
}

func until(ctx context.Context, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}
