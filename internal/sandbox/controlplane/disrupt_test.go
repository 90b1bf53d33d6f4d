package controlplane

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestParseDisruption(t *testing.T) {
	for _, d := range Disruptions {
		if got, err := ParseDisruption(string(d)); got != d || err != nil {
			t.Errorf("%s: %s, %v", d, got, err)
		}
	}
	if _, err := ParseDisruption("explode"); err == nil || err.Error() != `"explode" is no disruption: want evict, taint, preempt, shutdown, delete, lose` {
		t.Errorf("got %v", err)
	}
}

// keepFinalizer keeps pods to be looked at after their end.
const keepFinalizer = "sandbox.tpu-training.github.io/looked-at"

// oneHost is a Job of one pod that takes a host's chips and would run for hours.
func oneHost(name string) *batchv1.Job {
	chips := corev1.ResourceList{tpuResource: resource.MustParse("4")}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(1)), Parallelism: new(int32(1)), BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      map[string]string{jobSetLabel: name, jobIndexLabel: "0"},
					Annotations: map[string]string{completeDelayAnnotation: "10h", completeJitterAnnotation: "10h"},
					Finalizers:  []string{keepFinalizer},
				},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Tolerations:   []corev1.Toleration{{Key: "google.com/tpu", Operator: corev1.TolerationOpExists}},
					NodeSelector:  tpuHosts("any")[0].Labels,
					Containers: []corev1.Container{{
						Name: "main", Image: "trainer", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
						Resources: corev1.ResourceRequirements{Limits: chips, Requests: chips},
					}},
				},
			},
		},
	}
}

// stage is a cluster on which things happen to the pod of one Job at a time.
type stage struct {
	*testing.T
	cp *ControlPlane
}

// start runs a Job and returns the pod and its host.
func (s stage) start(name string) (pod, host string) {
	s.Helper()
	if _, err := s.cp.client.BatchV1().Jobs(metav1.NamespaceDefault).Create(s.Context(), oneHost(name), metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	eventually(s.T, time.Minute, "the pod of "+name+" runs", func() error {
		pods, err := s.cp.PodsOf(s.Context(), metav1.NamespaceDefault, name, 0, 0)
		if err != nil {
			return err
		}
		p := s.pod(pods[0].Name)
		if p == nil || p.Status.Phase != corev1.PodRunning {
			return errNotYet
		}
		pod, host = p.Name, p.Spec.NodeName
		return nil
	})
	return pod, host
}

// pod is nil when it is gone.
func (s stage) pod(name string) *corev1.Pod {
	p, err := s.cp.client.CoreV1().Pods(metav1.NamespaceDefault).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return p
}

// end waits for the pod's end and lets it go.
func (s stage) end(name string) (p *corev1.Pod, code int32) {
	s.Helper()
	eventually(s.T, time.Minute, "pod "+name+" ends", func() error {
		p = s.pod(name)
		if p == nil {
			return errors.New("it is gone")
		}
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s", p.Status.Phase)
		}
		return nil
	})
	if t := p.Status.ContainerStatuses[0].State.Terminated; t != nil {
		code = t.ExitCode
	}
	s.forget(name)
	return p, code
}

// forget removes a pod and its Job.
func (s stage) forget(name string) {
	s.Helper()
	p := s.pod(name)
	if p == nil {
		s.Fatalf("pod %s is gone", name)
	}
	if err := s.cp.client.BatchV1().Jobs(p.Namespace).Delete(s.Context(), p.Labels[jobSetLabel], metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		s.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, keepFinalizer)
	if _, err := s.cp.client.CoreV1().Pods(p.Namespace).Patch(s.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	eventually(s.T, time.Minute, "pod "+name+" is gone", func() error {
		if s.pod(name) != nil {
			return errNotYet
		}
		return nil
	})
}

func (s stage) disrupted(want ...Disrupted) {
	s.Helper()
	got, err := s.cp.Disrupted(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(append([]Disrupted{}, want...), got); diff != "" {
		s.Errorf("disrupted hosts (-want +got):\n%s", diff)
	}
}

// What happens to hosts and programs, on a cluster with hosts that have chips.
func disruptHosts(t *testing.T, cp *ControlPlane) {
	for kind, reason := range map[Disruption]string{
		Evict: "EvictionByEvictionAPI", Taint: "DeletionByTaintManager", Preempt: "PreemptionByScheduler", Shutdown: "TerminationByKubelet",
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := stage{t, cp}
			pod, host := s.start(string(kind))
			if err := cp.Disrupt(t.Context(), host, kind); err != nil {
				t.Fatal(err)
			}
			p, code := s.end(pod)
			got := ""
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
					got = c.Reason
				}
			}
			if p.Status.Phase != corev1.PodFailed || code != 143 || got != reason {
				t.Errorf("the pod is %s with exit code %d for %q, want Failed, 143, %s", p.Status.Phase, code, got, reason)
			}
			if kind != Evict {
				s.disrupted(Disrupted{host, kind})
			}
			if err := cp.Mend(t.Context(), host); err != nil {
				t.Fatal(err)
			}
			s.disrupted()
		})
	}

	t.Run("delete", func(t *testing.T) {
		s := stage{t, cp}
		before, err := cp.client.CoreV1().Nodes().Get(t.Context(), "a-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := cp.Disrupt(t.Context(), "a-1", Delete); err != nil {
			t.Fatal(err)
		}
		s.disrupted(Disrupted{"a-1", Delete})
		err = cp.Disrupt(t.Context(), "a-1", Evict)
		if err == nil || !strings.Contains(err.Error(), "there is no such host") {
			t.Errorf("a host that is away: %v", err)
		}
		if err := cp.Mend(t.Context(), "a-1"); err != nil {
			t.Fatal(err)
		}
		s.disrupted()
		after, err := cp.client.CoreV1().Nodes().Get(t.Context(), "a-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if differs(after, complete(before, "a")) || after.UID == before.UID {
			t.Errorf("the host came back with labels %v and taints %v", after.Labels, after.Spec.Taints)
		}
	})

	t.Run("lose", func(t *testing.T) {
		s := stage{t, cp}
		pod, host := s.start("lose")
		for _, deleted := range []bool{false, true} {
			if err := cp.Disrupt(t.Context(), host, Lose); err != nil {
				t.Fatal(err)
			}
			s.disrupted(Disrupted{host, Lose})
			if deleted {
				if err := cp.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if p := s.pod(pod); p == nil || p.Status.Phase != corev1.PodRunning {
				t.Fatalf("the pod of a lost host has ended: %+v", p)
			}
			if err := cp.Mend(t.Context(), host); err != nil {
				t.Fatal(err)
			}
			s.disrupted()
			if deleted {
				break
			}
			for _, c := range s.pod(pod).Status.Conditions {
				if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
					t.Error("the pod of a host that is back is not ready")
				}
			}
		}
		if _, code := s.end(pod); code != 143 {
			t.Errorf("the pod of a host that is back ends with %d", code)
		}
	})

	t.Run("programs end as they are told", func(t *testing.T) {
		s := stage{t, cp}
		pod, host := s.start("fails")
		e := Exit{Namespace: metav1.NamespaceDefault, Job: "fails", Slice: -1, Host: 0, Code: 3, Log: "one\ntwo: it broke"}
		got, err := cp.Exit(t.Context(), e)
		if diff := cmp.Diff([]PodOf{{pod, host}}, got); diff != "" || err != nil {
			t.Errorf("%v, (-want +got):\n%s", err, diff)
		}
		eventually(t, time.Minute, "the log says so", func() error {
			b, err := cp.client.CoreV1().Pods(metav1.NamespaceDefault).GetLogs(pod, &corev1.PodLogOptions{TailLines: new(int64(1))}).DoRaw(t.Context())
			if err == nil && string(b) != "two: it broke\n" {
				err = fmt.Errorf("it ends %q", b)
			}
			return err
		})
		p, code := s.end(pod)
		if message := p.Status.ContainerStatuses[0].State.Terminated.Message; code != 3 || message != e.Log {
			t.Errorf("exit code %d, last words %q", code, message)
		}
		pod, _ = s.start("succeeds")
		if _, err := cp.Exit(t.Context(), Exit{Namespace: metav1.NamespaceDefault, Job: "succeeds", Slice: 0, Host: -1}); err != nil {
			t.Fatal(err)
		}
		if p, code := s.end(pod); p.Status.Phase != corev1.PodSucceeded || code != 0 {
			t.Errorf("%s with exit code %d", p.Status.Phase, code)
		}
		for want, e := range map[string]Exit{
			"256 is no exit code":                    {Job: "fails", Code: 256},
			"no pod of it runs in slice 1 on host 2": {Namespace: metav1.NamespaceDefault, Job: "never", Slice: 1, Host: 2},
		} {
			if _, err := cp.Exit(t.Context(), e); !errors.As(err, new(*HostError)) || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		}
	})
}
