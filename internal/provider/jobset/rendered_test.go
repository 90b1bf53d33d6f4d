package jobset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// The function and its twin render exactly what the resource creates.
func TestRenderedIsWhatIsApplied(t *testing.T) {
	s := newScene(t)
	config := s.everything()
	s.apply(nil, config)
	made := s.js()
	function, text := s.p.Call("render_jobset", config)
	if text != "" {
		t.Fatal(text)
	}
	data, text := s.p.Data("tpu_rendered_jobset", object{"spec": config, "owner": "team"})
	if text != "" {
		t.Fatal(text)
	}
	parts := strings.Split(data["yaml"].(string), "---\n")
	var js jobsetv1.JobSet
	var files corev1.ConfigMap
	if len(parts) != 2 || yaml.UnmarshalStrict([]byte(parts[0]), &js) != nil || yaml.UnmarshalStrict([]byte(parts[1]), &files) != nil {
		t.Fatalf("rendered:\n%s", data["yaml"])
	}
	if diff := cmp.Diff(made.Spec, js.Spec); diff != "" {
		t.Errorf("spec (-applied +rendered):\n%s", diff)
	}
	if diff := cmp.Diff(made.Labels, js.Labels); diff != "" {
		t.Errorf("labels (-applied +rendered):\n%s", diff)
	}
	if diff := cmp.Diff(made.Annotations, js.Annotations); diff != "" {
		t.Errorf("annotations (-applied +rendered):\n%s", diff)
	}
	if files.Data["file-0"] != "lr: 1" {
		t.Errorf("files: %v", files.Data)
	}
	// The function knows no provider's owner.
	if got := function.(string); !strings.Contains(got, "kind: JobSet") || strings.Contains(got, "tpu-training.github.io/owner") {
		t.Errorf("the function renders:\n%s", got)
	}
}

func TestRenderRefuses(t *testing.T) {
	s := newScene(t)
	small := func(more object) object {
		c := object{"name": "train", "accelerator": "v5litepod-16", "slices": 1, "image": "train:1"}
		for k, v := range more {
			c[k] = v
		}
		return c
	}
	for _, c := range []struct {
		name string
		spec any
		want string // "" = rendered
	}{
		{"the least", small(nil), ""},
		{"a number as text", small(object{"slices": "2"}), ""},
		{"a text as number", small(object{"env": object{"A": 1, "B": true}}), ""},
		{"no object", "train", "no object"},
		{"null", nil, "no object"},
		{"an argument that is none", small(object{"imagee": "a"}), "no argument imagee"},
		{"one deeper down", small(object{"jobs": object{"a": object{"imag": "b"}}}), "spec.jobs.a has no argument imag"},
		{"an output", small(object{"status": "Running"}), "status is nothing"},
		{"a wrong kind", small(object{"slices": []any{1}}), "spec.slices: a number"},
		{"a wrong word", small(object{"slices": "two"}), "spec.slices: a number"},
		{"no slice", small(object{"accelerator": "h100"}), "h100"},
		{"a bad name", small(object{"name": "Train"}), "lowercase letters"},
		{"bad dependencies", small(object{"starts_after": object{"a": "ready"}}), "no job here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, text := s.p.Call("render_jobset", c.spec)
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
