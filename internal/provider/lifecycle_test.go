package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// A flavor that a queue names is renamed in one apply; a flavor or namespace
// whose forerunner is still terminating waits for its end instead of failing.
// The objects beside them come, stay as they are, are imported and go.
func TestAccNamesInUse(t *testing.T) {
	acctest.UseSandbox(t)
	const cluster = "projects/acc-names/locations/us-west4-a/clusters/main"
	config := func(flavor, more string) string {
		return `
provider "tpu" {
  project  = "acc-names"
  location = "us-west4-a"
  owner    = "names"
}
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}
resource "tpu_job_controllers" "main" { cluster = tpu_training_cluster.main.id }
resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "` + flavor + `"
  accelerator = "v5litepod-16"
}
resource "tpu_kueue_queue" "research" {
  cluster = tpu_job_controllers.main.cluster
  name    = "research"
  cohort  = tpu_kueue_cohort.lab.name
  flavors = [{ name = tpu_kueue_flavor.v5e.name, accelerator = "v5litepod-16", slices = 2 }]
}
resource "tpu_kueue_flavor" "parts" {
  cluster        = tpu_job_controllers.main.cluster
  name           = "parts"
  accelerator    = "v6e-256"
  provisioning   = "spot"
  node_taints    = [{ key = "a", effect = "NoSchedule" }]
  tolerations    = [{ key = "a", operator = "Exists" }]
  topology_aware = {}
}
resource "tpu_kueue_cohort" "lab" {
  cluster             = tpu_job_controllers.main.cluster
  name                = "lab"
  parent              = "all"
  fair_sharing_weight = "0.5"
  flavors             = [{ name = tpu_kueue_flavor.parts.name, accelerator = "v6e-256", slices = 1, borrow_slices = 2, lend_slices = 0 }]
}
resource "tpu_kueue_priority" "urgent" {
  cluster = tpu_job_controllers.main.cluster
  name    = "urgent"
  value   = 2000
}
resource "tpu_kueue_admission_check" "queued" {
  cluster = tpu_job_controllers.main.cluster
  name    = "queued"
  provisioning_request = {
    class             = "queued-provisioning.gke.io"
    managed_resources = ["google.com/tpu"]
    node_selector     = { "autoscaling.gke.io/provisioning-request" = "ResizeRequestName" }
  }
}
` + more
	}
	const namespace = `
resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
}
`
	const more = `
resource "tpu_kueue_flavor" "again" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "old"
  accelerator = "v5litepod-16"
}
`
	plan := func(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: checks}
	}
	empty := plan(plancheck.ExpectEmptyPlan())
	imports := func(name string) resource.TestStep {
		return resource.TestStep{Config: config("v5e", ""), ResourceName: name, ImportState: true, ImportStateVerify: true}
	}
	var cl *kube.Client
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("v5e", "")},
			{Config: config("v5e", ""), ConfigPlanChecks: empty},
			imports("tpu_kueue_flavor.parts"), imports("tpu_kueue_cohort.lab"), imports("tpu_kueue_priority.urgent"), imports("tpu_kueue_admission_check.queued"),
			{ // deleted, made and turned to in one apply
				Config: config("v5e-4x4", ""),
				ConfigPlanChecks: plan(plancheck.ExpectResourceAction("tpu_kueue_flavor.v5e", plancheck.ResourceActionReplace),
					plancheck.ExpectResourceAction("tpu_kueue_queue.research", plancheck.ResourceActionUpdate)),
			},
			{Config: config("v5e-4x4", ""), ConfigPlanChecks: empty},
			{ // forerunners of both names end only while the apply runs
				PreConfig: func() {
					cl = acctest.Connect(t, cluster)
					vanished(t, cl, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "v5e"}})
					ending(t, cl, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}},
						&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "held"}})
					ending(t, cl, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "old"}}, nil)
				},
				Config: config("v5e-4x4", namespace+more),
			},
			{
				PreConfig: func() {
					for _, obj := range []client.Object{
						&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}},
						&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "old"}},
					} {
						if found, err := cl.Fetch(t.Context(), obj); err != nil || !found || obj.GetDeletionTimestamp() != nil || obj.GetLabels()["left"] != "" {
							t.Errorf("%T is not a new one: found %t, %v, %v", obj, found, obj.GetLabels(), err)
						}
					}
				},
				Config: config("v5e-4x4", namespace+more), ConfigPlanChecks: empty,
			},
		},
	})
}

// vanished waits until the cluster has finished a deletion.
func vanished(t *testing.T, cl *kube.Client, obj client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cl.Until(ctx, obj, func(found bool) (bool, error) { return !found, nil }); err != nil {
		t.Fatal(err)
	}
}

// ending makes obj, deletes it, and keeps it terminating for three seconds by a
// finalizer on inside, which is in it, or else on itself.
func ending(t *testing.T, cl *kube.Client, obj, inside client.Object) {
	t.Helper()
	held := obj
	all := []client.Object{obj}
	if inside != nil {
		held = inside
		all = append(all, inside)
	}
	obj.SetLabels(map[string]string{"left": "over"})
	held.SetFinalizers([]string{"example.com/held"})
	for _, o := range all {
		if err := cl.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	free := held.DeepCopyObject().(client.Object)
	go func() {
		select {
		case <-t.Context().Done():
		case <-time.After(3 * time.Second):
			// Only ours: Kueue has a finalizer of its own on flavors.
			patch := client.RawPatch("application/json-patch+json", []byte(`[{"op":"test","path":"/metadata/finalizers/0","value":"example.com/held"},{"op":"remove","path":"/metadata/finalizers/0"}]`))
			if err := cl.Patch(t.Context(), free, patch); err != nil {
				t.Errorf("releasing %T: %v", free, err)
			}
		}
	}()
}
