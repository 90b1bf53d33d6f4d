package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// Disruption is something that happens to a host and to the pods on it.
type Disruption string

// The disruptions, by what a pod's condition DisruptionTarget then says.
const (
	// Evict: the pods are evicted through the API (EvictionByEvictionAPI), as by
	// a drain. The host stays.
	Evict Disruption = "evict"
	// Taint: the host gets a NoExecute taint, and the pods that do not tolerate
	// it are deleted (DeletionByTaintManager).
	Taint Disruption = "taint"
	// Preempt: a pod of higher priority takes the host's chips
	// (PreemptionByScheduler), and holds them until the end.
	Preempt Disruption = "preempt"
	// Shutdown: the machine is switched off, as a spot machine is that is taken
	// back. Its kubelet ends the pods first, by 143 (TerminationByKubelet).
	Shutdown Disruption = "shutdown"
	// Delete: the machine is gone at once, and its node with it; the garbage
	// collector finds the pods about a minute later (DeletionByPodGC).
	Delete Disruption = "delete"
	// Lose: the host is not heard of any more. Its pods are deleted when they
	// tolerate that no longer (DeletionByTaintManager), but nobody ends them
	// until the host is back.
	Lose Disruption = "lose"
)

// Disruptions lists them.
var Disruptions = []Disruption{Evict, Taint, Preempt, Shutdown, Delete, Lose}

// ParseDisruption refuses a word that is none, in words.
func ParseDisruption(s string) (Disruption, error) {
	if slices.Contains(Disruptions, Disruption(s)) {
		return Disruption(s), nil
	}
	var known []string
	for _, d := range Disruptions {
		known = append(known, string(d))
	}
	return "", fmt.Errorf("%q is no disruption: want %s", s, strings.Join(known, ", "))
}

const (
	// domain is that of the sandbox's own annotations, labels and taints.
	domain = "sandbox.tpu-training.github.io/"
	// lostAnnotation marks hosts whose kubelet is silent, and the pods on them.
	lostAnnotation = domain + "lost"
	// LogAnnotation of a pod holds the lines that its program printed.
	LogAnnotation = domain + "log"
	// disruptedTaint is what Taint puts on a host.
	disruptedTaint = domain + "disrupted"
	// preemptorLabel of a pod names the host that it took.
	preemptorLabel = domain + "preempts"
)

// HostError says why something cannot happen to a host or a pod.
type HostError struct{ text string }

func (e *HostError) Error() string { return e.text }

// Disrupt lets d happen to a host. What goes on, such as a host that is away,
// lasts until Mend.
func (cp *ControlPlane) Disrupt(ctx context.Context, host string, d Disruption) error {
	if err := cp.disrupt(ctx, host, d); err != nil {
		return fmt.Errorf("letting %q happen to host %s of %s: %w", d, host, cp.cfg.Name, err)
	}
	cp.log.Info("a disruption", "cluster", cp.cfg.Name, "host", host, "kind", string(d))
	return nil
}

func (cp *ControlPlane) disrupt(ctx context.Context, host string, d Disruption) error {
	node, err := cp.client.CoreV1().Nodes().Get(ctx, host, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &HostError{"there is no such host"}
	}
	if err != nil {
		return err
	}
	pods, err := cp.podsOn(ctx, host)
	if err != nil {
		return err
	}
	for i := range pods {
		if processContainer(&pods[i]) != nil {
			return &HostError{fmt.Sprintf("pod %s/%s runs there, a controller; only hosts of jobs are disrupted", pods[i].Namespace, pods[i].Name)}
		}
	}
	switch d {
	case Evict:
		return cp.evict(ctx, pods)
	case Taint:
		return cp.patchNode(ctx, host, "", map[string]any{"spec": map[string]any{"taints": append(node.Spec.Taints,
			corev1.Taint{Key: disruptedTaint, Effect: corev1.TaintEffectNoExecute})}})
	case Preempt:
		return cp.takeChips(ctx, node)
	case Shutdown:
		return errors.Join(cp.silence(ctx, node, corev1.ConditionFalse, "KubeletNotReady", "node is shutting down"), cp.shutDown(ctx, pods))
	case Delete:
		if err := cp.keepNode(node); err != nil {
			return err
		}
		if err := cp.lose(ctx, pods); err != nil {
			return err
		}
		return cp.client.CoreV1().Nodes().Delete(ctx, host, metav1.DeleteOptions{})
	case Lose:
		if err := errors.Join(cp.lose(ctx, pods), cp.unready(ctx, pods)); err != nil {
			return err
		}
		return cp.silence(ctx, node, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
	}
	return fmt.Errorf("unknown disruption %q", d)
}

// podsOn are the pods of a host that are not finished.
func (cp *ControlPlane) podsOn(ctx context.Context, host string) ([]corev1.Pod, error) {
	list, err := cp.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.AndSelectors(
		fields.OneTermEqualSelector("spec.nodeName", host),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (cp *ControlPlane) evict(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		err := cp.client.CoreV1().Pods(pods[i].Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: pods[i].Namespace, Name: pods[i].Name},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// silence makes a node report no more than that it is not ready, and why.
func (cp *ControlPlane) silence(ctx context.Context, node *corev1.Node, ready corev1.ConditionStatus, reason, message string) error {
	if err := cp.patchNode(ctx, node.Name, "", annotation("true")); err != nil {
		return err
	}
	return cp.patchNode(ctx, node.Name, "status", map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}}})
}

// annotation is a patch that sets or, with nil, takes away lostAnnotation.
func annotation(value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{lostAnnotation: value}}}
}

func (cp *ControlPlane) patchNode(ctx context.Context, name, sub string, patch any) error {
	b, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = cp.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, subresource(sub)...)
	return err
}

// patchPod patches this very pod; one that is gone is no error.
func (cp *ControlPlane) patchPod(ctx context.Context, p *corev1.Pod, sub string, patch map[string]any) error {
	b, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = cp.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, subresource(sub)...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func subresource(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// lose makes sure that nobody ends these pods.
func (cp *ControlPlane) lose(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := cp.patchPod(ctx, &pods[i], "", annotation("true")); err != nil {
			return err
		}
	}
	return nil
}

// unready does to pods what the node lifecycle controller does when it finds
// their node silent. It does so on its own finding only; here the node is found
// silent already.
func (cp *ControlPlane) unready(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := cp.patchPod(ctx, &pods[i], "status", map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady", LastTransitionTime: metav1.Now(),
		}}}}); err != nil {
			return err
		}
	}
	return nil
}

// What a kubelet writes when it ends pods because its machine is switched off.
const (
	shutdownReason  = "Terminated"
	shutdownMessage = "Pod was terminated in response to imminent node shutdown."
)

// shutDown ends pods as the kubelet of a machine does that is switched off.
func (cp *ControlPlane) shutDown(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		p := &pods[i]
		now := metav1.Now()
		status := corev1.PodStatus{Phase: corev1.PodFailed, Reason: shutdownReason, Message: shutdownMessage}
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: now,
			Reason: corev1.PodReasonTerminationByKubelet, Message: shutdownMessage,
		})
		for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: now})
		}
		for _, c := range p.Status.ContainerStatuses {
			ended := &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", FinishedAt: now}
			if c.State.Running != nil {
				ended.StartedAt = c.State.Running.StartedAt
			}
			c.State, c.Ready, c.Started = corev1.ContainerState{Terminated: ended}, false, new(bool)
			status.ContainerStatuses = append(status.ContainerStatuses, c)
		}
		if err := cp.patchPod(ctx, p, "status", map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status}); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// Mend ends what Disrupt began: the host is back, ready and open for pods.
func (cp *ControlPlane) Mend(ctx context.Context, host string) error {
	if err := cp.mend(ctx, host); err != nil {
		return fmt.Errorf("bringing host %s of %s back: %w", host, cp.cfg.Name, err)
	}
	cp.log.Info("a host is back", "cluster", cp.cfg.Name, "host", host)
	return nil
}

func (cp *ControlPlane) mend(ctx context.Context, host string) error {
	if err := cp.restoreNode(ctx, host); err != nil {
		return err
	}
	node, err := cp.client.CoreV1().Nodes().Get(ctx, host, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &HostError{"there is no such host"}
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(node.Spec.Taints, isDisruption) {
		// Under the resource version: the node lifecycle controller writes taints too.
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isDisruption)
		if _, err := cp.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if err := cp.giveChipsBack(ctx, host); err != nil {
		return err
	}
	if err := cp.patchNode(ctx, host, "", annotation(nil)); err != nil {
		return err
	}
	if err := cp.found(ctx, host); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, backWithin)
	defer cancel()
	return cp.nodesReady(limit, labelsOf(node), hostSet(host))
}

// backWithin bounds how long a host takes to be ready again; the node lifecycle
// controller lifts its taints every five seconds.
const backWithin = time.Minute

func isDisruption(t corev1.Taint) bool { return t.Key == disruptedTaint }

// found makes a host's kubelet look after its pods again: those to be ended are,
// the others are ready.
func (cp *ControlPlane) found(ctx context.Context, host string) error {
	pods, err := cp.podsOn(ctx, host)
	if err != nil {
		return err
	}
	for i := range pods {
		p := &pods[i]
		if p.Annotations[lostAnnotation] == "" {
			continue
		}
		if p.DeletionTimestamp == nil {
			var ready []corev1.PodCondition
			for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
				ready = append(ready, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
			}
			if err := cp.patchPod(ctx, p, "status", map[string]any{"status": map[string]any{"conditions": ready}}); err != nil {
				return err
			}
		}
		if err := cp.patchPod(ctx, p, "", annotation(nil)); err != nil {
			return err
		}
	}
	return nil
}
