package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Annotations of a pod by which its program ends; on a running pod they hold at
// once, in a template for every attempt.
const (
	completeDelayAnnotation  = "pod-complete.stage.kwok.x-k8s.io/delay"
	completeJitterAnnotation = "pod-complete.stage.kwok.x-k8s.io/jitter-delay"
	failCodeAnnotation       = "pod-fail.stage.kwok.x-k8s.io/exit-code"
	failDelayAnnotation      = "pod-fail.stage.kwok.x-k8s.io/delay"
)

// Labels that say which host of which job a pod is.
const (
	jobSetLabel   = "jobset.sigs.k8s.io/jobset-name"
	jobIndexLabel = "jobset.sigs.k8s.io/job-index"
	hostLabel     = "batch.kubernetes.io/job-completion-index"
)

// Exit is how the programs of a job end, on some of its hosts.
type Exit struct {
	Namespace string `json:"namespace"`
	Job       string `json:"job"` // a JobSet
	// Slice and Host narrow it down; negative means every one.
	Slice int `json:"slice"`
	Host  int `json:"host"`

	Code  int           `json:"code"`
	After time.Duration `json:"after,omitempty"`
	// Log is what the program prints before, lines of it.
	Log string `json:"log,omitempty"`
}

// PodOf is one host of a running job.
type PodOf struct {
	Name string `json:"name"`
	Node string `json:"node"`
}

// PodsOf finds the pods of a job that are not finished, by name. Namespace "" is
// whichever the job is in.
func (cp *ControlPlane) PodsOf(ctx context.Context, namespace, job string, slice, host int) ([]PodOf, error) {
	pods, err := cp.podsOf(ctx, namespace, job, slice, host)
	if err != nil {
		return nil, fmt.Errorf("looking for the pods of job %s in %s: %w", jobPath(namespace, job), cp.cfg.Name, err)
	}
	var out []PodOf
	for i := range pods {
		out = append(out, PodOf{pods[i].Name, pods[i].Spec.NodeName})
	}
	return out, nil
}

func (cp *ControlPlane) podsOf(ctx context.Context, namespace, job string, slice, host int) ([]corev1.Pod, error) {
	want := labels.Set{jobSetLabel: job}
	if slice >= 0 {
		want[jobIndexLabel] = strconv.Itoa(slice)
	}
	if host >= 0 {
		want[hostLabel] = strconv.Itoa(host)
	}
	list, err := cp.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: want.String()})
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if len(pods) > 0 {
		return pods, inOneNamespace(pods)
	}
	what := "no pod of it runs"
	if slice >= 0 {
		what += fmt.Sprintf(" in slice %d", slice)
	}
	if host >= 0 {
		what += fmt.Sprintf(" on host %d", host)
	}
	return nil, &HostError{what}
}

// inOneNamespace refuses pods of several jobs, which have one name.
func inOneNamespace(pods []corev1.Pod) error {
	in := map[string]bool{}
	for i := range pods {
		in[pods[i].Namespace] = true
	}
	if len(in) < 2 {
		return nil
	}
	return &HostError{"there are jobs of that name in namespaces " + strings.Join(slices.Sorted(maps.Keys(in)), ", ") + ": choose one with --namespace"}
}

// jobPath is how a job is named to people; "" is a namespace that is not known.
func jobPath(namespace, job string) string { return strings.TrimPrefix(namespace+"/"+job, "/") }

// Exit lets the programs of a job end, and tells in which pods.
func (cp *ControlPlane) Exit(ctx context.Context, e Exit) ([]PodOf, error) {
	out, err := cp.exit(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("ending the program of job %s in %s: %w", jobPath(e.Namespace, e.Job), cp.cfg.Name, err)
	}
	return out, nil
}

func (cp *ControlPlane) exit(ctx context.Context, e Exit) ([]PodOf, error) {
	if e.Code < 0 || e.Code > 255 {
		return nil, &HostError{fmt.Sprintf("%d is no exit code: they are 0 to 255", e.Code)}
	}
	pods, err := cp.podsOf(ctx, e.Namespace, e.Job, e.Slice, e.Host)
	if err != nil {
		return nil, err
	}
	a := map[string]any{}
	if e.Log != "" {
		a[LogAnnotation] = e.Log
	}
	if e.Code == 0 {
		a[completeDelayAnnotation], a[completeJitterAnnotation] = e.After.String(), e.After.String()
	} else {
		a[failCodeAnnotation], a[failDelayAnnotation] = strconv.Itoa(e.Code), e.After.String()
	}
	var out []PodOf
	for i := range pods {
		if err := cp.patchPod(ctx, &pods[i], "", map[string]any{"metadata": map[string]any{"annotations": a}}); err != nil {
			return nil, err
		}
		out = append(out, PodOf{pods[i].Name, pods[i].Spec.NodeName})
	}
	return out, nil
}
