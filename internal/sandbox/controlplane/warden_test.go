package controlplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tpuPod asks for chips, container by container, on slices of v6e 4x4.
func tpuPod(chips ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: "2"},
		Labels:      map[string]string{jobSetLabel: "train", replicatedLabel: "slice", jobIndexLabel: "1", replicasLabel: "3"},
	}}
	p.Spec.Subdomain = "train"
	p.Spec.NodeSelector = map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
	for _, n := range chips {
		c := corev1.Container{}
		if n != "" {
			c.Resources.Limits = corev1.ResourceList{tpuResource: resource.MustParse(n)}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func indexedJob(hosts int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train-slice-1"}, Spec: batchv1.JobSpec{
		Parallelism: &hosts, CompletionMode: new(batchv1.IndexedCompletion),
	}}
}

func TestTPUEnvironment(t *testing.T) {
	pod := tpuPod("4", "")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MINE", Value: "x"}, {Name: envSliceID, Value: "own"}}
	want := []jsonPatch{{"add", "/spec/containers/0/env", []corev1.EnvVar{
		{Name: "MINE", Value: "x"}, {Name: envSliceID, Value: "own"},
		{Name: envWorkerID, Value: "2"}, {Name: envHostnames, Value: "train-slice-1-0.train,train-slice-1-1.train"},
		{Name: envTopology, Value: "4x4"},
		{Name: envCoordinator, Value: "train-slice-0-0.train"}, {Name: envNumSlices, Value: "3"},
	}}}
	if diff := cmp.Diff(want, tpuEnvironment(pod, indexedJob(2))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	one := tpuPod("4")
	delete(one.Labels, replicasLabel)
	if got := tpuEnvironment(one, indexedJob(2)); len(got) != 1 || len(got[0].Value.([]corev1.EnvVar)) != 3 {
		t.Errorf("one slice: %v", got)
	}
	nameless, plain := tpuPod("4"), indexedJob(2)
	nameless.Spec.Subdomain, plain.Spec.CompletionMode = "", nil
	for what, got := range map[string][]jsonPatch{
		"no Job": tpuEnvironment(tpuPod("4"), nil), "one host": tpuEnvironment(tpuPod("4"), indexedJob(1)),
		"not indexed": tpuEnvironment(tpuPod("4"), plain), "no names": tpuEnvironment(nameless, indexedJob(2)), "no chips": tpuEnvironment(tpuPod(""), indexedJob(2)),
	} {
		if got != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestWarden(t *testing.T) {
	affine := func(p *corev1.Pod, topologies ...string) *corev1.Pod {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "cloud.google.com/gke-tpu-topology", Operator: corev1.NodeSelectorOpIn, Values: topologies},
			}}},
		}}}
		return p
	}
	on := func(p *corev1.Pod, accelerator, topology string) *corev1.Pod {
		p.Spec.NodeSelector = map[string]string{}
		if accelerator != "" {
			p.Spec.NodeSelector["cloud.google.com/gke-tpu-accelerator"] = accelerator
		}
		if topology != "" {
			p.Spec.NodeSelector["cloud.google.com/gke-tpu-topology"] = topology
		}
		return p
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string // "" = let in
	}{
		"whole host":               {tpuPod("4"), ""},
		"two containers":           {tpuPod("2", "2"), ""},
		"no chips":                 {on(tpuPod(""), "", ""), ""},
		"by affinity":              {affine(on(tpuPod("4"), "tpu-v6e-slice", ""), "4x4"), ""},
		"either form of 2x4":       {on(tpuPod("8"), "tpu-v6e-slice", "2x4"), ""},
		"a shape of tomorrow":      {on(tpuPod("3"), "tpu-v9-slice", "4x4"), ""},
		"no accelerator":           {on(tpuPod("4"), "", "4x4"), "Missing nodeSelector/nodeAffinity label cloud.google.com/gke-tpu-accelerator"},
		"no topology":              {on(tpuPod("4"), "tpu-v6e-slice", ""), "Missing nodeSelector/nodeAffinity label cloud.google.com/gke-tpu-topology"},
		"several topologies":       {affine(tpuPod("4"), "4x4", "2x4"), "Multiple values (2x4, 4x4) for nodeSelector/nodeAffinity label cloud.google.com/gke-tpu-topology; a pod is for one"},
		"part of a host":           {tpuPod("1"), "Invalid resource requests for google.com/tpu. A pod on tpu-v6e-slice with topology 4x4 asks for all chips of its host, 4; this one asks for 1"},
		"neither form of a 2x4":    {on(tpuPod("5"), "tpu-v6e-slice", "2x4"), "Invalid resource requests for google.com/tpu. A pod on tpu-v6e-slice with topology 2x4 asks for all chips of its host, 4 or 8; this one asks for 5"},
		"two containers, too many": {tpuPod("4", "4"), "Invalid resource requests for google.com/tpu. A pod on tpu-v6e-slice with topology 4x4 asks for all chips of its host, 4; this one asks for 8"},
	} {
		if diff := cmp.Diff(c.want, strings.Join(wardenProblems(c.pod), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got := wardenText(on(tpuPod("4"), "", "4x4"), "ann", []string{"a", "b"})
	want := "GKE Warden rejected the request because it violates one or more constraints.\n" +
		`Violations details: {"[denied by tpu-accelerator-topology-constraints]":["Missing nodeSelector/nodeAffinity label cloud.google.com/gke-tpu-accelerator"]}` +
		"\nRequested by user: 'ann', groups: 'a,b'."
	if diff := cmp.Diff(want, got); diff != "" || wardenText(tpuPod("4"), "ann", nil) != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
