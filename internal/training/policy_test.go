package training_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// ends waits until the run has ended in a state, for a reason.
func (j *spotJob) ends(state training.State, reason string) training.Run {
	j.t.Helper()
	j.eventually(time.Minute, "the run ends "+string(state), func() error {
		if r := j.run(); r.State != state || r.Reason != reason {
			return fmt.Errorf("it is %s (%s) after %d restarts: %s", r.State, r.Reason, r.Restarts, r.Message)
		}
		return nil
	})
	return j.run()
}

// running are the pods of one replicated job that run; it waits for one.
func (j *spotJob) running(replicatedJob string) []corev1.Pod {
	j.t.Helper()
	var pods []corev1.Pod
	j.eventually(time.Minute, "a pod of "+replicatedJob+" runs", func() error {
		pods = slices.DeleteFunc(j.pods(), func(p corev1.Pod) bool {
			return p.Labels["jobset.sigs.k8s.io/replicatedjob-name"] != replicatedJob || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning
		})
		if len(pods) == 0 {
			return fmt.Errorf("none of %d pods", len(j.pods()))
		}
		return nil
	})
	return pods
}

// policies are what a job can say of its failures, each on the real controllers,
// side by side.
func policies(ctx context.Context, t *testing.T, cl *kube.Client, cp *controlplane.ControlPlane) {
	one := func(t *testing.T, name string, change func(*training.Spec)) *spotJob {
		return submitSpot(ctx, t, cl, cp, name, func(s *training.Spec) {
			s.Slices = 1
			change(s)
		})
	}
	evict := func(t *testing.T, j *spotJob) string {
		t.Helper()
		host := j.nodeOf(0, 1)
		if err := cp.Disrupt(ctx, host, controlplane.Evict); err != nil {
			t.Fatal(err)
		}
		return host
	}

	t.Run("a preemption that is to fail the job", func(t *testing.T) {
		t.Parallel()
		j := one(t, "fails", func(s *training.Spec) { s.Restart.OnPreemption = training.PreemptionFails })
		j.steady()
		evict(t, j)
		if r := j.ends(training.Failed, training.ReasonDisruption); r.Restarts != 0 || !strings.Contains(r.Message, "DisruptionTarget") {
			t.Errorf("after %d restarts: %s", r.Restarts, r.Message)
		}
		j.remove()
	})

	t.Run("preemptions that are counted", func(t *testing.T) {
		t.Parallel()
		j := one(t, "counts", func(s *training.Spec) { s.Restart.OnPreemption, s.Restart.MaxRestarts = training.PreemptionCounts, 1 })
		j.steady()
		host := evict(t, j)
		j.restarted(0, host, controlplane.Evict)
		if got := j.steady(); got != 1 {
			t.Errorf("attempt %d runs, want 1", got)
		}
		if r := j.run(); r.CountedRestarts != 1 {
			t.Errorf("%d restarts are counted, want 1", r.CountedRestarts)
		}
		evict(t, j)
		if r := j.ends(training.Failed, training.ReasonTooManyRestarts); r.Restarts != 1 || r.CountedRestarts != 1 {
			t.Errorf("%d restarts, %d counted, want 1 and 1: %s", r.Restarts, r.CountedRestarts, r.Message)
		}
		j.remove()
	})

	t.Run("further jobs that fail", func(t *testing.T) {
		t.Parallel()
		j := one(t, "aside", func(s *training.Spec) {
			s.Restart.MaxRestarts = 1
			s.Jobs = []training.Job{
				{Name: "uploader", Pods: 1},
				{Name: "eval", Pods: 1, OnFailure: training.FailureRestarts},
			}
		})
		j.running("uploader")
		if got := j.steady(); got != 0 {
			t.Fatalf("attempt %d runs, want 0", got)
		}
		j.fail(j.running("uploader"))
		j.eventually(time.Minute, "the uploader has failed", func() error {
			for _, p := range j.pods() {
				if p.Labels["jobset.sigs.k8s.io/replicatedjob-name"] == "uploader" && p.Status.Phase == corev1.PodFailed {
					return nil
				}
			}
			return errors.New("no pod of it has")
		})
		if r := j.run(); r.State != training.Running || r.Restarts != 0 {
			t.Errorf("after its uploader failed the run is %s, with %d restarts", r.State, r.Restarts)
		}
		j.fail(j.running("eval"))
		j.restarted(0, "the evaluator", controlplane.Evict)
		if got := j.steady(); got != 1 {
			t.Errorf("attempt %d runs, want 1", got)
		}
		if r := j.run(); r.CountedRestarts != 1 {
			t.Errorf("%d restarts are counted, want 1", r.CountedRestarts)
		}
		j.fail(j.running("uploader")) // fails again just as the main job ends well
		if r := j.finishMain(); r.HostsDone != spotHosts || r.Restarts != 1 {
			t.Errorf("the run succeeded with %d hosts done after %d restarts", r.HostsDone, r.Restarts)
		}
		j.remove()
	})

	t.Run("a further job whose failure is the run's", func(t *testing.T) {
		t.Parallel()
		j := one(t, "checked", func(s *training.Spec) {
			s.Jobs = []training.Job{{Name: "check", Pods: 1, OnFailure: training.FailureFails}}
		})
		j.steady()
		j.fail(j.running("check"))
		r := j.ends(training.Failed, training.ReasonFurtherJob)
		if f := r.Failure; r.Restarts != 0 || f == nil || f.ReplicatedJob != "check" || f.ExitCode != 1 || !strings.Contains(r.Message, "Check 0, pod 0") {
			t.Errorf("failed by %+v after %d restarts: %s", f, r.Restarts, r.Message)
		}
		j.remove()
	})

	t.Run("an image is there before a job needs it", func(t *testing.T) {
		t.Parallel()
		p := training.Preload{Namespace: "spot", Image: "train:2", Slice: v5e16(t)}
		var seen []training.PreloadStatus
		got, err := p.Run(ctx, cl, func(s training.PreloadStatus) { seen = append(seen, s) })
		if err != nil || got.Hosts != 8 || got.Done != 8 || len(seen) == 0 || seen[len(seen)-1] != got {
			t.Errorf("%d of %d hosts have it, want all 8 (%v); told %v", got.Done, got.Hosts, err, seen)
		}
		if err := until(ctx, func() bool {
			var sets appsv1.DaemonSetList
			var pods corev1.PodList
			return cl.List(ctx, &sets, client.InNamespace("spot")) == nil && len(sets.Items) == 0 &&
				cl.List(ctx, &pods, client.InNamespace("spot"), client.HasLabels{"tpu-training.github.io/preload"}) == nil && len(pods.Items) == 0
		}); err != nil {
			t.Error("something of it is left behind")
		}
		none, err := accelerator.Resolve("v5p-16")
		if err != nil {
			t.Fatal(err)
		}
		p.Slice = none
		if _, err := p.Run(ctx, cl, func(training.PreloadStatus) {}); err == nil || !strings.Contains(err.Error(), "has no host of v5p-16 now, and nothing was pulled") {
			t.Errorf("on hosts that are not there: %v", err)
		}
	})
}

// finishMain lets the programs of the main job alone end well.
func (j *spotJob) finishMain() training.Run {
	j.t.Helper()
	pods := j.running(training.SliceJob)
	for i := range pods {
		patch := []byte(`{"metadata":{"annotations":{"pod-complete.stage.kwok.x-k8s.io/delay":"0s","pod-complete.stage.kwok.x-k8s.io/jitter-delay":"0s"}}}`)
		if err := j.cl.Patch(j.ctx, &pods[i], client.RawPatch("application/merge-patch+json", patch)); err != nil {
			j.t.Fatal(err)
		}
	}
	return j.ends(training.Succeeded, "")
}
