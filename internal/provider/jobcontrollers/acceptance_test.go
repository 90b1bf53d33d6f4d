package jobcontrollers_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const (
	project = "acc-controllers"
	cluster = "projects/acc-controllers/locations/us-west4-a/clusters/training"
	address = "tpu_job_controllers.main"
)

const clusterConfig = `
provider "tpu" {
  project  = "` + project + `"
  location = "us-west4-a"
}

resource "tpu_training_cluster" "main" {
  name                = "training"
  release_channel     = "RAPID"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8", node_count = 1 } }
}
`

func config(body string) string {
	return clusterConfig + `
resource "tpu_job_controllers" "main" {
  cluster = tpu_training_cluster.main.id
` + body + `
}
`
}

func status(want string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("status"), knownvalue.StringExact(want))
}

// From nothing with the cluster in the same apply, through changes, drift, a
// refused destroy and an uninstall behind Terraform's back, to destroy in one
// go.
func TestAccJobControllers(t *testing.T) {
	acctest.UseSandbox(t)
	emptyPlan := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	action := func(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, a)}}
	}
	changed := config(`
  webhook_port  = 9443
  node_selector = { "cloud.google.com/gke-nodepool" = "system" }
  max_hosts     = 2000
  tolerations   = [{ key = "dedicated", operator = "Equal", value = "system", effect = "NoSchedule" }]
  jobset        = { resources = { cpu = "250m" }, client_qps = 100, client_burst = 200 }
  kueue = {
    replicas = 2, recovery_timeout = "90m", fair_sharing = true, fair_sharing_preemption = ["LessThanInitialShare"]
    frameworks = ["batch/job", "jobset.x-k8s.io/jobset", "ray.io/rayjob"]
    requeue_limit = 5, requeue_backoff = "30s", requeue_max_backoff = "10m", block_admission = true
    admission_fair_sharing = { usage_half_life = "24h", usage_sampling_interval = "1m" }
    excluded_resources = ["networking.gke.io/"], undeclared_resources = "block", visibility = false, queue_metrics = true
    client_qps = 200, client_burst = 300, workload_retention = "24h", feature_gates = { LocalQueueMetrics = true }
  }
`)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(""),
				ConfigStateChecks: []statecheck.StateCheck{
					status(controllers.Ready),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("id"), knownvalue.StringExact(cluster+"/jobControllers")),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("jobset_version"), knownvalue.StringExact(controllers.JobSetVersion)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("kueue_version"), knownvalue.StringExact(controllers.KueueVersion)),
				},
			},
			{Config: config(""), ConfigPlanChecks: emptyPlan},
			{Config: changed, ConfigPlanChecks: action(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{status(controllers.Ready)}},
			{Config: changed, ConfigPlanChecks: emptyPlan},
			{ // a whole configuration comes back from the cluster
				ResourceName: address, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"kueue.recovery_timeout"},
			},
			{ // a webhook that somebody deleted is drift
				PreConfig:        func() { deleteWebhooks(t) },
				Config:           changed,
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate), ConfigStateChecks: []statecheck.StateCheck{status(controllers.Ready)},
			},
			{ // a job keeps the controllers
				PreConfig:   func() { createJob(t) },
				Config:      clusterConfig,
				ExpectError: regexp.MustCompile(`(?s)JobSet default/running.*Delete them first`),
			},
			{ // what is gone is made again
				PreConfig: func() {
					err := controllers.Uninstall(t.Context(), acctest.Connect(t, cluster), controllers.Config{}, controllers.UninstallOptions{Force: true})
					if err != nil {
						t.Fatal(err)
					}
				},
				Config: config(""), ConfigPlanChecks: action(plancheck.ResourceActionCreate), ConfigStateChecks: []statecheck.StateCheck{status(controllers.Ready)},
			},
		},
	})
}

func deleteWebhooks(t *testing.T) {
	t.Helper()
	hook := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}}
	hook.Name = "jobset-mutating-webhook-configuration"
	if err := acctest.Connect(t, cluster).Remove(t.Context(), hook, true); err != nil {
		t.Fatal(err)
	}
}

func createJob(t *testing.T) {
	t.Helper()
	js := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": map[string]any{"name": "running", "namespace": "default"},
		"spec": map[string]any{"suspend": true, "replicatedJobs": []any{map[string]any{
			"name": "main", "replicas": int64(1),
			"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "main"}},
			}}}},
		}}},
	}}
	if err := acctest.Connect(t, cluster).Create(t.Context(), js); err != nil {
		t.Fatal(err)
	}
}

// A cluster that does not exist is named in the error.
func TestAccJobControllersWithoutCluster(t *testing.T) {
	acctest.UseSandbox(t)
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: `
provider "tpu" {}
resource "tpu_job_controllers" "main" {
  cluster = "projects/acc-controllers/locations/us-west4-a/clusters/nowhere"
}
`,
			ExpectError: regexp.MustCompile(`(?s)clusters/nowhere.*not\s+found`),
		}},
	})
}
