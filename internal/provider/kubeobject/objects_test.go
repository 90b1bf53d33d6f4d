package kubeobject_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

func TestMain(m *testing.M) { acctest.Main(m) }

func world(t *testing.T) (g *acctest.GKE, k *kube.Client, cluster string) {
	t.Helper()
	g = acctest.NewGKE(t)
	g.Cluster.Keep(t, &kueue.ResourceFlavor{}, &kueue.ClusterQueue{}, &kueue.Cohort{}, &kueue.WorkloadPriorityClass{},
		&kueue.AdmissionCheck{}, &kueue.ProvisioningRequestConfig{})
	return g, g.Cluster.Client(t), g.MakeCluster(t, "main")
}

func with(base, more map[string]any) map[string]any {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

// kinds are the resources that are one object each, or one with its
// configuration. A config lacks the cluster only.
var kinds = map[string]struct {
	config map[string]any
	// warns is what writing it always says here, where no controllers run.
	warns string
	// imported is what an import cannot know of the writing.
	imported map[string]any
	id       string
	object   client.Object
	second   client.Object // another one that must go with it
	// drift is what somebody changes by hand, and the one attribute that shows it.
	drift []drift
	// change is a configuration that is changed in place.
	change map[string]any
	// wrong is refused, with these words.
	wrong []refusal
}{
	"tpu_kueue_priority": {
		config: map[string]any{"name": "urgent", "value": 2000, "description": "first of all"},
		id:     "/workloadPriorityClasses/urgent",
		object: &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}},
		drift: []drift{
			{&kueue.WorkloadPriorityClass{}, `{"value":1}`, "value"},
			{&kueue.WorkloadPriorityClass{}, `{"value":2000,"description":null}`, "description"},
		},
		change: map[string]any{"value": -7, "description": nil},
		wrong: []refusal{
			{map[string]any{"name": strings.Repeat("a", 64)}, "as a label"},
			{map[string]any{"description": strings.Repeat("x", 2049)}, "Kueue allows 2048"},
			{map[string]any{"value": 1 << 31}, "must be between"},
		},
	},
	"tpu_kueue_cohort": {
		config: map[string]any{"name": "lab", "parent": "all", "fair_sharing_weight": "0.5", "flavors": []any{
			map[string]any{"name": "v5e", "accelerator": "v5litepod-16", "slices": 2, "borrow_slices": 3, "lend_slices": 4}}},
		imported: map[string]any{},
		id:       "/cohorts/lab",
		object:   &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "lab"}},
		drift: []drift{
			{&kueue.Cohort{}, `{"spec":{"parentName":"others"}}`, "parent"},
			{&kueue.Cohort{}, `{"spec":{"parentName":"all","fairSharing":{"weight":"2"}}}`, "fair_sharing_weight"},
			{&kueue.Cohort{}, `{"spec":{"fairSharing":{"weight":"500m"},"resourceGroups":[{"coveredResources":["google.com/tpu"],"flavors":[{"name":"v5e","resources":[
				{"name":"google.com/tpu","nominalQuota":"33","borrowingLimit":"48","lendingLimit":"64"}]}]}]}}`, "chips"},
			{&kueue.Cohort{}, `{"spec":{"resourceGroups":[{"coveredResources":["google.com/tpu"],"flavors":[{"name":"v5e","resources":[
				{"name":"google.com/tpu","nominalQuota":"32","borrowingLimit":"49","lendingLimit":"64"}]}]}]}}`, "flavors"},
		},
		change: map[string]any{"parent": nil, "fair_sharing_weight": nil, "flavors": nil},
		wrong: []refusal{
			{map[string]any{"parent": nil}, "towards the parent; it has none"},
			{map[string]any{"parent": "lab"}, "its own parent"},
			{map[string]any{"parent": "A"}, "lowercase"},
			{map[string]any{"fair_sharing_weight": "-1"}, "negative"},
			{map[string]any{"fair_sharing_weight": "0.1n"}, "more than a billionth"},
			{map[string]any{"flavors": []any{}}, "at least 1"},
		},
	},
	"tpu_kueue_admission_check": {
		config: map[string]any{"name": "dws", "provisioning_request": map[string]any{
			"class": "queued-provisioning.gke.io", "parameters": map[string]any{"maxRunDurationSeconds": "86400"}, "managed_resources": []any{"google.com/tpu"},
			"node_selector": map[string]any{"autoscaling.gke.io/provisioning-request": "ResizeRequestName"}, "pod_set_merge_policy": "IdenticalPodTemplates"}},
		id:     "/admissionChecks/dws",
		warns:  "Admission check is not active",
		object: &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "dws"}},
		second: &kueue.ProvisioningRequestConfig{ObjectMeta: metav1.ObjectMeta{Name: "dws"}},
		drift: []drift{
			{&kueue.ProvisioningRequestConfig{}, `{"spec":{"retryStrategy":{"backoffLimitCount":9}}}`, "provisioning_request"},
			{&kueue.ProvisioningRequestConfig{}, `{"spec":{"retryStrategy":{"backoffLimitCount":3},"parameters":{"more":"1"}}}`, "provisioning_request"},
			{&kueue.ProvisioningRequestConfig{}, `{"spec":{"parameters":{"more":null},"podSetMergePolicy":null}}`, "provisioning_request"},
		},
		change: map[string]any{"provisioning_request": map[string]any{"class": "check-capacity.autoscaling.x-k8s.io", "retry_limit": 0}},
		wrong: []refusal{
			{map[string]any{"provisioning_request": nil}, "needs provisioning_request"},
			{map[string]any{"controller": "example.com/own"}, "has parameters of its own"},
			{map[string]any{"name": "a.b"}, "no dots"},
			{map[string]any{"parameters": map[string]any{"api_group": "g", "kind": "K", "name": "n"}}, "leave parameters out"},
			{map[string]any{"provisioning_request": map[string]any{"class": "A"}}, "lowercase"},
			{map[string]any{"provisioning_request": map[string]any{"class": "a", "retry_base_seconds": 10, "retry_max_seconds": 5}}, "retry"},
			{map[string]any{"provisioning_request": map[string]any{"class": "a", "node_selector": map[string]any{"a b": "c"}}}, "not a label's key"},
		},
	},
}

type drift struct {
	obj   client.Object // its name is the resource's
	patch string
	want  string
}

type refusal struct {
	change map[string]any
	want   string
}

// Create, nothing to do, import, drift shown as exactly that field, change in
// place, destroy; what Kueue would refuse is refused by validate, and what is
// unknown is not.
func TestObjects(t *testing.T) {
	for typ, tt := range kinds {
		t.Run(typ, func(t *testing.T) {
			g, k, cluster := world(t)
			p := g.Protocol(t, "")
			config := with(tt.config, map[string]any{"cluster": cluster})
			for _, bad := range tt.wrong {
				if text := p.Validate(typ, with(config, bad.change)); !strings.Contains(strings.Join(strings.Fields(text), " "), bad.want) {
					t.Errorf("%v: said %q, want %q", bad.change, text, bad.want)
				}
			}
			for name := range config {
				unknown := with(config, map[string]any{name: acctest.Unknown})
				if text := p.Validate(typ, unknown) + p.Plan(typ, nil, unknown).Text; text != "" {
					t.Errorf("%s unknown: %s", name, text)
				}
			}
			r, text := p.Apply(typ, nil, config)
			if strings.Contains(text, "ERROR") || (text == "") != (tt.warns == "") || !strings.Contains(text, tt.warns) || r == nil || r.State["id"] != cluster+tt.id {
				t.Fatalf("create: %v %s", r, text)
			}
			changes := func(want ...string) {
				t.Helper()
				now, text := p.Refresh(r)
				if now == nil || text != "" {
					t.Fatalf("refresh: %v %s", now, text)
				}
				changed := slices.DeleteFunc(p.Plan(typ, now, config).Changed, func(name string) bool {
					return name == "status" && len(want) > 0 // as it will be then
				})
				if diff := cmp.Diff(want, changed); diff != "" {
					t.Errorf("planned changes (-want +got):\n%s", diff)
				}
			}
			changes()
			imported, text := p.Import(typ, cluster+tt.id)
			if imported == nil || text != "" {
				t.Fatalf("import: %s", text)
			}
			if tt.imported == nil {
				if diff := cmp.Diff(r.State, imported.State); diff != "" {
					t.Errorf("imported (-created +imported):\n%s", diff)
				}
			}
			for _, d := range tt.drift {
				d.obj.SetName(tt.object.GetName())
				if err := k.Patch(t.Context(), d.obj, client.RawPatch("application/merge-patch+json", []byte(d.patch))); err != nil {
					t.Fatal(err)
				}
				changes(d.want)
			}
			config = with(config, tt.change)
			r, _ = p.Refresh(r)
			if plan := p.Plan(typ, r, config); len(plan.Replace) > 0 {
				t.Errorf("a change is a replacement because of %v", plan.Replace)
			}
			if r, text = p.Apply(typ, r, config); strings.Contains(text, "ERROR") || (text == "") != (tt.warns == "") {
				t.Fatal(text)
			}
			changes()
			if left, text := p.Destroy(r); left != nil || text != "" {
				t.Errorf("destroy: %v %s", left, text)
			}
			for _, obj := range []client.Object{tt.object, tt.second} {
				if obj == nil {
					continue
				}
				if found, err := k.Fetch(t.Context(), obj); found || err != nil {
					t.Errorf("after the destroy: %T %v %v", obj, found, err)
				}
			}
			if gone, text := p.Refresh(r); gone != nil || text != "" {
				t.Errorf("after the destroy: %v %s", gone, text)
			}
		})
	}
}

// An import that finds no spelling of the accelerator asks the flavor.
func TestImportOfACohort(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	if _, text := p.Apply("tpu_kueue_flavor", nil, map[string]any{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16"}); text != "" {
		t.Fatal(text)
	}
	r, text := p.Apply("tpu_kueue_cohort", nil, with(kinds["tpu_kueue_cohort"].config, map[string]any{"cluster": cluster}))
	if text != "" {
		t.Fatal(text)
	}
	imported, text := p.Import("tpu_kueue_cohort", cluster+"/cohorts/lab")
	if text != "" {
		t.Fatal(text)
	}
	if diff := cmp.Diff(r.State, imported.State); diff != "" {
		t.Errorf("imported (-created +imported):\n%s", diff)
	}
}

// A cohort that would close a circle of parents is refused before it is
// written, whoever made the others.
func TestCohortsInACircle(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	var a *acctest.Resource
	for name, parent := range map[string]any{"a": nil, "b": "a", "c": "b"} {
		r, text := p.Apply("tpu_kueue_cohort", nil, map[string]any{"cluster": cluster, "name": name, "parent": parent})
		if text != "" {
			t.Fatal(text)
		}
		if name == "a" {
			a = r
		}
	}
	_, text := p.Apply("tpu_kueue_cohort", a, map[string]any{"cluster": cluster, "name": "a", "parent": "c"})
	if !strings.Contains(text, "a is in c is in b is in a") {
		t.Errorf("said %q", text)
	}
}

// A check of another controller, and one that a queue still names.
func TestChecksOfOtherControllers(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	config := map[string]any{"cluster": cluster, "name": "slices", "controller": "accelerator.gke.io/slice",
		"parameters": map[string]any{"api_group": "example.com", "kind": "Settings", "name": "s"}}
	const typ = "tpu_kueue_admission_check"
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for ctx.Err() == nil && speak(ctx, k, "slices", "True", "Active", "") != nil {
			time.Sleep(5 * time.Millisecond) // between two looks
		}
	}()
	defer func() { cancel(); <-answered }()
	r, text := p.Apply(typ, nil, config)
	if text != "" || r.State["status"] != "Active" {
		t.Fatal(r, text)
	}
	if r, _ = p.Refresh(r); len(p.Plan(typ, r, config).Changed) > 0 {
		t.Errorf("second plan: %v", p.Plan(typ, r, config).Changed)
	}
	if plan := p.Plan(typ, r, with(config, map[string]any{"controller": "example.com/own"})); len(plan.Replace) != 1 {
		t.Errorf("another controller: replaced because of %v", plan.Replace)
	}
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "slices"}}
	if err := k.Patch(t.Context(), check, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["kueue.x-k8s.io/resource-in-use"]}}`))); err != nil {
		t.Fatal(err)
	}
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "research"}}
	cq.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: "slices"}}}
	if err := k.Apply(t.Context(), cq, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if left, text := p.Destroy(r); left != nil || !strings.Contains(text, "Named by: research") {
		t.Errorf("destroy: %v %s", left, text)
	}
}
