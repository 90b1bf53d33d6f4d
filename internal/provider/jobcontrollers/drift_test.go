package jobcontrollers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/jobcontrollers"
)

// installed gives the cluster what a refresh looks at of an install with c.
func installed(t *testing.T, g *acctest.GKE, c controllers.Config) *kube.Client {
	t.Helper()
	somewhere := metav1.ObjectMeta{Namespace: "somewhere"}
	g.Cluster.Keep(t, &corev1.Namespace{}, &appsv1.Deployment{ObjectMeta: somewhere}, &corev1.ConfigMap{ObjectMeta: somewhere},
		&corev1.Service{ObjectMeta: somewhere}, &kueueapi.WorkloadPriorityClass{}, &apiextensionsv1.CustomResourceDefinition{}, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{})
	k := g.Cluster.Client(t)
	objs, err := controllers.Objects(c)
	if err != nil {
		t.Fatal(err)
	}
	record, err := json.Marshal(c.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	hash, err := c.Hash()
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range append(objs, controllers.Priorities()...) {
		switch obj.GetKind() {
		case "Namespace":
			obj.SetAnnotations(map[string]string{"terraform-provider-tpu/job-controllers": string(record), "terraform-provider-tpu/job-controllers-hash": hash})
		case "CustomResourceDefinition", "Deployment", "ConfigMap", "Service", "WorkloadPriorityClass", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		default:
			continue
		}
		if err := k.Apply(t.Context(), obj, kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// byHand patches an object, or deletes it where there is no patch.
func byHand(ctx context.Context, k *kube.Client, obj client.Object, patch string) error {
	if patch == "" {
		return k.Remove(ctx, obj, false)
	}
	return k.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// What somebody changes is named in to_repair and planned to be repaired, with
// versions known as long as they stay; a cluster that refuses to say is an
// error, and one that is gone takes the controllers along.
func TestDrift(t *testing.T) {
	const typ = "tpu_job_controllers"
	g := acctest.NewGKE(t)
	cluster := g.MakeCluster(t, "main")
	k := installed(t, g, controllers.Config{MaxHosts: 64})
	p := g.Protocol(t, "")
	config := map[string]any{"cluster": cluster, "max_hosts": 64}
	listed, ok := jobcontrollers.NewResource().(interface {
		Find(context.Context, *kube.Client) ([]string, error)
		ID(cluster, name string) string
	})
	if !ok {
		t.Fatal("job controllers cannot be listed")
	}
	names, err := listed.Find(t.Context(), k)
	if err != nil || len(names) != 1 {
		t.Fatalf("listed %v, %v", names, err)
	}
	if none, err := listed.Find(t.Context(), acctest.NewGKE(t).Cluster.Client(t)); err != nil || len(none) > 0 {
		t.Errorf("listed %v, %v of a cluster without controllers", none, err)
	}
	r, text := p.Import(typ, listed.ID(cluster, names[0]))
	if r == nil || text != "" {
		t.Fatalf("import: %v %s", r, text)
	}
	if plan := p.Plan(typ, r, config); len(plan.Changed) > 0 || plan.Text != "" {
		t.Fatalf("planned %v %s after an import", plan.Changed, plan.Text)
	}
	inSystem := metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager"}
	const container = `{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"registry.k8s.io/kueue/kueue:%s"}]}}}}`
	var removed []string // for good
	for _, tt := range []struct {
		obj         client.Object
		patch, back string
		repair      string
		changed     []string
	}{
		{&appsv1.Deployment{ObjectMeta: inSystem}, `{"spec":{"replicas":0}}`, `{"spec":{"replicas":1}}`,
			"Deployment kueue-system/kueue-controller-manager has 0 replicas, want 1", []string{"status", "to_repair"}},
		{&appsv1.Deployment{ObjectMeta: inSystem}, strings.Replace(container, "%s", "v0.18.0", 1), strings.Replace(container, "%s", controllers.KueueVersion, 1),
			"runs image registry.k8s.io/kueue/kueue:v0.18.0, want", []string{"kueue_version", "status", "to_repair"}},
		{&kueueapi.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}, `{"value":5}`, `{"value":750}`,
			"WorkloadPriorityClass high has value 5, want 750", []string{"status", "to_repair"}},
		{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-webhook-service"}}, "", "",
			"Service kueue-system/kueue-webhook-service does not exist", []string{"status", "to_repair"}},
		{&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "admissionchecks.kueue.x-k8s.io"}}, "", "",
			"CustomResourceDefinition admissionchecks.kueue.x-k8s.io does not exist", []string{"status", "to_repair"}},
		{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "jobset-system"}}, `{"metadata":{"annotations":{"terraform-provider-tpu/job-controllers-hash":null}}}`, "",
			"the last install of JobSet did not finish", []string{"status", "to_repair"}},
	} {
		if err := byHand(t.Context(), k, tt.obj, tt.patch); err != nil {
			t.Fatal(err)
		}
		now, text := p.Refresh(r)
		if now == nil || text != "" {
			t.Fatalf("refresh: %v %s", now, text)
		}
		repair, _ := now.State["to_repair"].([]any)
		if len(repair) != 1+len(removed) || !strings.Contains(fmt.Sprint(repair), tt.repair) {
			t.Errorf("to repair: %v, want %q", repair, tt.repair)
		}
		changed := p.Plan(typ, now, config).Changed
		if slices.Sort(changed); !slices.Equal(changed, tt.changed) {
			t.Errorf("%s: planned (-want +got):\n%s", tt.repair, cmp.Diff(tt.changed, changed))
		}
		if tt.patch == "" {
			removed = append(removed, tt.repair)
		}
		if tt.back != "" {
			if err := k.Patch(t.Context(), tt.obj, client.RawPatch("application/merge-patch+json", []byte(tt.back))); err != nil {
				t.Fatal(err)
			}
		}
	}

	g.Cluster.Deny(true)
	if now, text := p.Refresh(r); now == nil || !strings.Contains(text, "Cannot read the job controllers") {
		t.Errorf("a cluster that refuses: %v %s", now, text)
	}
	g.Cluster.Deny(false)
	g.RemoveCluster(t, "main")
	p = g.Protocol(t, "") // another run
	if now, text := p.Refresh(r); now != nil || text != "" {
		t.Errorf("a cluster that is gone: %v %s", now, text)
	}
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("destroying what went with its cluster: %v %s", left, text)
	}
}
