package controlplane

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// What a simulated program has printed: what was sent to it, what its file
// holds, its last words, each line with a time that does not change.
func TestProgramLog(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1-2-3.log"), []byte("from a file\n2026-01-02T03:05:00Z timed\nnot wh"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train-slice-1-2-x", Labels: map[string]string{jobIndexLabel: "1", hostLabel: "2", attemptLabel: "3"},
			Annotations: map[string]string{
				PrintedAnnotation: stamped("one\ntwo\n", began.Add(time.Second)),
				LogFileAnnotation: dir + "/{slice}-{host}-{attempt}.log",
				LogAnnotation:     "Killed",
			}},
		Spec: corev1.PodSpec{NodeName: "host", Containers: []corev1.Container{{Name: "main", Image: "train:1", Command: []string{"python"}, Args: []string{"train.py"}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}},
		}},
	}
	show := func(query string) string {
		t.Helper()
		lines, _, err := programLog(p, "main")
		if err != nil {
			t.Fatal(err)
		}
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q := parseLogQuery(v, began.Add(2*time.Minute))
		var b strings.Builder
		if q.tail >= 0 {
			lines = lines[max(0, len(lines)-q.tail):]
		}
		for _, l := range lines {
			q.print(&b, l)
		}
		return b.String()
	}
	const stamps = `2026-01-02T03:04:05.000000001Z [simulated host host] would run train:1 with ["python" "train.py"]
2026-01-02T03:04:06Z one
2026-01-02T03:04:06.000001Z two
2026-01-02T03:04:06.000001001Z from a file
2026-01-02T03:05:00Z timed
2026-01-02T03:05:00.000000001Z Killed
`
	if diff := cmp.Diff(stamps, show("timestamps=true")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("timed\nKilled\n", show("tailLines=2")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("timed\nKilled\n", show("sinceTime=2026-01-02T03:04:07Z")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("timed\nKilled\n", show("sinceSeconds=70")); diff != "" {
		t.Error(diff)
	}
	// A program that has ended has written its last line, whole or not.
	p.Status.Phase = corev1.PodFailed
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(began)}}
	if diff := cmp.Diff(strings.Replace(stamps, "2026-01-02T03:05:00.000000001Z Killed\n", "2026-01-02T03:05:00.000000001Z not wh\n2026-01-02T03:05:00.000000002Z Killed\n", 1), show("timestamps=true")); diff != "" {
		t.Error(diff)
	}
	// Of a script what the user wrote is shown.
	p.Spec.Containers[0].Command, p.Spec.Containers[0].Args = training.ShellCommand("set -e\npython train.py | tee \"$LOG\""), nil
	if got, _, _ := strings.Cut(show(""), "\n"); got != `[simulated host host] would run train:1 with the script "set -e\npython train.py | tee \"$LOG\""` {
		t.Error(got)
	}
	if lines, _, _ := programLog(p, "sidecar"); len(lines) != 0 {
		t.Errorf("a container that there is not printed %v", lines)
	}
}
