package training_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// onStage submits a job to the shared control plane, waits, and removes it when
// the test ends.
func onStage(t *testing.T, s training.Spec) (*kube.Client, func(training.Level) training.Run) {
	t.Helper()
	cl := cluster(t)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := training.Submit(t.Context(), cl, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := training.Delete(ctx, cl, s.Namespace, s.Name, ""); err != nil {
			t.Error(err)
		}
	})
	return cl, func(level training.Level) training.Run {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := training.Wait(ctx, cl, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, level, func(training.Run) {})
		if err != nil {
			t.Fatalf("waiting until %s: %v; it is %s (%s: %s)", level, err, r.State, r.Reason, r.Message)
		}
		return r
	}
}

// podsOf lists the pods of a job that are not being deleted, by replicated job.
func podsOf(t *testing.T, cl *kube.Client, name string) map[string][]corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := cl.List(t.Context(), &pods, client.InNamespace("research"), client.MatchingLabels{jobset.JobSetNameKey: name}); err != nil {
		t.Fatal(err)
	}
	by := map[string][]corev1.Pod{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			rj := p.Labels[jobset.ReplicatedJobNameKey]
			by[rj] = append(by[rj], p)
		}
	}
	return by
}

// A Pathways job is admitted by a queue of chips, head and workers run, and the
// end of the program in the head is the end of the run, although its workers go on.
func TestPathwaysOnTheRealControllers(t *testing.T) {
	s := job(t, "pathways")
	s.Pathways = &training.Pathways{Scratch: "gs://scratch/pathways", ColocatedPython: "python:1"}
	// The workers are servers: they end when they are ended.
	s.Overrides = `{"spec":{"replicatedJobs":[{"name":"slice","template":{"spec":{"template":{"metadata":{"annotations":{` +
		`"pod-complete.stage.kwok.x-k8s.io/delay":"1h","pod-complete.stage.kwok.x-k8s.io/jitter-delay":"1h"}}}}}},` +
		`{"name":"head","template":{"spec":{"template":{"metadata":{"annotations":{` +
		`"pod-complete.stage.kwok.x-k8s.io/delay":"6s","pod-complete.stage.kwok.x-k8s.io/jitter-delay":"6s"}}}}}}]}}`
	cl, wait := onStage(t, s)
	r := wait(training.LevelRunning)
	if r.State != training.Running || r.HostsReady != 8 || r.ProxyAddress != "grpc://pathways-head-0-0.pathways:29000" {
		t.Errorf("got %s with %d hosts ready, proxy at %q", r.State, r.HostsReady, r.ProxyAddress)
	}
	pools := map[string]bool{}
	for _, sl := range r.SliceRuns {
		pools[sl.NodePool] = true
	}
	if diff := cmp.Diff(map[string]bool{"v5e-0": true, "v5e-1": true}, pools); diff != "" {
		t.Errorf("node pools (-want +got):\n%s", diff)
	}
	pods := podsOf(t, cl, "pathways")
	if len(pods[training.HeadJob]) != 1 || len(pods[training.SliceJob]) != 8 {
		t.Fatalf("%d heads and %d workers", len(pods[training.HeadJob]), len(pods[training.SliceJob]))
	}
	if head := pods[training.HeadJob][0]; head.Spec.NodeName != "system-0" || len(head.Spec.InitContainers) != 2 {
		t.Errorf("the head is on %s with %d sidecars", head.Spec.NodeName, len(head.Spec.InitContainers))
	}
	r = wait(training.LevelCompleted)
	if r.State != training.Succeeded || r.Restarts != 0 {
		t.Errorf("got %s (%s: %s), %d restarts", r.State, r.Reason, r.Message, r.Restarts)
	}
}

// Further jobs that ask for cpu and memory do not keep a queue of chips from
// admitting a job, whatever they are called.
func TestResourcesOfFurtherJobs(t *testing.T) {
	s := job(t, "resources")
	s.Resources = training.DefaultServerResources
	s.Jobs = []training.Job{{Name: "eval", Pods: 1, Resources: training.DefaultServerResources}, {Name: "upload", Pods: 1}}
	_, wait := onStage(t, s)
	if r := wait(training.LevelCompleted); r.State != training.Succeeded {
		t.Errorf("got %s (%s: %s)", r.State, r.Reason, r.Message)
	}
}

// A fatal exit code of the program in the head fails the run, and is told of.
func TestPathwaysFailsByItsProgram(t *testing.T) {
	s := job(t, "typo")
	s.Pathways = &training.Pathways{Scratch: "gs://scratch/pathways"}
	s.Overrides = `{"spec":{"replicatedJobs":[{"name":"head","template":{"spec":{"template":{"metadata":{"annotations":{` +
		`"pod-fail.stage.kwok.x-k8s.io/exit-code":"127"}}}}}}]}}`
	_, wait := onStage(t, s)
	r := wait(training.LevelCompleted)
	if r.State != training.Failed || r.Reason != training.ReasonFatalExitCode || r.Failure == nil || r.Failure.String() != "the head ("+r.Failure.Node+") ended with exit code 127: the command was not found" {
		t.Errorf("got %s (%s: %s), by %v", r.State, r.Reason, r.Message, r.Failure)
	}
}

// divided makes a v6e slice of 8x8 with its parts of 4x4, a flavor that knows
// of them and a queue, and takes them away when the test ends.
func divided(t *testing.T) {
	t.Helper()
	cl, cp := cluster(t), stage(t)
	slice, err := accelerator.Resolve("v6e-64")
	if err != nil {
		t.Fatal(err)
	}
	var hosts []*corev1.Node
	for h := range slice.Hosts {
		labels := slice.NodeLabels()
		labels[accelerator.LabelNodePool] = "v6e-0"
		for _, part := range append(slice.SubSliceTopologies(), slice.Topology) {
			labels[accelerator.SubSliceLabel(part)] = fmt.Sprintf("%s-%d", part, h/(part.Chips()/slice.ChipsPerHost))
		}
		hosts = append(hosts, node(fmt.Sprintf("v6e-0-%d", h), labels, &slice))
		hosts[h].Labels[accelerator.LabelHostname] = hosts[h].Name
	}
	if err := cp.Nodes(t.Context(), "v6e-0", hosts); err != nil {
		t.Fatal(err)
	}
	flavor := queue.Flavor{Name: "v6e-8x8", Slice: slice, Topology: &queue.Topology{}}
	q := queue.Queue{Name: "parts", Namespaces: []string{"research"}, Quotas: []queue.Quota{{Flavor: flavor.Name, Slice: slice, Slices: 1}}}
	objects := []client.Object{flavor.TopologyObject(), flavor.Object(), q.ClusterQueue(), q.LocalQueue("research")}
	for _, o := range objects {
		if err := cl.Apply(t.Context(), o, kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		slices.Reverse(objects)
		for _, o := range objects {
			if err := client.IgnoreNotFound(cl.Delete(ctx, o)); err != nil {
				t.Error(err)
			}
		}
		if err := cp.Nodes(ctx, "v6e-0", nil); err != nil {
			t.Error(err)
		}
	})
}

// A job on parts of a slice gets whole parts, each to a slice of its own.
func TestPartsOnTheRealKueue(t *testing.T) {
	divided(t)
	part, err := accelerator.Resolve("v6e-16")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d parts", n), func(t *testing.T) {
			s := job(t, fmt.Sprintf("parts-%d", n))
			s.Queue, s.Slice, s.Slices, s.Placement.Pool = "parts", part, n, "v6e-64"
			s.PodAnnotations = map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "1h"}
			cl, wait := onStage(t, s)
			r := wait(training.LevelRunning)
			if r.State != training.Running || r.Slice != part || r.HostsReady != 4*n {
				t.Errorf("got %s on %s with %d hosts ready", r.State, r.Slice.Name, r.HostsReady)
			}
			parts := map[string]map[string]int{} // by the job's slice
			for _, p := range podsOf(t, cl, s.Name)[training.SliceJob] {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.NodeName}}
				if found, err := cl.Fetch(t.Context(), n); err != nil || !found {
					t.Fatalf("node %s: %t %v", p.Spec.NodeName, found, err)
				}
				index := p.Labels[jobset.JobIndexKey]
				if parts[index] == nil {
					parts[index] = map[string]int{}
				}
				parts[index][n.Labels[accelerator.SubSliceLabel(part.Topology)]]++
			}
			taken := map[string]bool{}
			for index, of := range parts {
				if len(of) != 1 {
					t.Errorf("slice %s is spread over the parts %v", index, of)
				}
				for name := range of {
					taken[name] = true
				}
			}
			if len(parts) != n || len(taken) != n {
				t.Errorf("%d slices on the parts %v", len(parts), slices.Sorted(maps.Keys(taken)))
			}
		})
	}
}
