package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// NotReadyError is controllers that did not come up in time.
type NotReadyError struct {
	Cluster string
	Part    string   // JobSet or Kueue
	Details []string // the Deployment's conditions and its pods that are not ready
	Err     error    // what the last attempt answered
}

func (e *NotReadyError) Error() string {
	msg := fmt.Sprintf("waiting for %s on cluster %s: not ready in time: %v", e.Part, e.Cluster, e.Err)
	for _, d := range e.Details {
		msg += "\n  " + d
	}
	return msg + "\nThe controllers run on nodes without TPUs: check that the cluster has a CPU node pool with room for them and that its nodes can pull the images, then apply again; it continues where this stopped."
}

func (e *NotReadyError) Unwrap() error { return e.Err }

// waitReady waits for both rollouts, then for both webhooks to answer: the
// first requests fail for a while although the Deployments are available.
func waitReady(ctx context.Context, cl *kube.Client, c Config) error {
	for _, p := range c.parts() {
		if err := freshen(ctx, cl, p); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, p := range c.parts() {
		g.Go(func() error { return explain(ctx, cl, p, rollout(gctx, cl, p)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, p := range c.parts() {
		if err := explain(ctx, cl, p, probe(ctx, cl, p)); err != nil {
			return err
		}
	}
	return nil
}

// rollout waits until all pods of the Deployment are of its newest version
// and available.
func rollout(ctx context.Context, cl *kube.Client, p part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := crashes(ctx, cl, p); err != nil {
			cancel(err)
		}
	}()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = p.namespace(), p.deployment()
	err := cl.Until(ctx, d, func(found bool) (bool, error) { return found && rolledOut(d), nil })
	if crash := (*CrashError)(nil); errors.As(context.Cause(ctx), &crash) {
		return crash
	}
	return err
}

const (
	// hopeless is how often a pod may be restarted before nobody waits for it: a
	// setting that the controller refuses does not become good. By then about
	// three minutes have passed.
	hopeless = 5
	// crashPoll is how often pods are looked at; they restart after 10 s at the
	// earliest.
	crashPoll = 5 * time.Second
)

// CrashError is a controller that ends each time it is started.
type CrashError struct {
	Cluster string
	Part    string // JobSet or Kueue
	Pod     string
	Why     string // its last words
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("starting %s on cluster %s: pod %s ends each time it is started: %s\n"+
		"The release refuses one of its settings, often a feature gate. Change it and apply again; the pods from before serve on meanwhile.", e.Part, e.Cluster, e.Pod, e.Why)
}

// crashes returns when a pod of the newest settings has ended too often, or ctx
// is over.
func crashes(ctx context.Context, cl *kube.Client, p part) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(crashPoll):
		}
		d := &appsv1.Deployment{}
		d.Namespace, d.Name = p.namespace(), p.deployment()
		var pods corev1.PodList
		if found, err := cl.Fetch(ctx, d); err != nil || !found || d.Spec.Selector == nil ||
			cl.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)) != nil {
			continue // whoever waits for the Deployment says so
		}
		for _, pod := range pods.Items {
			if pod.Annotations[annotationConfig] != d.Spec.Template.Annotations[annotationConfig] {
				continue // of settings that are being replaced
			}
			for _, s := range pod.Status.ContainerStatuses {
				if t := s.LastTerminationState.Terminated; s.RestartCount >= hopeless && !s.Ready && t != nil {
					return &CrashError{Cluster: cl.Name, Part: p.title(), Pod: key(&pod), Why: ended(s.RestartCount, t)}
				}
			}
		}
	}
}

// ended says how a container ended last.
func ended(restarts int32, t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("restarted %d times, last exit code %d: %s", restarts, t.ExitCode, t.Reason)
	if words := lastWords(t.Message); words != "" {
		text += ": " + words
	}
	return text
}

// lastWords is the end of what a program wrote: the last line, or what fits one.
func lastWords(log string) string {
	const most = 800
	lines := strings.Split(strings.TrimSpace(log), "\n")
	last := lines[len(lines)-1]
	if len(last) > most {
		last = last[:most] + "..."
	}
	return last
}

func rolledOut(d *appsv1.Deployment) bool {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want
}

// probe creates, as a dry run, an object that must pass the release's
// webhooks, until it passes.
func probe(ctx context.Context, cl *kube.Client, p part) error {
	return retry(ctx, cl, func() error {
		err := cl.Create(ctx, probeObject(p), client.DryRunAll)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("creating a %s as a dry run: %w", probeObject(p).GetKind(), err)
	})
}

func probeObject(p part) *unstructured.Unstructured {
	name := "terraform-provider-tpu-probe"
	if p == kueue {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kueue.x-k8s.io/v1beta2",
			"kind":       "ClusterQueue",
			"metadata":   map[string]any{"name": name},
			"spec":       map[string]any{},
		}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2",
		"kind":       "JobSet",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "p", "replicas": int64(1),
			"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "p", "image": "p"}},
			}}}},
		}}},
	}}
}

// retry calls f until it passes, fails for good, or ctx ends; then the error
// is that of the last call. A cluster that stays silent is given up.
func retry(ctx context.Context, cl *kube.Client, f func() error) error {
	pause := 100 * time.Millisecond
	var outage kube.Outage
	for {
		err := outage.Note(cl, f())
		if err == nil || !kube.Transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
			pause = min(pause*3/2, 2*time.Second)
		}
	}
}

// reach fails soon when the cluster does not answer at all. Later in an
// install, a server that is away for a while (an upgrade of its control plane)
// is waited for.
func reach(ctx context.Context, cl *kube.Client) error {
	const tries = 4
	for try := 1; ; try++ {
		_, err := cl.Fetch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		if err == nil || !kube.Transient(err) || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// explain adds to a timeout what the cluster says about the controller.
func explain(ctx context.Context, cl *kube.Client, p part, err error) error {
	if err == nil || ctx.Err() == nil {
		return err // done, or failed for a reason of its own
	}
	// ctx is over: ask with a fresh, short one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return &NotReadyError{Cluster: cl.Name, Part: p.title(), Details: details(ctx, cl, p), Err: err}
}

// details lists what keeps a Deployment from being available.
func details(ctx context.Context, cl *kube.Client, p part) []string {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = p.namespace(), p.deployment()
	found, err := cl.Fetch(ctx, d)
	if err != nil {
		return nil
	}
	name := "Deployment " + d.Namespace + "/" + d.Name
	if !found {
		return []string{name + " does not exist"}
	}
	lines := []string{fmt.Sprintf("%s: %d of %d pods available", name, d.Status.AvailableReplicas, d.Status.Replicas)}
	for _, cond := range d.Status.Conditions {
		if (cond.Type == appsv1.DeploymentReplicaFailure) == (cond.Status == corev1.ConditionTrue) {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", name, cond.Reason, cond.Message))
		}
	}
	var pods corev1.PodList
	if d.Spec.Selector == nil || cl.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)) != nil {
		return lines
	}
	for _, pod := range pods.Items {
		if why := notReady(&pod); why != "" {
			lines = append(lines, fmt.Sprintf("Pod %s/%s: %s", pod.Namespace, pod.Name, why))
		}
	}
	return lines
}

// notReady says why a pod is not ready, or "".
func notReady(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && s.LastTerminationState.Terminated == nil {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
		if t := s.LastTerminationState.Terminated; t != nil && !s.Ready {
			return ended(s.RestartCount, t)
		}
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Status != corev1.ConditionTrue && (cond.Type == corev1.PodScheduled || cond.Type == corev1.PodReady) {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", cond.Reason, cond.Message), ": ")
		}
	}
	return ""
}
