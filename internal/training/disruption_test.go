package training_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

const (
	spotSlices = 4
	spotHosts  = 4
)

// spotJob is a run of four slices of four hosts, on hosts that things happen to.
type spotJob struct {
	ctx  context.Context
	t    *testing.T
	cl   *kube.Client
	cp   *controlplane.ControlPlane
	key  types.NamespacedName
	spec training.Spec
}

// spot prepares the hosts and the queue; it may be called again.
func spot(ctx context.Context, t *testing.T, cl *kube.Client, cp *controlplane.ControlPlane) {
	t.Helper()
	slice, err := accelerator.Resolve("v6e-16")
	if err != nil {
		t.Fatal(err)
	}
	for i := range spotSlices {
		pool := fmt.Sprintf("spot-%d", i)
		var hosts []*corev1.Node
		for h := range slice.Hosts {
			labels := slice.NodeLabels()
			labels[accelerator.LabelNodePool] = pool
			hosts = append(hosts, node(fmt.Sprintf("%s-%d", pool, h), labels, &slice))
		}
		if err := cp.Nodes(ctx, pool, hosts); err != nil {
			t.Fatal(err)
		}
	}
	q := queue.Queue{Name: "spot", Namespaces: []string{"spot"}, Quotas: []queue.Quota{{Flavor: "v6e", Slice: slice, Slices: spotSlices}}}
	objects := append(queue.Namespace{Name: "spot"}.Objects(), queue.Flavor{Name: "v6e", Slice: slice}.Object(), q.ClusterQueue(), q.LocalQueue("spot"))
	for _, o := range objects {
		if err := cl.Apply(ctx, o, kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// submit starts a run that lasts until it is told to end.
func submitSpot(ctx context.Context, t *testing.T, cl *kube.Client, cp *controlplane.ControlPlane, name string, change func(*training.Spec)) *spotJob {
	t.Helper()
	slice, err := accelerator.Resolve("v6e-16")
	if err != nil {
		t.Fatal(err)
	}
	s := training.Spec{
		Namespace: "spot", Name: name, Queue: "spot", Slice: slice, Slices: spotSlices,
		Image: "train:1", Command: []string{"python", "train.py"}, Restart: training.DefaultRestart(), OutputDir: "gs://runs/",
		PodAnnotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "10h", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "10h"},
	}
	change(&s)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := training.Submit(ctx, cl, s); err != nil {
		t.Fatal(err)
	}
	return &spotJob{ctx: ctx, t: t, cl: cl, cp: cp, key: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, spec: s}
}

// eventually polls until check returns nil, or fails with what it said last.
func (j *spotJob) eventually(within time.Duration, what string, check func() error) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.ctx, within)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			j.t.Fatalf("%s: not within %s: %v", what, within, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (j *spotJob) run() training.Run {
	j.t.Helper()
	var r training.Run
	j.eventually(time.Minute, "reading the run", func() (err error) {
		r, err = training.Get(j.ctx, j.cl, j.key.Namespace, j.key.Name)
		return err
	})
	return r
}

func (j *spotJob) pods() []corev1.Pod {
	j.t.Helper()
	var pods corev1.PodList
	j.eventually(time.Minute, "listing the run's pods", func() error {
		return j.cl.List(j.ctx, &pods, client.InNamespace(j.key.Namespace), client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": j.key.Name})
	})
	return pods.Items
}

// steady waits until every host of the run runs its newest attempt, which it
// returns.
func (j *spotJob) steady() int {
	j.t.Helper()
	attempt := 0
	j.eventually(3*time.Minute, "every host runs", func() error {
		r := j.run()
		if r.State != training.Running {
			return fmt.Errorf("the run is %s (%s): %s", r.State, r.Reason, r.Message)
		}
		attempt = r.Restarts
		where := map[string]bool{}
		for _, p := range j.pods() {
			if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
				continue
			}
			if got := p.Labels[training.LabelRestartAttempt]; got != strconv.Itoa(attempt) {
				return fmt.Errorf("pod %s is of attempt %s, want %d", p.Name, got, attempt)
			}
			where[p.Labels["jobset.sigs.k8s.io/job-index"]+"/"+p.Labels["batch.kubernetes.io/job-completion-index"]] = true
		}
		if len(where) != j.spec.Slices*spotHosts {
			return fmt.Errorf("%d hosts run", len(where))
		}
		return nil
	})
	return attempt
}

// exit ends programs at once; those that have ended already are no matter.
func (j *spotJob) exit(slice, host, code int, log string) {
	j.t.Helper()
	_, err := j.cp.Exit(j.ctx, controlplane.Exit{Namespace: j.key.Namespace, Job: j.key.Name, Slice: slice, Host: host, Code: code, Log: log})
	if err != nil && !errors.As(err, new(*controlplane.HostError)) {
		j.t.Fatal(err)
	}
}

func (j *spotJob) nodeOf(slice, host int) string {
	j.t.Helper()
	pods, err := j.cp.PodsOf(j.ctx, j.key.Namespace, j.key.Name, slice, host)
	if err != nil {
		j.t.Fatal(err)
	}
	return pods[0].Node
}

// failed waits until so many pods of a slice have failed.
func (j *spotJob) failed(slice, n int) {
	j.t.Helper()
	j.eventually(time.Minute, "peers have failed", func() error {
		have := 0
		for _, p := range j.pods() {
			if p.Labels["jobset.sigs.k8s.io/job-index"] == strconv.Itoa(slice) && p.Status.Phase == corev1.PodFailed {
				have++
			}
		}
		if have < n {
			return fmt.Errorf("%d of %d", have, n)
		}
		return nil
	})
}

// restarted waits for an attempt after this one. A host that is lost comes back
// once its pods are due to go: only its kubelet can end them.
func (j *spotJob) restarted(attempt int, host string, kind controlplane.Disruption) {
	j.t.Helper()
	back := kind != controlplane.Lose
	j.eventually(4*time.Minute, fmt.Sprintf("a restart after %q of %s", kind, host), func() error {
		if !back {
			for _, p := range j.pods() {
				if p.Spec.NodeName == host && p.DeletionTimestamp != nil {
					if err := j.cp.Mend(j.ctx, host); err != nil {
						return err
					}
					back = true
				}
			}
		}
		if r := j.run(); r.Restarts <= attempt {
			return fmt.Errorf("the run is %s (%s): %s", r.State, r.Reason, r.Message)
		}
		return nil
	})
	if kind != controlplane.Evict && kind != controlplane.Lose {
		if err := j.cp.Mend(j.ctx, host); err != nil {
			j.t.Fatal(err)
		}
	}
}

func (j *spotJob) finish() training.Run {
	j.t.Helper()
	j.exit(-1, -1, 0, "")
	j.eventually(time.Minute, "the run succeeds", func() error {
		if r := j.run(); r.State != training.Succeeded {
			return fmt.Errorf("it is %s (%s): %s", r.State, r.Reason, r.Message)
		}
		return nil
	})
	return j.run()
}

func (j *spotJob) remove() {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.ctx, time.Minute)
	defer cancel()
	if err := training.Delete(ctx, j.cl, j.key.Namespace, j.key.Name, ""); err != nil {
		j.t.Fatal(err)
	}
}

// disruptions is the part of the soak that is quick, on a cluster that others
// use as well.
func disruptions(ctx context.Context, t *testing.T, cl *kube.Client, cp *controlplane.ControlPlane) {
	spot(ctx, t, cl, cp)
	t.Cleanup(func() {
		for i := range spotSlices {
			if err := cp.Nodes(context.WithoutCancel(ctx), fmt.Sprintf("spot-%d", i), nil); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("three disruptions, with peers that fail first", func(t *testing.T) {
		j := submitSpot(ctx, t, cl, cp, "soaked", func(s *training.Spec) { s.Restart.MaxRestarts = 1 })
		for n, kind := range []controlplane.Disruption{controlplane.Evict, controlplane.Shutdown, controlplane.Preempt} {
			if got := j.steady(); got != n {
				t.Fatalf("attempt %d runs, want %d", got, n)
			}
			slice := n % spotSlices
			host := j.nodeOf(slice, n)
			for peer := range spotHosts {
				if peer != n {
					j.exit(slice, peer, 1, "")
				}
			}
			j.failed(slice, spotHosts-1)
			if err := cp.Disrupt(ctx, host, kind); err != nil {
				t.Fatal(err)
			}
			j.restarted(n, host, kind)
		}
		if got := j.steady(); got != 3 {
			t.Errorf("attempt %d runs, want 3", got)
		}
		j.environment("3")
		if r := j.finish(); r.Restarts != 3 || r.CountedRestarts != 0 {
			t.Errorf("%d restarts, %d of them counted: want 3 and 0", r.Restarts, r.CountedRestarts)
		}
		j.remove()
	})

	t.Run("side by side", func(t *testing.T) {
		crashes(ctx, t, cl, cp)
		policies(ctx, t, cl, cp)
	})
}

// crashes are what programs do themselves.
func crashes(ctx context.Context, t *testing.T, cl *kube.Client, cp *controlplane.ControlPlane) {
	t.Run("a fatal exit code on one host", func(t *testing.T) {
		t.Parallel()
		j := submitSpot(ctx, t, cl, cp, "typo", func(s *training.Spec) { s.Slices = 2 })
		j.steady()
		host := j.nodeOf(1, 2)
		j.exit(1, 2, 2, "usage: train.py [--steps N]\ntrain.py: error: unrecognized arguments: --stpes")
		j.eventually(30*time.Second, "the run fails", func() error {
			if r := j.run(); r.State != training.Failed {
				return fmt.Errorf("it is %s", r.State)
			}
			return nil
		})
		r := j.run()
		want := "Slice 1, host 2 (" + host + ") ended with exit code 2; it last said:\nusage: train.py [--steps N]\ntrain.py: error: unrecognized arguments: --stpes"
		if r.Reason != training.ReasonFatalExitCode || r.Restarts != 0 || !strings.HasSuffix(r.Message, want) {
			t.Errorf("%s after %d restarts: %s", r.Reason, r.Restarts, r.Message)
		}
		if f := r.Failure; f == nil || r.Finished.Sub(f.Finished) > 10*time.Second {
			t.Errorf("failed at %s, by %+v", r.Finished, f)
		}
		j.remove()
	})

	t.Run("crashes are counted, then fail", func(t *testing.T) {
		t.Parallel()
		j := submitSpot(ctx, t, cl, cp, "crashes", func(s *training.Spec) {
			s.Slices, s.Restart.MaxRestarts = 2, 1
		})
		for n := range 2 {
			if got := j.steady(); got != n {
				t.Fatalf("attempt %d runs, want %d", got, n)
			}
			j.exit(1, -1, 1, "Traceback: it broke")
			if n == 0 {
				j.restarted(0, "slice 1", controlplane.Evict)
			}
		}
		j.eventually(time.Minute, "the run fails", func() error {
			if r := j.run(); r.State != training.Failed {
				return fmt.Errorf("it is %s", r.State)
			}
			return nil
		})
		r := j.run()
		if r.Reason != training.ReasonTooManyRestarts || r.CountedRestarts != 1 || r.Failure == nil || r.Failure.Slice != 1 || r.Failure.ExitCode != 1 || r.Failure.Log == "" {
			t.Errorf("%s with %d counted restarts by %+v: %s", r.Reason, r.CountedRestarts, r.Failure, r.Message)
		}
		j.remove()
	})

	t.Run("a run that takes too long", func(t *testing.T) {
		t.Parallel()
		j := submitSpot(ctx, t, cl, cp, "late", func(s *training.Spec) {
			s.Slices, s.MaxRunTime = 1, ptr.To(time.Second)
		})
		j.eventually(time.Minute, "the run is failed", func() error {
			if r := j.run(); r.State != training.Failed || r.Reason != training.ReasonTimedOut {
				return fmt.Errorf("it is %s (%s): %s", r.State, r.Reason, r.Message)
			}
			return nil
		})
		j.remove()
	})
}

// environment checks what every host is told about its run.
func (j *spotJob) environment(attempt string) {
	j.t.Helper()
	for _, p := range j.pods() {
		got := map[string]string{}
		for _, e := range p.Spec.Containers[0].Env {
			got[e.Name] = e.Value
			if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
				key, _, _ := strings.Cut(strings.TrimPrefix(e.ValueFrom.FieldRef.FieldPath, "metadata.labels['"), "'")
				got[e.Name] = p.Labels[key]
			}
		}
		if got[training.EnvRunID] != j.key.Name || got[training.EnvAttempt] != attempt || got[training.EnvOutputDir] != "gs://runs/"+j.key.Name {
			j.t.Errorf("pod %s has the environment %v", p.Name, got)
		}
	}
}

// podsOf are the pods that now run on hosts of a slice.
func (j *spotJob) podsOf(slice int, hosts []int) []corev1.Pod {
	j.t.Helper()
	return slices.DeleteFunc(j.pods(), func(p corev1.Pod) bool {
		host, err := strconv.Atoi(p.Labels["batch.kubernetes.io/job-completion-index"])
		return err != nil || p.DeletionTimestamp != nil || p.Labels["jobset.sigs.k8s.io/job-index"] != strconv.Itoa(slice) || !slices.Contains(hosts, host)
	})
}

// fail lets the programs of these very pods exit 1; those of a later attempt are
// no peers of the host that was disrupted.
func (j *spotJob) fail(pods []corev1.Pod) {
	j.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"pod-fail.stage.kwok.x-k8s.io/exit-code":"1","pod-fail.stage.kwok.x-k8s.io/delay":"0s"}}}`))
	for i := range pods {
		if err := client.IgnoreNotFound(j.cl.Patch(j.ctx, &pods[i], patch)); err != nil {
			j.t.Fatal(err)
		}
	}
}
