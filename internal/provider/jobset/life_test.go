package jobset_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

func TestMain(m *testing.M) { acctest.Main(m) }

const (
	project = "acc-jobset"
	cluster = "projects/acc-jobset/locations/us-west4-a/clusters/main"
)

// world is everything a job needs; queue is the body of its queue.
func world(queue, namespace string) string {
	return `
provider "tpu" {
  project  = "` + project + `"
  location = "us-west4-a"
  owner    = "acceptance"
}
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}
resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = 2
}
resource "tpu_job_controllers" "main" { cluster = tpu_training_cluster.main.id }
resource "tpu_training_namespace" "research" {
  cluster = tpu_training_cluster.main.id
  name    = "research"
  ` + namespace + `
}
resource "tpu_kueue_flavor" "v5e" {
  cluster     = tpu_job_controllers.main.cluster
  name        = "v5e-4x4"
  accelerator = "v5litepod-16"
}
resource "tpu_kueue_queue" "research" {
  cluster    = tpu_job_controllers.main.cluster
  name       = "research"
  namespaces = [tpu_training_namespace.research.name]
` + queue + `
}
`
}

const twoSlices = `  flavors    = [{ name = tpu_kueue_flavor.v5e.name, accelerator = tpu_kueue_flavor.v5e.accelerator, slices = 2 }]`

// job is a job on one slice.
func job(name, body string) string {
	return fmt.Sprintf(`
resource "tpu_training_jobset" %q {
  cluster     = tpu_slice_pool.v5e.cluster
  namespace   = tpu_training_namespace.research.name
  name        = %q
  queue       = tpu_kueue_queue.research.name
  accelerator = "v5e-4x4"
  slices      = 1
  image       = "train:1"
%s
}
`, name, name, body)
}

const (
	forever = `  pod_annotations = { "pod-complete.stage.kwok.x-k8s.io/delay" = "1h", "pod-complete.stage.kwok.x-k8s.io/jitter-delay" = "1h" }` + "\n"
)

// The life of jobs and queues under Terraform, on the real controllers. Each step
// ends with two plans that must be empty. How jobs end, and are suspended, is
// shown in TestAccEverything.
func TestAccJobsAndQueues(t *testing.T) {
	acctest.UseSandbox(t)
	var cl *kube.Client
	value := func(address, attribute, want string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("tpu_training_jobset."+address, tfjsonpath.New(attribute), knownvalue.StringExact(want))
	}
	action := func(address string, a plancheck.ResourceActionType) plancheck.PlanCheck {
		return plancheck.ExpectResourceAction(address, a)
	}
	plan := func(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: checks}
	}
	empty := plan(plancheck.ExpectEmptyPlan())
	imports := func(config, name string, ignore ...string) resource.TestStep {
		return resource.TestStep{Config: config, ResourceName: name, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: ignore}
	}
	research := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "research", Name: name} }

	namespace := `labels = { team = "a" }
  annotations     = { note = "hello" }
  service_account = { name = "trainer", google_service_account = "t@p.iam.gserviceaccount.com" }
  submitters      = ["group:ml@example.com", "serviceAccount:ci/runner"]
  viewers         = ["user:lead@example.com"]`
	short := world(twoSlices, namespace) + job("short", `
  service_account    = "trainer"
  command            = ["python", "-c", "print('$HOME')"]
  args               = ["--a"]
  env                = { A = "1" }
  output_dir         = "gs://bucket/runs"
  experiment         = "demo"
  labels             = { team = "a" }
  annotations        = { commit = "abc" }
  priority           = "low"
  restart_policy     = { max_restarts = 1, fatal_exit_codes = [2] }
  termination_grace_period = "10s"
  ttl_after_finished = "24h0m0s"
  wait_for           = "completed"
`)
	changed := strings.NewReplacer(`{ team = "a" }
  annotations        = { commit = "abc" }`, `{ team = "b", more = "c" }`, `"24h0m0s"`, `"0s"`, `"low"`, `"high"`).Replace(short)
	unready := strings.Replace(world(twoSlices, ""), "tpu_job_controllers.main.cluster", "tpu_training_cluster.main.id", 2)
	unready = strings.Replace(unready, `resource "tpu_job_controllers" "main" { cluster = tpu_training_cluster.main.id }`, "", 1)
	waiting := world(twoSlices, "") + job("long", forever+`  wait_for = "running"`) + strings.Replace(job("waiting", `
  depends_on = [tpu_training_jobset.long]
  timeouts   = { create = "3s" }
`), "slices      = 1", "slices      = 2", 1)
	long := world(twoSlices, "") + job("long", forever+`  wait_for = "running"`)
	cohort := world(`
  cohort                = "all"
  queueing_strategy     = "StrictFIFO"
  reclaim_within_cohort = "Any"
  flavors = [{ name = tpu_kueue_flavor.v5e.name, accelerator = "v5e-4x4", slices = 1, borrow_slices = 1, lend_slices = 0 }]
`, "") + job("long", forever+`  wait_for = "running"`)

	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{ // before the controllers: the errors name what is missing
				Config:      unready,
				ExpectError: regexp.MustCompile(`(?s)Cannot create flavor.*tpu_job_controllers`),
			},
			{
				Config:      strings.Split(unready, "resource \"tpu_kueue_queue\"")[0] + strings.Replace(job("early", ""), "tpu_kueue_queue.research.name", `"research"`, 1),
				ExpectError: regexp.MustCompile(`has no Kueue\s+(│\s+)?controller`),
			},
			{ // a job with every setting runs to its end
				Config: short,
				ConfigStateChecks: []statecheck.StateCheck{
					value("short", "status", "Succeeded"), value("short", "flavor", "v5e-4x4"), value("short", "id", cluster+"/namespaces/research/jobsets/short"),
					value("short", "accelerator", "v5e-4x4"),
					statecheck.ExpectKnownValue("tpu_training_jobset.short", tfjsonpath.New("finished_at"), knownvalue.NotNull()),
				},
			},
			imports(short, "tpu_training_jobset.short", "wait_for", "timeouts", "accelerator"),
			imports(short, "tpu_training_namespace.research", "timeouts"),
			{ // waiting for less changes nothing about a result (an imported job waits for "admitted")
				Config: strings.Replace(short, `"completed"`, `"admitted"`, 1),
				ConfigPlanChecks: plan(action("tpu_training_jobset.short", plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue("tpu_training_jobset.short", tfjsonpath.New("status"), knownvalue.StringExact("Succeeded")),
					plancheck.ExpectKnownValue("tpu_training_jobset.short", tfjsonpath.New("finished_at"), knownvalue.NotNull())),
				ConfigStateChecks: []statecheck.StateCheck{value("short", "status", "Succeeded")},
			},
			{ // labels, priority and TTL change in place; then the TTL removes the object
				Config: changed,
				ConfigPlanChecks: plan(action("tpu_training_jobset.short", plancheck.ResourceActionUpdate),
					action("tpu_training_namespace.research", plancheck.ResourceActionNoop)),
				ConfigStateChecks: []statecheck.StateCheck{value("short", "status", "Succeeded")},
			},
			{ // the result stays, and nothing is run again
				PreConfig: func() {
					cl = acctest.Connect(t, cluster)
					gone(t, cl, &jobsetv1.JobSet{}, research("short"))
				},
				Config: changed, ConfigPlanChecks: empty,
				ConfigStateChecks: []statecheck.StateCheck{value("short", "status", "Succeeded")},
			},
			{Config: long, ConfigStateChecks: []statecheck.StateCheck{value("long", "status", "Running")}},
			{ // not admitted in time: a warning that says why, no error, no second try; unset namespace settings were taken away
				PreConfig: func() {
					gone(t, cl, &corev1.ServiceAccount{}, research("trainer"))
					ns := &corev1.Namespace{}
					if err := cl.Get(t.Context(), client.ObjectKey{Name: "research"}, ns); err != nil || ns.Labels["team"] != "" {
						t.Errorf("labels left on the namespace: %v %v", ns.Labels, err)
					}
				},
				Config:            waiting,
				ConfigPlanChecks:  plan(action("tpu_training_jobset.long", plancheck.ResourceActionNoop)),
				ConfigStateChecks: []statecheck.StateCheck{value("waiting", "status", "Pending"), value("waiting", "reason", "WaitingForQuota")},
			},
			{ // a changed queue; the job runs on
				Config:            cohort,
				ConfigPlanChecks:  plan(action("tpu_kueue_queue.research", plancheck.ResourceActionUpdate), action("tpu_training_jobset.long", plancheck.ResourceActionNoop)),
				ConfigStateChecks: []statecheck.StateCheck{value("long", "status", "Running")},
			},
			imports(cohort, "tpu_kueue_queue.research", "timeouts", "flavors.0.accelerator"),
			{ // a quota changed by hand is changed back
				PreConfig: func() {
					patch := `[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":"64"}]`
					if err := cl.Patch(t.Context(), &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, client.RawPatch(types.JSONPatchType, []byte(patch)),
						client.FieldOwner("kubectl-edit")); err != nil {
						t.Fatal(err)
					}
				},
				Config: cohort, ConfigPlanChecks: plan(action("tpu_kueue_queue.research", plancheck.ResourceActionUpdate), action("tpu_training_jobset.long", plancheck.ResourceActionNoop)),
			},
			{ // a LocalQueue deleted by hand comes back
				PreConfig: func() {
					if err := cl.Delete(t.Context(), &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "research"}}); err != nil {
						t.Fatal(err)
					}
					gone(t, cl, &kueue.LocalQueue{}, research("research"))
				},
				Config: cohort, ConfigPlanChecks: plan(action("tpu_kueue_queue.research", plancheck.ResourceActionUpdate)),
			},
			{ // another image is another job
				Config:            strings.Replace(cohort, "train:1", "train:2", 1),
				ConfigPlanChecks:  plan(action("tpu_training_jobset.long", plancheck.ResourceActionReplace)),
				ConfigStateChecks: []statecheck.StateCheck{value("long", "status", "Running")},
			},
		},
	})
}

// gone waits until an object is not there.
func gone(t *testing.T, cl *kube.Client, obj client.Object, key client.ObjectKey) {
	t.Helper()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if found, err := cl.Fetch(t.Context(), obj); err == nil && !found {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%T %s is still there", obj, key)
		}
	}
}
