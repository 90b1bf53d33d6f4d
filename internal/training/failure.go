package training

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Failure is the program that a failed run failed by.
type Failure struct {
	ReplicatedJob string
	Slice, Host   int
	Pod           string
	Node          string // "" when it never ran
	Container     string
	ExitCode      int
	// Reason is the kubelet's word: Error, OOMKilled, ContainerCannotRun, ...
	Reason string
	// Log is the end of what the program printed, as far as the pod's status
	// keeps it.
	Log      string
	Finished time.Time
}

// String is one sentence, without the log.
func (f *Failure) String() string {
	where := fmt.Sprintf("slice %d, host %d", f.Slice, f.Host)
	switch {
	case f.ReplicatedJob == HeadJob && f.Container == Container:
		where = "the head"
	case f.ReplicatedJob == HeadJob && (f.Container == ContainerProxy || f.Container == ContainerManager):
		where = "the head's " + f.Container
	case f.ReplicatedJob != SliceJob:
		where = fmt.Sprintf("%s %d, pod %d", f.ReplicatedJob, f.Slice, f.Host)
	}
	if f.Node != "" {
		where += " (" + f.Node + ")"
	}
	return fmt.Sprintf("%s ended with exit code %d%s", where, f.ExitCode, meaning(f.ExitCode, f.Reason))
}

// meaning says what an exit code stands for, where it is not the program's own.
func meaning(code int, reason string) string {
	switch {
	case reason == "OOMKilled":
		return ": it used more memory than its limit"
	case code == 126:
		return ": the command is not executable"
	case code == 127:
		return ": the command was not found"
	case code == 137:
		return ": killed (SIGKILL), by its grace period or for memory"
	case code == 139:
		return ": it crashed (SIGSEGV)"
	case code == 134:
		return ": it aborted (SIGABRT)"
	case code == 143:
		return ": told to end (SIGTERM)"
	case reason == "StartError" || reason == "ContainerCannotRun":
		return ": the container did not start"
	}
	return ""
}

// maxFailureLog bounds what a status repeats of a log.
const maxFailureLog = 2048

// findFailure reads which program a failed run failed by. Its pods are kept as
// long as their Job is; who may not list them learns what the Job says.
func findFailure(ctx context.Context, c *kube.Client, r *Run, jobs []batchv1.Job) error {
	job, c0 := firstFailed(jobs)
	if job == nil {
		return nil
	}
	var pods corev1.PodList
	err := list(ctx, c, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Failure = failureOf(pods.Items, c0.Message)
	if r.Failure == nil {
		return nil
	}
	r.Message += ". " + strings.ToUpper(r.Failure.String()[:1]) + r.Failure.String()[1:]
	if r.Failure.Log != "" {
		r.Message += "; it last said:\n" + r.Failure.Log
	}
	return nil
}

// firstFailed is the Job that failed first, and its condition.
func firstFailed(jobs []batchv1.Job) (*batchv1.Job, *batchv1.JobCondition) {
	var job *batchv1.Job
	var first *batchv1.JobCondition
	for i := range jobs {
		for j := range jobs[i].Status.Conditions {
			c := &jobs[i].Status.Conditions[j]
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && (first == nil || c.LastTransitionTime.Before(&first.LastTransitionTime)) {
				job, first = &jobs[i], c
			}
		}
	}
	return job, first
}

// FirstFailure is the program that failed first among pods that are there; nil
// when none has.
func FirstFailure(pods []corev1.Pod) *Failure { return failureOf(pods, "") }

// failureOf picks the program that ended a Job: the one that the Job's message
// names, else the first that failed. A pod that was ended with its Job failed by
// nothing of its own.
func failureOf(pods []corev1.Pod, message string) *Failure {
	var all []*Failure
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodFailed {
			continue
		}
		// Sidecars end after the program, if in the same second.
		for _, s := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
			t := s.State.Terminated
			if t == nil || t.ExitCode == 0 {
				continue
			}
			f := &Failure{
				ReplicatedJob: p.Labels[jobset.ReplicatedJobNameKey], Slice: number(p.Labels[jobset.JobIndexKey]),
				Host: number(p.Labels[batchv1.JobCompletionIndexAnnotation]), Pod: p.Name, Node: p.Spec.NodeName,
				Container: s.Name, ExitCode: int(t.ExitCode), Reason: t.Reason,
				Log: tail(strings.TrimSpace(t.Message), maxFailureLog), Finished: t.FinishedAt.Time,
			}
			if strings.Contains(message, "/"+p.Name+" ") && strings.Contains(message, "ontainer "+s.Name+" ") {
				return f
			}
			if p.DeletionTimestamp != nil && t.ExitCode == 143 {
				continue
			}
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *Failure) int {
		return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.Pod, b.Pod))
	})
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// tail is the last n bytes of s at most, whole lines if there are several.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return strings.ToValidUTF8(s, "")
}
