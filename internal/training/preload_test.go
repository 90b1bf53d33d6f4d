package training

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An image is there when its container got as far as being made, whatever came
// of that.
func TestPulled(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	for _, c := range []struct {
		name    string
		status  []corev1.ContainerStatus
		yes     bool
		trouble string
	}{
		{"not even started", nil, false, ""},
		{"being made", []corev1.ContainerStatus{waiting("ContainerCreating", "")}, false, ""},
		{"refused", []corev1.ContainerStatus{waiting("ErrImagePull", "no such image")}, false, "ErrImagePull no such image"},
		{"without the program", []corev1.ContainerStatus{waiting("RunContainerError", "no sleep")}, true, ""},
		{"given up", []corev1.ContainerStatus{waiting("CrashLoopBackOff", "")}, true, ""},
		{"running", []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}, true, ""},
		{"ended", []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}, true, ""},
		{"again and again", []corev1.ContainerStatus{{RestartCount: 1}}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			yes, trouble := pulled(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: c.status}})
			if yes != c.yes || trouble != c.trouble {
				t.Errorf("got %t %q", yes, trouble)
			}
		})
	}
}
