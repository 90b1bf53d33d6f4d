package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Installing on a real cluster: both controllers answer, a second install
// writes nothing, removal is refused while a job exists and leaves nothing.
func TestInstallOnARealCluster(t *testing.T) {
	cl := realCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	progress := timed(t)

	status, err := controllers.Observe(ctx, cl, controllers.Config{})
	if err != nil || status.State != controllers.Absent {
		t.Fatalf("an empty cluster is %q (%v), want ABSENT", status.State, err)
	}
	began := time.Now()
	status, err = controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{Progress: progress})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %.1fs", time.Since(began).Seconds())
	want := controllers.Status{
		State:  controllers.Ready,
		JobSet: controllers.Release{Version: controllers.JobSetVersion, Replicas: 1, Ready: 1},
		Kueue:  controllers.Release{Version: controllers.KueueVersion, Replicas: 1, Ready: 1},
	}
	config := status.Config
	status.Config = nil
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status after the install (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(new(controllers.Config{}.WithDefaults()), config); diff != "" {
		t.Errorf("recorded configuration (-want +got):\n%s", diff)
	}

	t.Run("a second install changes no object", func(t *testing.T) {
		before := versions(t, cl)
		if _, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, versions(t, cl)); diff != "" {
			t.Errorf("generations and CA bundles (-before +after):\n%s", diff)
		}
	})

	t.Run("another configuration rolls the pods out", func(t *testing.T) {
		c := controllers.Config{Kueue: controllers.KueueConfig{FairSharing: true, Replicas: 2}}
		if status, err := controllers.Observe(ctx, cl, c); err != nil || status.State != controllers.Incomplete {
			t.Fatalf("before the change the cluster is %q (%v), want INCOMPLETE", status.State, err)
		}
		status, err := controllers.Install(ctx, cl, c, controllers.Options{Progress: progress})
		if err != nil {
			t.Fatal(err)
		}
		if status.State != controllers.Ready || status.Kueue.Ready != 2 {
			t.Errorf("after the change: %+v", status)
		}
	})

	t.Run("a deleted webhook is noticed and repaired", func(t *testing.T) {
		c := controllers.Config{}
		if _, err := controllers.Install(ctx, cl, c, controllers.Options{}); err != nil {
			t.Fatal(err)
		}
		hook := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}}
		hook.Name = "kueue-validating-webhook-configuration"
		if err := cl.Remove(ctx, hook, true); err != nil {
			t.Fatal(err)
		}
		status, err := controllers.Observe(ctx, cl, c)
		if err != nil || status.State != controllers.Incomplete {
			t.Fatalf("without a webhook the cluster is %q (%v), want INCOMPLETE", status.State, err)
		}
		if status, err = controllers.Install(ctx, cl, c, controllers.Options{}); err != nil || status.State != controllers.Ready {
			t.Fatalf("after the repair the cluster is %q (%v), want READY", status.State, err)
		}
	})

	t.Run("deleted definitions, services and priorities are noticed and made anew", func(t *testing.T) {
		crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
		crd.Name = "admissionchecks.kueue.x-k8s.io"
		service := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}}
		service.Namespace, service.Name = "kueue-system", "kueue-controller-manager-metrics-service"
		priority := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "kueue.x-k8s.io/v1beta2", Kind: "WorkloadPriorityClass"}}
		priority.Name = "high"
		// Kueue keeps the check for a moment, and so its definition.
		check := &kueueapi.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: kueueapi.AdmissionCheckSpec{ControllerName: "example.com/own"}}
		if err := cl.Apply(ctx, check.DeepCopy(), kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, obj := range []client.Object{crd, service, priority} {
			if err := cl.Remove(ctx, obj, false); err != nil {
				t.Fatal(err)
			}
		}
		status, err := controllers.Observe(ctx, cl, controllers.Config{})
		if said := strings.Join(status.Missing, "\n"); err != nil || status.State != controllers.Incomplete ||
			!strings.Contains(said, crd.Name) || !strings.Contains(said, service.Name) || !strings.Contains(said, "WorkloadPriorityClass high") {
			t.Fatalf("the cluster is %q (%v), missing %s", status.State, err, said)
		}
		if status, err = controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{Progress: progress}); err != nil || status.State != controllers.Ready {
			t.Fatalf("after the repair the cluster is %q (%v), missing %v", status.State, err, status.Missing)
		}
		if err := cl.Apply(ctx, check, kube.ApplyOptions{}); err != nil {
			t.Errorf("with the definition made anew: %v", err)
		}
		if err := cl.Remove(ctx, check, true); err != nil {
			t.Error(err)
		}
	})

	t.Run("another tool's field is a conflict that names it", func(t *testing.T) {
		scale(t, cl, "kueue", 3, "kubectl")
		_, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{})
		if err == nil || !strings.Contains(err.Error(), `"kubectl"`) || !strings.Contains(err.Error(), ".spec.replicas") {
			t.Fatalf("got %v, want a conflict on .spec.replicas with kubectl", err)
		}
		if _, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{Adopt: true}); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("removal is refused while a job exists", func(t *testing.T) {
		js := jobSet("kept")
		if err := cl.Create(ctx, js); err != nil {
			t.Fatal(err)
		}
		err := controllers.Uninstall(ctx, cl, controllers.Config{}, controllers.UninstallOptions{})
		var busy *controllers.BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("got %v, want a BusyError", err)
		}
		if diff := cmp.Diff([]string{"JobSet default/kept"}, busy.Objects); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("removal by force takes everything, queues with finalizers too", func(t *testing.T) {
		for _, obj := range queueObjects() {
			if err := cl.Create(ctx, obj); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := controllers.Uninstall(ctx, cl, controllers.Config{}, controllers.UninstallOptions{Force: true, Progress: progress}); err != nil {
			t.Fatal(err)
		}
		t.Logf("removed in %.1fs", time.Since(began).Seconds())
		status, err := controllers.Observe(ctx, cl, controllers.Config{})
		if err != nil || status.State != controllers.Absent {
			t.Errorf("after the removal the cluster is %q (%v), want ABSENT", status.State, err)
		}
		var crds unstructured.UnstructuredList
		crds.SetAPIVersion("apiextensions.k8s.io/v1")
		crds.SetKind("CustomResourceDefinitionList")
		if err := cl.List(ctx, &crds); err != nil || len(crds.Items) != 0 {
			t.Errorf("%d definitions are left (%v)", len(crds.Items), err)
		}
		if err := controllers.Uninstall(ctx, cl, controllers.Config{}, controllers.UninstallOptions{}); err != nil {
			t.Errorf("removing once more: %v", err)
		}
	})

	t.Run("what kubectl and Helm installed is adopted, its webhooks for pods go, its queues stay", func(t *testing.T) {
		byOthers(ctx, t, cl, "jobset-"+controllers.JobSetVersion, clientSide)
		byOthers(ctx, t, cl, "kueue-"+controllers.KueueVersion, helm)
		for _, obj := range queueObjects() {
			answers(ctx, t, cl, obj)
		}
		if got := podHooks(ctx, t, cl); len(got) == 0 {
			t.Fatal("the official manifests have no webhook for pods: there is nothing to see go")
		}
		for _, tt := range []struct {
			c    controllers.Config
			want []string
		}{
			{controllers.Config{}, []string{"JobSet v0.12.0", "jobset-system/jobset-controller-manager was written by kubectl-client-side-apply", "disable JobSet here"}},
			{controllers.Config{JobSet: controllers.JobSetConfig{Disabled: true}}, []string{"written by helm (Helm release kueue)", "sh.helm.release.v1.kueue.*"}},
		} {
			_, err := controllers.Install(ctx, cl, tt.c, controllers.Options{})
			if foreign := (*controllers.ForeignError)(nil); !errors.As(err, &foreign) || slices.ContainsFunc(tt.want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
				t.Fatalf("got %v, want a ForeignError that says %q", err, tt.want)
			}
		}
		if got := podHooks(ctx, t, cl); len(got) == 0 {
			t.Error("the refused install has written something")
		}
		status, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{Adopt: true, Progress: progress})
		if err != nil || status.State != controllers.Ready {
			t.Fatalf("adopting: %+v, %v", status, err)
		}
		if got := podHooks(ctx, t, cl); len(got) > 0 {
			t.Errorf("webhooks for pods are left: %v", got)
		}
		for _, obj := range queueObjects() {
			if found, err := cl.Fetch(ctx, obj); err != nil || !found || obj.GetDeletionTimestamp() != nil {
				t.Errorf("%T from before: found %t, %v", obj, found, err)
			}
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager"}}
		if _, err := cl.Fetch(ctx, d); err != nil || d.Labels["app.kubernetes.io/managed-by"] == "Helm" || d.Annotations["meta.helm.sh/release-name"] != "" {
			t.Errorf("Helm's marks are left: %v %v, %v", d.Labels, d.Annotations, err)
		}
		// Once adopted it is like any other: no second adoption is needed.
		if _, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{}); err != nil {
			t.Error(err)
		}
	})

	t.Run("while both are down nobody else waits for them", func(t *testing.T) {
		scale(t, cl, "kueue", 0, "kubectl")
		scale(t, cl, "jobset", 0, "kubectl")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
		if err := cl.Create(ctx, pod); err != nil {
			t.Errorf("a pod of somebody else: %v", err)
		}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		deployment.Spec.Template.Labels = map[string]string{"app": "web"}
		deployment.Spec.Template.Spec = *pod.Spec.DeepCopy()
		deployment.Spec.Template.Spec.NodeName = ""
		if err := cl.Create(ctx, deployment); err != nil {
			t.Errorf("a Deployment of somebody else: %v", err)
		}
		// What webhooks check says which controller is down; the rest is written.
		down := map[string]string{}
		for _, obj := range append(queueObjects(), jobSet("mine"), &kueueapi.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
			&kueueapi.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
			&kueueapi.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: kueueapi.AdmissionCheckSpec{ControllerName: "example.com/mine"}},
			&kueueapi.ProvisioningRequestConfig{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: kueueapi.ProvisioningRequestConfigSpec{ProvisioningClassName: "mine"}}) {
			err := cl.Apply(ctx, obj, kube.ApplyOptions{})
			switch {
			case err == nil:
				if err := cl.Remove(ctx, obj, false); err != nil {
					t.Error(err)
				}
			case !kube.WebhookNotServing(err):
				t.Errorf("%T: %v, want an error that says what is down", obj, err)
			case strings.Contains(err.Error(), "Service kueue-webhook-service in namespace kueue-system is down"):
				down[fmt.Sprintf("%T", obj)] = "kueue"
			case strings.Contains(err.Error(), "Service jobset-webhook-service in namespace jobset-system is down"):
				down[fmt.Sprintf("%T", obj)] = "jobset"
			default:
				t.Errorf("%T: %v does not say what is down", obj, err)
			}
		}
		if diff := cmp.Diff(map[string]string{"*v1beta2.ResourceFlavor": "kueue", "*v1beta2.ClusterQueue": "kueue", "*v1beta2.Cohort": "kueue", "*unstructured.Unstructured": "jobset"}, down); diff != "" {
			t.Errorf("objects that wait for a controller (-want +got):\n%s", diff)
		}
		status, err := controllers.Observe(ctx, cl, controllers.Config{})
		if err != nil || status.State != controllers.Incomplete || !slices.ContainsFunc(status.Missing, func(m string) bool { return strings.Contains(m, "has 0 replicas, want 1") }) {
			t.Errorf("observed: %+v, %v", status, err)
		}
		for _, obj := range []client.Object{pod, deployment} {
			if err := cl.Remove(ctx, obj, true); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("removal works while both are down", func(t *testing.T) {
		if err := controllers.Uninstall(ctx, cl, controllers.Config{}, controllers.UninstallOptions{Progress: progress}); err != nil {
			t.Fatal(err)
		}
		if status, err := controllers.Observe(ctx, cl, controllers.Config{}); err != nil || status.State != controllers.Absent {
			t.Errorf("after the removal the cluster is %q (%v), want ABSENT", status.State, err)
		}
	})
}

// podHooks lists the webhooks that see pods of every namespace.
func podHooks(ctx context.Context, t *testing.T, cl *kube.Client) (names []string) {
	t.Helper()
	hook := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kueue-mutating-webhook-configuration"}}
	if found, err := cl.Fetch(ctx, hook); err != nil || !found {
		t.Fatalf("webhooks found: %t, %v", found, err)
	}
	for _, h := range hook.Webhooks {
		for _, r := range h.Rules {
			if slices.Contains(r.Resources, "pods") || slices.Contains(r.Resources, "deployments") {
				names = append(names, h.Name)
			}
		}
	}
	return names
}

func timed(t *testing.T) func(string, ...any) {
	began := time.Now()
	return func(format string, args ...any) {
		t.Logf("%6.2fs %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// versions reads what an unnecessary write would change: the generation, and
// the CA bundles that the controllers put in.
func versions(t *testing.T, cl *kube.Client) map[string]string {
	t.Helper()
	objs, err := controllers.Objects(controllers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, obj := range objs {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		live.SetNamespace(obj.GetNamespace())
		live.SetName(obj.GetName())
		if found, err := cl.Fetch(t.Context(), live); err != nil || !found {
			t.Fatalf("%s %s: found %t, %v", obj.GetKind(), obj.GetName(), found, err)
		}
		version := fmt.Sprint(live.GetGeneration())
		if obj.GetKind() != "Namespace" && obj.GetKind() != "Deployment" && obj.GetKind() != "CustomResourceDefinition" && obj.GetKind() != "APIService" {
			version += " " + live.GetResourceVersion()
		}
		got[obj.GetKind()+" "+obj.GetName()] = version
	}
	return got
}

// scale sets the number of a controller's pods as another tool would, and waits
// for the end of those that are too many.
func scale(t *testing.T, cl *kube.Client, controller string, replicas int64, tool string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": controller + "-controller-manager", "namespace": controller + "-system"},
		"spec":     map[string]any{"replicas": replicas},
	}}
	err := cl.WithWatch.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(tool), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
	// A Deployment does not count pods that are ending, which still serve.
	eventually(t.Context(), t, controller+" has no pods too many", func() error {
		var pods corev1.PodList
		if err := cl.List(t.Context(), &pods, client.InNamespace(u.GetNamespace())); err != nil || len(pods.Items) > int(replicas) {
			return errors.Join(fmt.Errorf("%d pods", len(pods.Items)), err)
		}
		return nil
	})
}

func jobSet(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{"suspend": true, "replicatedJobs": []any{map[string]any{
			"name": "main", "replicas": int64(1),
			"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "main"}},
			}}}},
		}}},
	}}
}

// queueObjects hold each other: Kueue keeps a flavor while a queue uses it.
func queueObjects() []client.Object {
	flavor := &kueueapi.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "v5e"}}
	queue := &kueueapi.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "research"}}
	queue.Spec.NamespaceSelector = &metav1.LabelSelector{}
	queue.Spec.ResourceGroups = []kueueapi.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{"google.com/tpu"},
		Flavors: []kueueapi.FlavorQuotas{{Name: "v5e", Resources: []kueueapi.ResourceQuota{
			{Name: "google.com/tpu", NominalQuota: resource.MustParse("16")},
		}}},
	}}
	local := &kueueapi.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "research", Namespace: "default"}}
	local.Spec.ClusterQueue = "research"
	return []client.Object{flavor, queue, local}
}
