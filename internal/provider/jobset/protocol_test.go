package jobset_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const typ = "tpu_training_jobset"

type object = map[string]any

// scene is a cluster that keeps what a job is made of, without controllers.
type scene struct {
	t       *testing.T
	g       *acctest.GKE
	k       *kube.Client
	p       *acctest.Protocol
	cluster string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	g := acctest.NewGKE(t)
	in := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &corev1.ConfigMap{ObjectMeta: in}, &corev1.Service{ObjectMeta: in}, &corev1.Pod{ObjectMeta: in}, &batchv1.Job{ObjectMeta: in},
		&jobsetv1.JobSet{ObjectMeta: in}, &kueue.Workload{ObjectMeta: in}, &kueue.LocalQueue{ObjectMeta: in})
	s := &scene{t: t, g: g, k: g.Cluster.Client(t), p: g.Protocol(t, "team"), cluster: g.MakeCluster(t, "main")}
	lq := &kueue.LocalQueue{TypeMeta: metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "LocalQueue"}, ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "research"}}
	if err := s.k.Create(t.Context(), lq); err != nil {
		t.Fatal(err)
	}
	return s
}

// config is a job that is not waited for, with more on top.
func (s *scene) config(more object) object {
	c := object{"cluster": s.cluster, "namespace": "research", "name": "train", "queue": "research", "accelerator": "v5litepod-16",
		"slices": 1, "image": "train:1", "wait_for": "created"}
	maps.Copy(c, more)
	return c
}

func (s *scene) js() *jobsetv1.JobSet {
	s.t.Helper()
	js := &jobsetv1.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "train"}}
	if found, err := s.k.Fetch(s.t.Context(), js); err != nil || !found {
		s.t.Fatalf("the JobSet: found %t, %v", found, err)
	}
	return js
}

// workload is what Kueue would make; the job's state follows from it.
func (s *scene) workload() *kueue.Workload {
	s.t.Helper()
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "jobset-train"}}
	found, err := s.k.Fetch(s.t.Context(), wl)
	if err == nil && !found {
		wl.Labels = map[string]string{queue.LabelJobUID: string(s.js().UID)}
		err = s.k.Create(s.t.Context(), wl)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return wl
}

func (s *scene) patch(o client.Object, text string) {
	s.t.Helper()
	if err := s.k.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) apply(r *acctest.Resource, config object, want ...string) *acctest.Resource {
	s.t.Helper()
	r, text := s.p.Apply(typ, r, config)
	for _, w := range want {
		if !strings.Contains(text, w) {
			s.t.Errorf("said %q, want %q", text, w)
		}
	}
	if r == nil || len(want) == 0 && text != "" {
		s.t.Fatalf("apply: %v %s", r, text)
	}
	return r
}

// plan refreshes and plans.
func (s *scene) plan(r *acctest.Resource, config object) (*acctest.Resource, acctest.Plan) {
	s.t.Helper()
	r, text := s.p.Refresh(r)
	if r == nil || strings.Contains(text, "ERROR") {
		s.t.Fatalf("refresh: %v %s", r, text)
	}
	return r, s.p.Plan(typ, r, config)
}

func (s *scene) empty(r *acctest.Resource, config object, when string) *acctest.Resource {
	s.t.Helper()
	r, plan := s.plan(r, config)
	if diff := cmp.Diff([]string{}, plan.Changed, cmpopts.EquateEmpty()); diff != "" || plan.Text != "" {
		s.t.Errorf("%s a plan changes (-want +got):\n%s\n%s", when, diff, plan.Text)
	}
	return r
}

// everything is a job with each input.
func (s *scene) everything() object {
	c := s.config(object{
		"shell": "python a.py | tee log", "env": object{"A": "1"}, "env_from": []any{object{"secret": "tokens", "prefix": "HF_"}, object{"config_map": "c", "optional": true}},
		"files": object{"/etc/a.yaml": "lr: 1"}, "resources": object{"cpu": "100", "memory": "180Gi"}, "host_network": true, "scheduler_name": "gang",
		"volumes": object{
			"data":    object{"path": "/data", "bucket": "my-data", "mount_options": []any{"implicit-dirs"}, "read_only": true},
			"shared":  object{"path": "/shared", "claim": "filestore", "sub_path": "a"},
			"home":    object{"path": "/home", "nfs": object{"server": "10.0.0.2", "path": "/home"}},
			"scratch": object{"path": "/scratch", "scratch": "1Gi"}, "ram": object{"path": "/ram", "ramdisk": true},
		},
		"jobs": object{
			"tensorboard": object{"image": "uploader:1", "args": []any{"--logdir=/shared"}, "starts_after": object{"slice": "ready"}},
			"eval": object{"pods": 2, "command": []any{"eval"}, "env": object{"B": "1"}, "env_from": []any{object{"secret": "tokens"}}, "resources": object{"cpu": "4"},
				"node_selector": object{"pool": "cpu"}, "on_failure": "fail"},
		},
		"starts_after": object{"eval": "ready"}, "max_run_time": "72h0m0s", "service_account": "trainer", "output_dir": "gs://runs/c", "first_attempt": 2, "experiment": "x",
		"labels": object{"team": "a"}, "annotations": object{"note": "b"}, "pod_annotations": object{"c": "d"}, "priority": "low",
		"restart_policy":     object{"max_restarts": 1, "fatal_exit_codes": []any{3}, "on_preemption": "count"},
		"ttl_after_finished": "24h0m0s", "termination_grace_period": "10s",
		"jobset_overrides": `{"spec":{"replicatedJobs":[{"name":"slice","template":{"spec":{"template":{"spec":{"priorityClassName":"gold"}}}}}]}}`,
	})
	return c
}

// With every input: nothing to do after the creation, an import has them all,
// and files go with the job.
func TestEveryInput(t *testing.T) {
	s := newScene(t)
	config := s.everything()
	r := s.empty(s.apply(nil, config), config, "after the creation")
	js := s.js()
	var files corev1.ConfigMapList
	if err := s.k.List(t.Context(), &files); err != nil || len(files.Items) != 1 || files.Items[0].Data["file-0"] != "lr: 1" ||
		len(files.Items[0].OwnerReferences) != 1 || files.Items[0].OwnerReferences[0].UID != js.UID {
		t.Errorf("files: %+v %v", files.Items, err)
	}
	imported, text := s.p.Import(typ, r.State["id"].(string))
	if imported == nil || text != "" {
		t.Fatalf("import: %v %s", imported, text)
	}
	for name, want := range config {
		if name == "wait_for" { // is not a fact about the job
			continue
		}
		if diff := cmp.Diff(want, pruned(imported.State[name])); diff != "" {
			t.Errorf("imported %s (-want +got):\n%s", name, diff)
		}
	}
	if plan := s.p.Plan(typ, imported, config); len(plan.Replace) > 0 || !slices.Equal(plan.Changed, []string{"wait_for"}) && len(plan.Changed) > 0 && plan.Changed[0] != "conditions" {
		t.Errorf("after an import a plan changes %v, replaces for %v", plan.Changed, plan.Replace)
	}
}

// pruned leaves out what is null.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := object{}
		for k, e := range v {
			if e != nil {
				out[k] = pruned(e)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, pruned(e))
		}
		return out
	}
	return v
}

// What makes a new job and what does not, and that the plan names it.
func TestWhatReplaces(t *testing.T) {
	s := newScene(t)
	base := s.everything()
	r := s.apply(nil, base)
	for name, c := range map[string]struct {
		value   any
		replace bool
	}{
		"shell": {"other", true}, "env_from": {nil, true}, "files": {object{"/etc/a.yaml": "lr: 2"}, true}, "resources": {object{"cpu": "1"}, true},
		"volumes": {nil, true}, "jobs": {nil, true}, "starts_after": {nil, true}, "host_network": {nil, true}, "scheduler_name": {nil, true},
		"max_run_time": {"1h0m0s", true}, "rerun_trigger": {"1", true}, "jobset_overrides": {nil, true},
		"restart_policy": {object{"max_restarts": 1, "fatal_exit_codes": []any{3}, "on_preemption": "fail"}, true},
		"priority":       {"high", false}, "labels": {nil, false}, "annotations": {nil, false}, "ttl_after_finished": {nil, false}, "active": {true, false}, "wait_for": {"running", false},
	} {
		t.Run(name, func(t *testing.T) {
			config := s.config(base)
			if config[name] = c.value; c.value == nil {
				delete(config, name)
			}
			if name == "jobs" {
				delete(config, "starts_after")
			}
			plan := s.p.Plan(typ, r, config)
			if got := len(plan.Replace) > 0; got != c.replace {
				t.Errorf("replaces for %v, want %t", plan.Replace, c.replace)
			}
			if c.replace && (!strings.Contains(plan.Text, "WARNING") || !strings.Contains(plan.Text, name)) {
				t.Errorf("the plan does not say why: %s", plan.Text)
			}
		})
	}
	config := s.config(base)
	config["jobset_overrides"] = "{ \"spec\": {\"replicatedJobs\":\n[{\"template\":{\"spec\":{\"template\":{\"spec\":{\"priorityClassName\":\"gold\"}}}},\"name\":\"slice\"}]}}"
	if plan := s.p.Plan(typ, r, config); len(plan.Replace) > 0 {
		t.Errorf("the same overrides written otherwise replace: %v", plan.Replace)
	}
}

// Suspending and resuming, by Terraform and by hand.
func TestActive(t *testing.T) {
	s := newScene(t)
	off, on, unset := s.config(object{"active": false}), s.config(object{"active": true}), s.config(nil)
	r := s.apply(nil, off)
	if js := s.js(); js.Spec.Suspend == nil || !*js.Spec.Suspend || js.Labels[queue.LabelQueueName] != "" {
		t.Errorf("created suspended: %v %v", js.Spec.Suspend, js.Labels)
	}
	if r.State["status"] != "Suspended" {
		t.Errorf("status %v", r.State["status"])
	}
	r = s.empty(r, off, "suspended")
	r = s.apply(r, on)
	if js := s.js(); js.Labels[queue.LabelQueueName] != "research" || !*js.Spec.Suspend {
		t.Errorf("resumed, its spec.suspend is Kueue's to change: %v %v", *js.Spec.Suspend, js.Labels)
	}
	s.workload()
	r = s.empty(r, on, "resumed")
	r = s.apply(r, off)
	wl := s.workload()
	if wl.Spec.Active == nil || *wl.Spec.Active {
		t.Errorf("suspended through the Workload: %v", wl.Spec.Active)
	}
	r = s.empty(r, off, "suspended through the Workload")
	s.patch(wl, `{"spec":{"active":true}}`)
	r, plan := s.plan(r, off)
	if !slices.Contains(plan.Changed, "active") || len(plan.Replace) > 0 {
		t.Errorf("resumed by hand, where it is to be suspended: changes %v", plan.Changed)
	}
	r = s.apply(r, unset)
	s.patch(wl, `{"spec":{"active":false}}`)
	r = s.empty(r, unset, "suspended by hand, which is nobody's business,")
	if r.State["status"] != "Suspended" {
		t.Errorf("status %v", r.State["status"])
	}
	// An apply that is to wait for it ends at once: nothing but a resuming would
	// end the waiting.
	run := s.config(object{"wait_for": "running", "timeouts": object{"update": "1m"}})
	r = s.apply(r, run, "Job train is suspended (SuspendedByUser", "set active = true")
	r = s.empty(r, run, "not waited for")
	if r.State["status"] != "Suspended" {
		t.Errorf("not waited for: status %v", r.State["status"])
	}
}

// An interrupt ends the waiting, not the job; the next apply waits on.
func TestInterruptedWaiting(t *testing.T) {
	s := newScene(t)
	config := s.config(object{"wait_for": "completed"})
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		defer interrupt()
		for ctx.Err() == nil {
			if found, err := s.k.Fetch(ctx, &jobsetv1.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "train"}}); err == nil && found {
				return
			}
		}
	}()
	r, text := s.p.Under(ctx).Apply(typ, nil, config)
	if r == nil || strings.Contains(text, "ERROR") || !strings.Contains(text, "waits on") {
		t.Fatalf("interrupted: %v %s", r, text)
	}
	r, plan := s.plan(r, config)
	if !slices.Contains(plan.Changed, "status") || len(plan.Replace) > 0 {
		t.Errorf("after the interrupt a plan changes %v, replaces for %v", plan.Changed, plan.Replace)
	}
	s.patch(s.js(), `{"status":{"conditions":[{"type":"Completed","status":"True","reason":"AllJobsCompleted","message":"done","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	r = s.apply(r, config)
	if r.State["status"] != "Succeeded" || r.State["finished_at"] != "2026-01-02T03:04:05Z" {
		t.Errorf("%v at %v", r.State["status"], r.State["finished_at"])
	}
	s.empty(r, config, "completed")
}

// Gone without a result it stays, as GONE, and is not run again but by its
// trigger.
func TestGone(t *testing.T) {
	s := newScene(t)
	config := s.config(nil)
	r := s.apply(nil, config)
	if err := s.k.Delete(t.Context(), s.js()); err != nil {
		t.Fatal(err)
	}
	r, text := s.p.Refresh(r)
	if r == nil || r.State["status"] != "GONE" || !strings.Contains(text, "rerun_trigger") {
		t.Fatalf("%v %s", r, text)
	}
	if plan := s.p.Plan(typ, r, config); len(plan.Changed) > 0 {
		t.Errorf("a plan changes %v", plan.Changed)
	}
	config["rerun_trigger"] = "2"
	if plan := s.p.Plan(typ, r, config); len(plan.Replace) == 0 || !strings.Contains(plan.Text, "run again") {
		t.Errorf("the trigger replaces for %v: %s", plan.Replace, plan.Text)
	}
}

// Everything wrong is told at plan, at its attribute, and what is not known yet
// is not wrong.
func TestRefusedInputs(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct {
		name string
		more object
		want string
	}{
		{"script and command", object{"shell": "a", "command": []any{"b"}}, "one or the other"},
		{"bad quantity", object{"resources": object{"memory": "10 GB"}}, "10 GB"},
		{"memory without a unit", object{"resources": object{"memory": "100"}}, "a unit is missing"},
		{"no bucket", object{"output_dir": "gs:/runs"}, "is no folder in Cloud Storage"},
		{"relative file", object{"files": object{"a": "b"}}, "start with /"},
		{"volume of nothing", object{"volumes": object{"v": object{"path": "/v"}}}, "set one of"},
		{"job after nobody", object{"starts_after": object{"eval": "ready"}}, "which is no job here"},
		{"unknown step", object{"jobs": object{"a": object{"starts_after": object{"slice": "done"}}}}, "done"},
		{"broken overrides", object{"jobset_overrides": "{"}, "not a JSON object"},
		{"misspelt override", object{"jobset_overrides": `{"spec":{"sucessPolicy":{}}}`}, "sucessPolicy"},
		{"unknown policy", object{"restart_policy": object{"on_preemption": "never"}}, "never"},
		{"time without a queue", object{"queue": nil, "max_run_time": "1h"}, "set queue"},
		{"no time", object{"max_run_time": "0s"}, "no time"},
		{"unknown jobs", object{"jobs": acctest.Unknown, "starts_after": object{"eval": "ready"}}, ""},
		{"unknown volume", object{"volumes": object{"v": object{"path": acctest.Unknown, "claim": "a"}}}, ""},
		{"unknown everything", object{"shell": acctest.Unknown, "files": acctest.Unknown, "resources": acctest.Unknown, "env_from": acctest.Unknown, "starts_after": acctest.Unknown,
			"jobset_overrides": acctest.Unknown, "active": acctest.Unknown, "max_run_time": acctest.Unknown, "host_network": acctest.Unknown, "restart_policy": acctest.Unknown}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := s.p.Validate(typ, s.config(c.more))
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
			if c.want == "" {
				if plan := s.p.Plan(typ, nil, s.config(c.more)); plan.Text != "" {
					t.Errorf("plan: %s", plan.Text)
				}
			}
		})
	}
}

// What is too large for an exit code is refused, and does not become another.
func TestExitCodesTooLarge(t *testing.T) {
	s := newScene(t)
	for _, code := range []int{300, 1<<32 + 2, -1<<32 + 2} {
		text := s.p.Validate(typ, s.config(object{"restart_policy": object{"fatal_exit_codes": []any{code}}}))
		if !strings.Contains(text, "exit codes are 1 to 255") {
			t.Errorf("%d: said %q", code, text)
		}
	}
}
