package flavor_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

const typ = "tpu_kueue_flavor"

func TestMain(m *testing.M) { acctest.Main(m) }

// world is a cluster that has Kueue's kinds.
func world(t *testing.T) (g *acctest.GKE, k *kube.Client, cluster string) {
	t.Helper()
	g = acctest.NewGKE(t)
	g.Cluster.Keep(t, &kueue.ResourceFlavor{}, &kueue.ClusterQueue{}, &kueue.Topology{})
	return g, g.Cluster.Client(t), g.MakeCluster(t, "main")
}

func with(base map[string]any, more map[string]any) map[string]any {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

// edit changes an object by hand.
func edit(t *testing.T, k *kube.Client, obj client.Object, patch string) {
	t.Helper()
	if err := k.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func flavorNamed(name string) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Create, nothing to do, import, change, drift shown as exactly that field,
// destroy.
func TestLifecycle(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "team")
	config := map[string]any{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16", "provisioning": "on_demand", "node_labels": map[string]any{"tier": "gold"}}
	r, text := p.Apply(typ, nil, config)
	if text != "" || r == nil {
		t.Fatalf("create: %v, %s", r, text)
	}
	for attr, want := range map[string]any{"id": cluster + "/resourceFlavors/v5e", "topology": "4x4", "chips_per_slice": 16} {
		if r.State[attr] != want {
			t.Errorf("%s is %v, want %v", attr, r.State[attr], want)
		}
	}
	again := func(r *acctest.Resource, want ...string) {
		t.Helper()
		r, text := p.Refresh(r)
		if r == nil || text != "" {
			t.Fatalf("refresh: %v, %s", r, text)
		}
		if diff := cmp.Diff(want, p.Plan(typ, r, config).Changed); diff != "" {
			t.Errorf("planned changes (-want +got):\n%s", diff)
		}
	}
	again(r)
	imported, text := p.Import(typ, cluster+"/resourceFlavors/v5e")
	if text != "" {
		t.Fatal(text)
	}
	if diff := cmp.Diff(r.State, imported.State); diff != "" {
		t.Errorf("imported (-created +imported):\n%s", diff)
	}

	edit(t, k, flavorNamed("v5e"), `{"spec":{"nodeLabels":{"tier":"lead"}}}`)
	again(r, "node_labels")
	edit(t, k, flavorNamed("v5e"), `{"spec":{"nodeLabels":{"tier":"gold","cloud.google.com/gke-provisioning":null}}}`)
	again(r, "provisioning")
	edit(t, k, flavorNamed("v5e"), `{"spec":{"nodeLabels":{"cloud.google.com/gke-provisioning":"standard","cloud.google.com/gke-accelerator-count":null}}}`)
	again(r, "accelerator")
	edit(t, k, flavorNamed("v5e"), `{"spec":{"nodeLabels":{"cloud.google.com/gke-accelerator-count":"4","cloud.google.com/gke-tpu-topology":"4x8"}}}`)
	edit(t, k, flavorNamed("v5e"), `{"spec":{"tolerations":[{"key":"mine","operator":"Exists"}]}}`)
	drifted, _ := p.Refresh(r)
	if added := drifted.State["added_tolerations"]; len(added.([]any)) != 0 {
		t.Errorf("tolerations that somebody took away are read as %v", added)
	}
	if drifted.State["accelerator"] != "v5litepod-32" {
		t.Errorf("another topology is read as %v", drifted.State["accelerator"])
	}

	config["node_labels"] = nil
	if r, text = p.Apply(typ, drifted, config); text != "" || r.State["tolerations"] != nil {
		t.Fatal(text)
	}
	live := flavorNamed("v5e")
	if found, err := k.Fetch(t.Context(), live); err != nil || !found {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(map[string]string{queue.LabelManagedBy: queue.ManagedBy, training.LabelOwner: "team"}, live.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if live.Spec.NodeLabels[accelerator.LabelTopology] != "4x4" || live.Spec.NodeLabels["tier"] != "" {
		t.Errorf("node labels %v", live.Spec.NodeLabels)
	}
	again(r)
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("destroy: %v, %s", left, text)
	}
	if gone, text := p.Refresh(r); gone != nil || text != "" {
		t.Errorf("after the destroy: %v, %s", gone, text)
	}
}

// What is there already is taken over, or refused, by whose it is; the text
// claims no more than the labels say.
func TestWhatIsThereAlready(t *testing.T) {
	g, k, cluster := world(t)
	config := map[string]any{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16"}
	for _, tt := range []struct {
		name   string
		labels map[string]string
		owner  string
		want   string
	}{
		{"same owner", map[string]string{queue.LabelManagedBy: queue.ManagedBy, training.LabelOwner: "a"}, "a", `made by a configuration with owner "a"`},
		{"no owner at all", map[string]string{queue.LabelManagedBy: queue.ManagedBy}, "", "or by another configuration"},
		{"another owner", map[string]string{queue.LabelManagedBy: queue.ManagedBy, training.LabelOwner: "b"}, "a", "did not make"},
		{"nobody's", nil, "", "terraform import tpu_kueue_flavor.NAME " + cluster + "/resourceFlavors/v5e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			had := flavorNamed("v5e")
			had.Labels = tt.labels
			if err := k.Apply(t.Context(), had, kube.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			r, text := g.Protocol(t, tt.owner).Apply(typ, nil, config)
			if !strings.Contains(text, tt.want) {
				t.Errorf("said %q, want %q", text, tt.want)
			}
			if refused := strings.Contains(text, "ERROR"); refused != (r == nil) {
				t.Errorf("%v with %s", r, text)
			}
			if err := k.Remove(t.Context(), flavorNamed("v5e"), false); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A flavor that a queue names is left to Kueue, and the warning names the
// queue.
func TestDestroyOfAFlavorInUse(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	r, text := p.Apply(typ, nil, map[string]any{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16"})
	if text != "" {
		t.Fatal(text)
	}
	edit(t, k, flavorNamed("v5e"), `{"metadata":{"finalizers":["kueue.x-k8s.io/resource-in-use"]}}`)
	v5e, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	cq := queue.Queue{Name: "research", Quotas: []queue.Quota{{Flavor: "v5e", Slice: v5e, Slices: 1}}}.ClusterQueue()
	if err := k.Apply(t.Context(), cq, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	left, text := p.Destroy(r)
	if left != nil || !strings.Contains(text, "Named by: research") {
		t.Errorf("destroy: %v, %s", left, text)
	}
	if gone, _ := p.Refresh(r); gone != nil {
		t.Errorf("a flavor that is being deleted is read as %v", gone.State)
	}
}

// A cluster that is gone takes its flavors along; one without Kueue says what
// is missing; one that cannot be asked is an error.
func TestTroubleWithTheCluster(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	config := map[string]any{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16"}
	r, text := p.Apply(typ, nil, config)
	if text != "" {
		t.Fatal(text)
	}
	g.Cluster.Deny(true)
	if kept, text := p.Refresh(r); kept == nil || !strings.Contains(text, "Cannot read flavor v5e") {
		t.Errorf("refused: %v, %s", kept, text)
	}
	if kept, text := p.Destroy(r); kept == nil || !strings.Contains(text, "Cannot delete flavor v5e") {
		t.Errorf("refused: %v, %s", kept, text)
	}
	g.Cluster.Deny(false)
	if none, text := p.Apply(typ, nil, with(config, map[string]any{"cluster": cluster + "2"})); none != nil || !strings.Contains(text, "does not exist") {
		t.Errorf("no such cluster: %v, %s", none, text)
	}
	bare := acctest.NewGKE(t)
	if none, text := bare.Protocol(t, "").Apply(typ, nil, with(config, map[string]any{"cluster": bare.MakeCluster(t, "main")})); none != nil || !strings.Contains(text, "Add a tpu_job_controllers") {
		t.Errorf("without Kueue: %v, %s", none, text)
	}
	g.RemoveCluster(t, "main")
	p = g.Protocol(t, "") // a run of its own
	if gone, text := p.Refresh(r); gone != nil || text != "" {
		t.Errorf("cluster gone: %v, %s", gone, text)
	}
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("cluster gone: %v, %s", left, text)
	}
}

// What depends on values that only the apply knows is not checked before.
func TestUnknownValues(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	for _, name := range []string{"cluster", "name", "accelerator", "provisioning", "reservation", "node_labels", "node_taints", "tolerations", "topology_aware"} {
		config := with(rich(cluster), map[string]any{name: acctest.Unknown})
		if text := p.Validate(typ, config); text != "" {
			t.Errorf("%s unknown: %s", name, text)
		}
		if plan := p.Plan(typ, nil, config); plan.Text != "" {
			t.Errorf("%s unknown: %s", name, plan.Text)
		}
	}
}

// rich is a flavor with all that it can have.
func rich(cluster string) map[string]any {
	return map[string]any{
		"cluster": cluster, "name": "v6e", "accelerator": "v6e-256", "provisioning": "reservation", "reservation": "r1",
		"node_taints":    []any{map[string]any{"key": "gold", "value": "yes", "effect": "NoSchedule"}},
		"tolerations":    []any{map[string]any{"key": "gold", "operator": "Exists", "effect": "NoExecute", "seconds": 30}},
		"topology_aware": map[string]any{},
	}
}

// A flavor with taints, tolerations and a Topology is read, and imported, as it
// was written; its Topology goes with it.
func TestTopology(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	config := rich(cluster)
	r, text := p.Apply(typ, nil, config)
	if text != "" {
		t.Fatal(text)
	}
	topology := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: "v6e"}}
	if found, err := k.Fetch(t.Context(), topology); err != nil || !found || len(topology.Spec.Levels) < 3 || topology.Spec.Levels[0].NodeLabel != "cloud.google.com/gke-tpu-slice-16x16-id" {
		t.Fatalf("Topology: %v, %v, %v", found, err, topology.Spec)
	}
	r, _ = p.Refresh(r)
	if plan := p.Plan(typ, r, config); len(plan.Changed) > 0 || plan.Text != "" {
		t.Errorf("second plan: %v %s", plan.Changed, plan.Text)
	}
	imported, text := p.Import(typ, cluster+"/resourceFlavors/v6e")
	if text != "" {
		t.Fatal(text)
	}
	if diff := cmp.Diff(with(r.State, map[string]any{"topology_aware": map[string]any{"levels": nil, "name": nil}}), imported.State); diff != "" {
		t.Errorf("imported (-created +imported):\n%s", diff)
	}
	for name, tt := range map[string]struct {
		change  map[string]any
		replace string
		warns   bool
	}{
		"label":      {map[string]any{"node_labels": map[string]any{"a": "b"}}, "node_labels", true},
		"toleration": {map[string]any{"tolerations": nil}, "tolerations", true},
		"levels":     {map[string]any{"topology_aware": map[string]any{"levels": []any{"kubernetes.io/hostname"}}}, "topology_aware", true},
		"none":       {map[string]any{"topology_aware": nil}, "topology_aware", true},
		"taint":      {map[string]any{"node_taints": nil}, "", false},
		"new name":   {map[string]any{"name": "v6e-2", "tolerations": nil}, "tolerations", false},
	} {
		plan := p.Plan(typ, r, with(config, tt.change))
		if all := strings.Join(plan.Replace, " "); strings.Contains(all, tt.replace) != true || (tt.replace == "" && all != "") {
			t.Errorf("%s: replaced because of %q, want %q", name, all, tt.replace)
		}
		if strings.Contains(plan.Text, "made anew") != tt.warns {
			t.Errorf("%s: said %q", name, plan.Text)
		}
	}
	// Somebody deletes the Topology, which the flavor keeps.
	edit(t, k, topology, `{"metadata":{"finalizers":["kueue.x-k8s.io/resource-in-use"]}}`)
	if err := k.Remove(t.Context(), topology, false); err != nil {
		t.Fatal(err)
	}
	r, _ = p.Refresh(r)
	if kept, text := p.Apply(typ, r, config); kept == nil || !strings.Contains(text, "somebody deleted Topology v6e") || !strings.Contains(text, "-replace") {
		t.Errorf("a Topology that is being deleted: %v %s", kept, text)
	}
	edit(t, k, topology, `{"metadata":{"finalizers":null}}`)
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("destroy: %v %s", left, text)
	}
	if found, err := k.Fetch(t.Context(), topology); err != nil || found {
		t.Errorf("the Topology is still there: %v, %v", found, err)
	}
}

// A Topology that is there already is named and left alone.
func TestTopologyOfOthers(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	shared := queue.Flavor{Name: "shared", Topology: &queue.Topology{Levels: []string{"block"}}}.TopologyObject()
	if err := k.Apply(t.Context(), shared, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	config := with(rich(cluster), map[string]any{"topology_aware": map[string]any{"name": "shared"}})
	r, text := p.Apply(typ, nil, config)
	if text != "" {
		t.Fatal(text)
	}
	if r, _ = p.Refresh(r); len(p.Plan(typ, r, config).Changed) > 0 {
		t.Errorf("second plan: %v", p.Plan(typ, r, config).Changed)
	}
	if _, text := p.Destroy(r); text != "" {
		t.Error(text)
	}
	if found, err := k.Fetch(t.Context(), shared); err != nil || !found {
		t.Errorf("the shared Topology is gone: %v", err)
	}
}

// A flavor without an accelerator is of hosts: it says nothing of TPU nodes, is
// imported as it is, and may become one of slices, and back, in place.
func TestHosts(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	config := map[string]any{"cluster": cluster, "name": "hosts", "node_labels": map[string]any{"pool": "cpu"}}
	r, text := p.Apply(typ, nil, config)
	if text != "" {
		t.Fatal(text)
	}
	live := flavorNamed("hosts")
	if found, err := k.Fetch(t.Context(), live); err != nil || !found {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": "cpu"}}, live.Spec); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	changes := func(want ...string) {
		t.Helper()
		fresh, text := p.Refresh(r)
		if fresh == nil || text != "" {
			t.Fatalf("refresh: %v, %s", fresh, text)
		}
		if diff := cmp.Diff(want, p.Plan(typ, fresh, config).Changed); diff != "" {
			t.Errorf("planned changes (-want +got):\n%s", diff)
		}
		r = fresh
	}
	changes()
	imported, text := p.Import(typ, cluster+"/resourceFlavors/hosts")
	if text != "" {
		t.Fatal(text)
	}
	if diff := cmp.Diff(r.State, imported.State); diff != "" {
		t.Errorf("imported (-created +imported):\n%s", diff)
	}
	edit(t, k, flavorNamed("hosts"), `{"spec":{"nodeLabels":{"pool":"other"}}}`)
	changes("node_labels")
	edit(t, k, flavorNamed("hosts"), `{"spec":{"nodeLabels":{"pool":"cpu"},"tolerations":[{"key":"mine","operator":"Exists"}]}}`)
	changes("tolerations")
	for _, accelerator := range []any{"v5litepod-16", nil} {
		config["accelerator"] = accelerator
		if plan := p.Plan(typ, r, config); len(plan.Replace) > 0 || plan.Text != "" {
			t.Errorf("accelerator %v: replaced because of %v, %s", accelerator, plan.Replace, plan.Text)
		}
		if r, text = p.Apply(typ, r, config); text != "" || (r.State["topology"] == nil) != (accelerator == nil) {
			t.Errorf("accelerator %v: %v, %s", accelerator, r, text)
		}
		changes()
	}
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("destroy: %v, %s", left, text)
	}
}
