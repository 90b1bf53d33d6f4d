package queuestatus_test

import (
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/queuestatus"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const path = "projects/p/locations/l/clusters/main"

// reach is the one cluster there is.
type reach struct{ access kube.Access }

func (r reach) Access(_ context.Context, n gke.ClusterName) (kube.Access, error) {
	if n.String() != path {
		return kube.Access{}, &gke.Error{Verb: "reading cluster", Object: n.String(), Cause: gke.NotFound}
	}
	return r.access, nil
}

// read reads the data source for a queue.
func read(t *testing.T, data *conn.Data, id string) (state tfsdk.State, said string) {
	t.Helper()
	ds := queuestatus.New()
	var schema datasource.SchemaResponse
	ds.Schema(t.Context(), datasource.SchemaRequest{}, &schema)
	typ := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, attr := range typ.AttributeTypes {
		values[name] = tftypes.NewValue(attr, nil)
	}
	values["queue"] = tftypes.NewValue(tftypes.String, id)
	var configured datasource.ConfigureResponse
	ds.(datasource.DataSourceWithConfigure).Configure(t.Context(), datasource.ConfigureRequest{ProviderData: data}, &configured)
	resp := datasource.ReadResponse{State: tfsdk.State{Schema: schema.Schema}}
	ds.Read(t.Context(), datasource.ReadRequest{Config: tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(typ, values)}}, &resp)
	var b strings.Builder
	for _, d := range append(configured.Diagnostics, resp.Diagnostics...) {
		b.WriteString(d.Summary() + ": " + d.Detail())
	}
	return resp.State, b.String()
}

// word is a number or text.
func word(v tftypes.Value) string {
	var s string
	if v.As(&s) == nil {
		return s
	}
	var n big.Float
	if v.As(&n) == nil {
		return n.Text('f', 0)
	}
	return v.String()
}

// list is a list of objects, each as words by name.
func list(t *testing.T, v tftypes.Value) (all []map[string]string) {
	t.Helper()
	var items []tftypes.Value
	if err := v.As(&items); err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		attrs, words := map[string]tftypes.Value{}, map[string]string{}
		if err := item.As(&attrs); err != nil {
			t.Fatal(err)
		}
		for name, a := range attrs {
			words[name] = word(a)
		}
		all = append(all, words)
	}
	return all
}

func world(t *testing.T) (*conn.Data, *kube.Client) {
	t.Helper()
	g := acctest.NewGKE(t)
	in := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &kueue.ClusterQueue{}, &kueue.ResourceFlavor{}, &kueue.LocalQueue{ObjectMeta: in}, &kueue.Workload{ObjectMeta: in})
	at, err := g.Cluster.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return &conn.Data{Clusters: reach{kube.Access{Name: "main", Server: "https://" + at.Host, CA: at.CA}}}, g.Cluster.Client(t)
}

func TestStatus(t *testing.T) {
	data, k := world(t)
	s, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	q := queue.Queue{Name: "research", Cohort: "all", Namespaces: []string{"research"}, Quotas: []queue.Quota{{Flavor: "v5e", Slice: s, Slices: 2}},
		Hosts: []queue.HostFlavor{{Flavor: "cpu", CPU: &queue.HostQuota{Quota: resource.MustParse("100")}}}}
	cq := q.ClusterQueue()
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "jobset-train",
		OwnerReferences: []metav1.OwnerReference{{Kind: "JobSet", Name: "train", Controller: ptr.To(true)}}}}
	wl.Spec.QueueName = "research"
	wl.Spec.PodSets = []kueue.PodSet{{Name: "slice", Count: 4}}
	wl.Spec.PodSets[0].Template.Spec.NodeSelector = s.NodeLabels()
	wl.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Name: "train",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{accelerator.ResourceName: resource.MustParse("4")}}}}
	for _, o := range []client.Object{cq, q.LocalQueue("research"), queue.Flavor{Name: "v5e", Slice: s}.Object(), wl} {
		if err := k.Apply(t.Context(), o, kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := `{"status":{"conditions":[{"type":"Active","status":"False","reason":"Stopped","message":"is stopped","lastTransitionTime":"2026-01-01T00:00:00Z"}],
		"flavorsReservation":[{"name":"v5e","resources":[{"name":"google.com/tpu","total":"40","borrowed":"8"}]}]}}`
	if err := k.Patch(t.Context(), &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	state, said := read(t, data, path+"/clusterQueues/research")
	if said != "" {
		t.Fatal(said)
	}
	attrs := map[string]tftypes.Value{}
	if err := state.Raw.As(&attrs); err != nil {
		t.Fatal(err)
	}
	if word(attrs["status"]) != "Stopped" || !strings.Contains(word(attrs["message"]), "set stop_policy to None") || word(attrs["cohort"]) != "all" ||
		word(attrs["pending_count"]) != "1" || word(attrs["pending_order"]) != "Estimate" {
		t.Errorf("got %v", attrs)
	}
	want := []map[string]string{{"name": "v5e", "accelerator": "v5litepod-16", "slices": "2", "used_slices": "3", "borrowed_slices": "1",
		"chips": "32", "used_chips": "40", "borrowed_chips": "8"}}
	if diff := cmp.Diff(want, list(t, attrs["flavors"])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]map[string]string{{"flavor": "cpu", "name": "cpu", "quota": "100", "used": "0", "borrowed": "0"}}, list(t, attrs["resources"])); diff != "" {
		t.Error(diff)
	}
	pending := list(t, attrs["pending"])
	if len(pending) != 1 || pending[0]["name"] != "train" || pending[0]["position"] != "1" || pending[0]["slices"] != "1" || pending[0]["chips"] != "16" {
		t.Errorf("pending: %v", pending)
	}
	if all := list(t, attrs["admitted"]); len(all) != 0 {
		t.Errorf("admitted: %v", all)
	}
}

func TestNoSuchQueue(t *testing.T) {
	data, _ := world(t)
	for id, want := range map[string]string{
		path + "/clusterQueues/research":                                    "There is no such queue: cluster main has no queue research",
		"projects/p/locations/l/clusters/gone/clusterQueues/research":       "There is no such queue",
		"projects/p/locations/l/clusters/gone/resourceFlavors/no-queue-yet": "Invalid queue",
	} {
		if _, said := read(t, data, id); !strings.Contains(said, want) {
			t.Errorf("%s: got %q, want %q", id, said, want)
		}
	}
}
