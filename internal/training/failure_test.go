package training

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// ended is host h of slice 1, whose program ended at second `at`.
func ended(h string, code int32, at int64, log string) corev1.Pod {
	p := *runs("train-slice-1-"+h+"-x", "train", "1", "v5e-1-"+h, corev1.PodFailed)
	p.Labels[jobset.ReplicatedJobNameKey], p.Labels[batchv1.JobCompletionIndexAnnotation] = SliceJob, h
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", Message: log, FinishedAt: metav1.Unix(at, 0),
	}}}}
	return p
}

func TestFailureOf(t *testing.T) {
	deleted := func(p corev1.Pod) corev1.Pod { p.DeletionTimestamp = &metav1.Time{}; return p }
	inContainer := func(p corev1.Pod, name string) corev1.Pod { p.Status.ContainerStatuses[0].Name = name; return p }
	pending := ended("3", 0, 0, "")
	pending.Status.Phase = corev1.PodPending
	for name, c := range map[string]struct {
		pods    []corev1.Pod
		message string
		want    string // "" = none
	}{
		"the one that the Job names": {
			[]corev1.Pod{ended("0", 1, 5, ""), ended("2", 127, 9, "")},
			"Container train for pod research/train-slice-1-2-x failed with exit code 127 matching FailJob rule at index 1",
			"slice 1, host 2 (v5e-1-2) ended with exit code 127: the command was not found",
		},
		"the first without a name": {
			[]corev1.Pod{ended("3", 1, 7, ""), ended("1", 134, 5, ""), deleted(ended("0", 143, 4, ""))},
			"Job has reached the specified backoff limit",
			"slice 1, host 1 (v5e-1-1) ended with exit code 134: it aborted (SIGABRT)",
		},
		"of several containers": {
			[]corev1.Pod{inContainer(ended("1", 3, 5, ""), "train-1")}, "Container train-1 for pod research/train-slice-1-1-x failed with exit code 3",
			"slice 1, host 1 (v5e-1-1) ended with exit code 3",
		},
		"none": {[]corev1.Pod{deleted(ended("0", 143, 4, "")), pending}, "", ""},
	} {
		got := ""
		if f := failureOf(c.pods, c.message); f != nil {
			got = f.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The message of a failed run names slice, host, exit code and the end of the log.
func TestFailureInTheMessage(t *testing.T) {
	w := makeRun(t).admitted().jsCond(jobset.JobSetFailed, true, "FailJobSetFailurePolicyAction", "first failed job: train-slice-1", 20)
	job := childJob("1", 0, 0, 1, batchv1.JobCondition{
		Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "PodFailurePolicy", LastTransitionTime: metav1.Unix(9, 0),
		Message: "Container train for pod research/train-slice-1-2-x failed with exit code 2",
	})
	job.Namespace, job.Name = w.js.Namespace, "train-slice-1"
	job.Labels[jobset.JobSetNameKey] = w.js.Name
	pod := ended("2", 2, 8, "usage: train.py [--steps N]\ntrain.py: error: unrecognized arguments: --stpes\n")
	pod.Namespace, pod.Labels[batchv1.JobNameLabel] = w.js.Namespace, job.Name
	r, err := Get(t.Context(), refusing(nil, nil, w.js, &job, &pod), w.js.Namespace, w.js.Name)
	if err != nil {
		t.Fatal(err)
	}
	want := "first failed job: train-slice-1: Container train for pod research/train-slice-1-2-x failed with exit code 2. " +
		"Slice 1, host 2 (v5e-1-2) ended with exit code 2; it last said:\n" +
		"usage: train.py [--steps N]\ntrain.py: error: unrecognized arguments: --stpes"
	if diff := cmp.Diff(want, r.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if f := r.Failure; f == nil || f.Slice != 1 || f.Host != 2 || f.ExitCode != 2 || !f.Finished.Equal(time.Unix(8, 0)) {
		t.Errorf("failure: %+v", f)
	}
}

func TestTail(t *testing.T) {
	for s, want := range map[string]string{
		"short": "short", "one\ntwo\nthree": "three", "xxxxxxxxxxxxxxxxxxxx": "xxxxxxxx", "012345éabcdefg": "abcdefg",
	} {
		if got := tail(s, 8); got != want {
			t.Errorf("tail of %q: %q, want %q", s, got, want)
		}
	}
}
