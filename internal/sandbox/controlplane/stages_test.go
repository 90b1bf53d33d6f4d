package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestWhichPodsRunAsProcesses(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/jobset/jobset:v0.12.0":                            "jobset",
		"us-central1-docker.pkg.dev/k8s-staging-images/jobset/jobset:main": "jobset",
		"registry.k8s.io/kueue/kueue:v0.19.0":                              "kueue",
		"registry.k8s.io/kueue/kueue@sha256:0123":                          "kueue",
		"registry.k8s.io/kueue/kueue:v0.19.0@sha256:0123":                  "kueue",
		"localhost:5000/kueue":                                             "kueue",
		"kueue":                                                            "kueue",
		"registry.k8s.io/kueue/kueueviz:v0.19.0":                           "",
		"registry.k8s.io/jobset/jobset-tools:v1":                           "",
		"example.com/kueue/trainer:v1":                                     "",
		"us-docker.pkg.dev/cloud-tpu-images/jax-ai-image/tpu:latest":       "",
		"example.com/notkueue:v1":                                          "",
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "first", Image: "python"}, {Name: "manager", Image: image}}}}
		if got := binaryOf(image); got != want {
			t.Errorf("image %s is of binary %q, want %q", image, got, want)
		}
		if c := processContainer(p); (c != nil) != (want != "") || (c != nil && c.Name != "manager") {
			t.Errorf("image %s: container %v", image, c)
		}
		p.Labels = map[string]string{jobNameLabel: "train"}
		if processContainer(p) != nil {
			t.Errorf("image %s: the pod of a Job runs as a process", image)
		}
	}
}

// Every document of KWOK's configuration is well-formed, and every pod stage
// that could touch a process pod leaves it alone.
func TestStages(t *testing.T) {
	text, err := renderStages(7 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, doc := range strings.Split(text, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				ResourceRef struct{ Kind string }
				Selector    struct {
					MatchExpressions []struct{ Key, Operator string }
				}
				Delay struct{ DurationMilliseconds int }
			}
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		kinds = append(kinds, o.Kind+"/"+o.Metadata.Name)
		excluded, jobsOnly := false, false
		for _, e := range o.Spec.Selector.MatchExpressions {
			excluded = excluded || e.Key == processPodQuery && e.Operator == "DoesNotExist"
			// Process pods are never Running with these.
			jobsOnly = jobsOnly || strings.Contains(e.Key, "ownerReferences") || strings.Contains(e.Key, "pod-fail.stage")
		}
		if o.Spec.ResourceRef.Kind == "Pod" && !excluded && !jobsOnly {
			t.Errorf("stage %s applies to pods that run as processes", o.Metadata.Name)
		}
		if o.Metadata.Name == "pod-complete" && o.Spec.Delay.DurationMilliseconds != 7000 {
			t.Errorf("a Job's pod runs %d ms, want 7000", o.Spec.Delay.DurationMilliseconds)
		}
	}
	want := []string{"KwokConfiguration/kwok", "Stage/node-ready", "Stage/pod-ready", "Stage/pod-complete", "Stage/pod-fail", "Stage/pod-terminate", "Stage/pod-remove"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}
