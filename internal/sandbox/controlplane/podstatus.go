package controlplane

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// running is the status of a pod whose process runs.
func (r *podRun) running(since metav1.Time, ready bool) *corev1.PodStatus {
	return r.status(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}, ready)
}

// status is what a kubelet would report. Containers other than the one that
// runs as a process share its fate.
func (r *podRun) status(phase corev1.PodPhase, state corev1.ContainerState, ready bool) *corev1.PodStatus {
	now := metav1.Now()
	s := &corev1.PodStatus{Phase: phase, PodIP: r.ip, PodIPs: []corev1.PodIP{{IP: r.ip}}, StartTime: &now}
	if r.pod.Status.StartTime != nil {
		s.StartTime = r.pod.Status.StartTime
	}
	answer, reason := corev1.ConditionTrue, ""
	if !ready {
		answer, reason = corev1.ConditionFalse, "ContainersNotReady"
		if phase == corev1.PodSucceeded {
			reason = "PodCompleted"
		}
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: answer, Reason: reason, LastTransitionTime: now})
	}
	started := state.Running != nil
	for _, c := range r.pod.Spec.Containers {
		cs := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: state, Ready: ready, Started: &started,
			RestartCount: r.restarts,
		}
		if r.last != nil {
			cs.LastTerminationState = corev1.ContainerState{Terminated: r.last}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	for _, c := range r.pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}},
		})
	}
	return s
}

// report writes a status, and repeats it while the API server does not answer:
// nothing else would ever tell it.
func (r *podRun) report(ctx context.Context, s *corev1.PodStatus) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.pod.UID}, // never the pod that took its name
		"status":   s,
	})
	if err != nil {
		r.k.cp.log.Error("encoding a pod's status", "pod", r.pod.Name, "error", err)
		return
	}
	for try := 0; try < 20; try++ {
		_, err = r.k.cp.client.CoreV1().Pods(r.pod.Namespace).Patch(ctx, r.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		r.k.cp.log.Warn("reporting a pod's status", "pod", r.pod.Name, "error", err)
	}
}
