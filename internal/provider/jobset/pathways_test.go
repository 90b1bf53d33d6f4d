package jobset_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// through is a Pathways job with each input of its own.
func (s *scene) through() object {
	return s.config(object{
		"accelerator": "v6e-16", "slices": 2, "command": []any{"python", "a.py"}, "env": object{"A": "1"},
		"placement": object{"provisioning": "reservation", "reservation": "r"},
		"pathways": object{
			"scratch_location": "gs://scratch/a", "proxy_image": "proxy:1", "server_image": "server:1", "proxy_args": []any{"--a"}, "server_args": []any{"--b"}, "worker_args": []any{"--c"},
			"proxy_resources": object{"cpu": "2", "memory": "4Gi"}, "server_resources": object{"cpu": "1"}, "head_node_selector": object{"pool": "heads"},
			"elastic_slices": 1, "max_slice_restarts": 2, "colocated_python_image": "python:1",
		},
	})
}

func TestEveryInputOfPathways(t *testing.T) {
	s := newScene(t)
	config := s.through()
	if plan := s.p.Plan(typ, nil, config); plan.Planned["proxy_address"] != "grpc://train-head-0-0.train:29000" {
		t.Errorf("the plan does not know the proxy's address: %v", plan.Planned["proxy_address"])
	}
	r := s.empty(s.apply(nil, config), config, "after the creation")
	if got := r.State["proxy_address"]; got != "grpc://train-head-0-0.train:29000" {
		t.Errorf("proxy at %v", got)
	}
	imported, text := s.p.Import(typ, r.State["id"].(string))
	if imported == nil || text != "" {
		t.Fatalf("import: %v %s", imported, text)
	}
	for name, want := range config {
		if name == "wait_for" {
			continue
		}
		if diff := cmp.Diff(want, pruned(imported.State[name])); diff != "" {
			t.Errorf("imported %s (-want +got):\n%s", name, diff)
		}
	}
	if plan := s.p.Plan(typ, imported, config); len(plan.Replace) > 0 {
		t.Errorf("after an import a plan replaces for %v", plan.Replace)
	}
	for name, change := range map[string]object{
		"pathways":            {"pathways": object{"scratch_location": "gs://scratch/b"}},
		"placement":           {"placement": object{"provisioning": "spot"}},
		"containers_per_host": {"containers_per_host": 1},
	} {
		changed := s.config(config)
		maps.Copy(changed, change)
		if plan := s.p.Plan(typ, r, changed); len(plan.Replace) == 0 || !strings.Contains(plan.Text, name) {
			t.Errorf("another %s replaces for %v: %s", name, plan.Replace, plan.Text)
		}
	}
}

// The kind of slice of a node pool is the same in each of its spellings.
func TestPartOfASlice(t *testing.T) {
	s := newScene(t)
	config := s.config(object{"accelerator": "v6e-16", "placement": object{"pool_accelerator": "v6e-64"}})
	r := s.empty(s.apply(nil, config), config, "after the creation")
	if r.State["proxy_address"] != nil {
		t.Errorf("proxy at %v", r.State["proxy_address"])
	}
	config["placement"] = object{"pool_accelerator": "v6e-8x8"}
	if plan := s.p.Plan(typ, r, config); len(plan.Replace) > 0 {
		t.Errorf("another spelling replaces for %v", plan.Replace)
	}
	imported, text := s.p.Import(typ, r.State["id"].(string))
	if imported == nil || text != "" || imported.State["accelerator"] != "v6e-16" {
		t.Fatalf("import: %v %s", imported, text)
	}
}

func TestRefusedPathways(t *testing.T) {
	s := newScene(t)
	with := func(path object, more object) object {
		c := s.config(object{"accelerator": "v6e-16", "slices": 2})
		c["pathways"] = object{"scratch_location": "gs://scratch"}
		maps.Copy(c["pathways"].(object), path)
		maps.Copy(c, more)
		return c
	}
	for _, c := range []struct {
		name       string
		path, more object
		want       string
	}{
		{"as it is", nil, nil, ""},
		{"scratch elsewhere", object{"scratch_location": "/tmp"}, nil, "gs://BUCKET"},
		{"scratch not known", object{"scratch_location": acctest.Unknown}, nil, ""},
		{"arguments not known", object{"proxy_args": acctest.Unknown, "head_node_selector": acctest.Unknown, "server_resources": acctest.Unknown, "elastic_slices": acctest.Unknown}, nil, ""},
		{"headless or not", object{"headless": acctest.Unknown}, object{"image": nil}, ""},
		{"all of it not known", nil, object{"pathways": acctest.Unknown, "image": nil, "starts_after": object{"a": "ready"}, "jobs": object{"a": object{}}}, ""},
		{"no image", nil, object{"image": nil}, "needs a container image"},
		{"own port", object{"worker_args": []any{"--server_port=1"}}, nil, "--server_port"},
		{"bad quantity", object{"proxy_resources": object{"cpu": "two"}}, nil, "two"},
		{"too elastic", object{"elastic_slices": 3}, nil, "3 of 2"},
		{"no restart at all", object{"max_slice_restarts": 0}, nil, "at least 1"},
		{"single chip", nil, object{"accelerator": "v6e-1"}, "does not run on"},
		{"headless", object{"headless": true}, object{"image": nil}, ""},
		{"headless with an image", object{"headless": true}, nil, "no program of its own"},
		{"headless waited for", object{"headless": true}, object{"image": nil, "wait_for": "completed"}, "in vain"},
		{"headless waited for, with a limit", object{"headless": true}, object{"image": nil, "wait_for": "completed", "max_run_time": "1h"}, ""},
		{"own platform", nil, object{"env": object{"JAX_PLATFORMS": "cpu"}}, "JAX_PLATFORMS"},
		{"part of a slice", nil, object{"placement": object{"pool_accelerator": "v6e-64"}}, "several parts"},
		{"unknown model", nil, object{"placement": object{"provisioning": "preemptible"}}, "preemptible"},
		{"reservation without its model", nil, object{"placement": object{"reservation": "r"}}, "provisioning"},
		{"placement not known", nil, object{"placement": acctest.Unknown}, ""},
		{"reservation not known", nil, object{"placement": object{"provisioning": "reservation", "reservation": acctest.Unknown}}, ""},
		{"unknown pool", nil, object{"pathways": nil, "placement": object{"pool_accelerator": "h100"}}, "h100"},
		{"pool of another generation", nil, object{"pathways": nil, "placement": object{"pool_accelerator": "v5p-128"}}, "cannot be made"},
		{"two containers", nil, object{"pathways": nil, "containers_per_host": 2}, "for 1 container"},
		{"no container", nil, object{"containers_per_host": 0}, "at least 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := s.p.Validate(typ, with(c.path, c.more))
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// A headless job is a proxy to connect to, and nothing of the user's.
func TestHeadless(t *testing.T) {
	s := newScene(t)
	config := s.config(object{"image": nil, "accelerator": "v6e-16", "pathways": object{"scratch_location": "gs://scratch", "headless": true}})
	r := s.empty(s.apply(nil, config), config, "after the creation")
	js := s.js()
	head := slices.IndexFunc(js.Spec.ReplicatedJobs, func(rj jobsetv1.ReplicatedJob) bool { return rj.Name == training.HeadJob })
	if head < 0 || len(js.Spec.ReplicatedJobs[head].Template.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("the head: %+v", js.Spec.ReplicatedJobs)
	}
	imported, text := s.p.Import(typ, r.State["id"].(string))
	if imported == nil || text != "" || imported.State["image"] != nil {
		t.Fatalf("import: %v %s", imported, text)
	}
}
