package jobset_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

const unknownCluster = `
resource "tpu_training_cluster" "main" {
  name                = "main"
  deletion_protection = false
  cpu_pools           = { system = { machine_type = "e2-standard-8" } }
}
`

// The whole quickstart plans before anything exists, with what can be known
// already in the plan.
func TestPlanWithoutACluster(t *testing.T) {
	g := acctest.NewGKE(t)
	known := func(address, attribute string, value knownvalue.Check) plancheck.PlanCheck {
		return plancheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
	}
	unknown := func(address, attribute string) plancheck.PlanCheck {
		return plancheck.ExpectUnknownValue(address, tfjsonpath.New(attribute))
	}
	resource.ParallelTest(t, resource.TestCase{
		IsUnitTest:               true,
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{{
			Config: g.Config("me", unknownCluster+`
resource "tpu_training_namespace" "n" {
  cluster         = tpu_training_cluster.main.id
  name            = "research"
  service_account = { name = "trainer", google_service_account = "t@p.iam.gserviceaccount.com" }
  submitters      = ["group:ml@example.com"]
}
resource "tpu_kueue_flavor" "f" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e-4x4"
  accelerator = "v5litepod-16"
}
resource "tpu_kueue_queue" "q" {
  cluster    = tpu_training_cluster.main.id
  name       = "research"
  flavors    = [{ name = tpu_kueue_flavor.f.name, accelerator = tpu_kueue_flavor.f.accelerator, slices = 2 }]
  namespaces = [tpu_training_namespace.n.name]
}
resource "tpu_training_jobset" "j" {
  cluster     = tpu_training_cluster.main.id
  namespace   = tpu_training_namespace.n.name
  name        = "train"
  queue       = tpu_kueue_queue.q.name
  accelerator = tpu_kueue_flavor.f.accelerator
  slices      = 2
  image       = "i"
  env         = { CLUSTER = tpu_training_cluster.main.endpoint }
}
`),
			PlanOnly:           true,
			ExpectNonEmptyPlan: true,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPreRefresh: []plancheck.PlanCheck{
				known("tpu_kueue_flavor.f", "topology", knownvalue.StringExact("4x4")),
				known("tpu_kueue_flavor.f", "chips_per_slice", knownvalue.Int64Exact(16)),
				known("tpu_kueue_queue.q", "chips", knownvalue.Int64Exact(32)),
				known("tpu_kueue_queue.q", "queueing_strategy", knownvalue.StringExact("BestEffortFIFO")),
				known("tpu_training_jobset.j", "run_id", knownvalue.StringExact("train")),
				known("tpu_training_jobset.j", "wait_for", knownvalue.StringExact("admitted")),
				known("tpu_training_jobset.j", "restart_policy", knownvalue.ObjectExact(map[string]knownvalue.Check{
					"max_restarts":     knownvalue.Int64Exact(3),
					"on_preemption":    knownvalue.StringExact("restart"),
					"fatal_exit_codes": knownvalue.SetExact([]knownvalue.Check{knownvalue.Int64Exact(2), knownvalue.Int64Exact(126), knownvalue.Int64Exact(127)}),
				})),
				unknown("tpu_training_jobset.j", "status"),
				unknown("tpu_kueue_queue.q", "id"),
			}},
		}},
	})
}

// Bad input fails at plan, in words, before any call.
func TestRefusedAtPlan(t *testing.T) {
	g := acctest.NewGKE(t)
	const cluster = `  cluster = "projects/p/locations/us-west4-a/clusters/c"` + "\n"
	job := func(body string) string {
		all := cluster + body
		for key, value := range map[string]string{"name": `"train"`, "namespace": `"research"`, "accelerator": `"v5litepod-16"`, "slices": "2", "image": `"i"`} {
			if !strings.Contains(body, "  "+key+" ") {
				all += "  " + key + " = " + value + "\n"
			}
		}
		return `resource "tpu_training_jobset" "x" {` + "\n" + all + "}\n"
	}
	other := func(typ, body string) string {
		return `resource "` + typ + `" "x" {` + "\n" + cluster + body + "}\n"
	}
	for _, c := range []struct{ name, config, want string }{
		{"unknown accelerator", job("  accelerator = \"v5litepod-17\"\n"), `v5litepod-16`},
		{"no slices", job("  slices = 0\n"), `at least 1`},
		{"upper case name", job("  name = \"Train\"\n"), `lower`},
		{"name too long for its pods", job("  name = \"" + strings.Repeat("a", 50) + "\"\n"), `at most 47 fit`},
		{"empty image", job("  image = \"\"\n"), `image`},
		{"unknown level", job("  wait_for = \"done\"\n"), `wait_for`},
		{"own RUN_ID", job("  env = { RUN_ID = \"x\" }\n"), `run_id`},
		{"fatal 0", job("  restart_policy = { fatal_exit_codes = [0] }\n"), `success`},
		{"negative restarts", job("  restart_policy = { max_restarts = -1 }\n"), `at least 0`},
		{"bad duration", job("  ttl_after_finished = \"1 day\"\n"), `duration`},
		{"queue by label", job("  labels = { \"kueue.x-k8s.io/queue-name\" = \"q\" }\n"), `use queue`},
		{"priority without a queue", job("  priority = \"low\"\n"), `queue`},
		{"bad cluster", strings.Replace(job(""), "projects/p", "project/p", 1), `cluster path`},
		{"bad namespace", other("tpu_training_namespace", "  name = \"kube-system\"\n"), `belong to`},
		{"bad subject", other("tpu_training_namespace", "  name = \"a\"\n  viewers = [\"ada\"]\n"), `user:EMAIL`},
		{"bad e-mail", other("tpu_training_namespace", "  name = \"a\"\n  service_account = { name = \"s\", google_service_account = \"s\" }\n"), `e-mail`},
		{"flavor's own label", other("tpu_kueue_flavor", "  name = \"f\"\n  accelerator = \"v5litepod-16\"\n  node_labels = { \"cloud.google.com/gke-tpu-topology\" = \"8x8\" }\n"), `follows from`},
		{"flavor of nothing", other("tpu_kueue_flavor", "  name = \"f\"\n  accelerator = \"h100\"\n"), `accelerator`},
		{"queue without flavors", other("tpu_kueue_queue", "  name = \"q\"\n  flavors = []\n"), `at least 1`},
		{"borrowing alone", other("tpu_kueue_queue", "  name = \"q\"\n  flavors = [{ name = \"f\", accelerator = \"v5litepod-16\", slices = 1, borrow_slices = 1 }]\n"), `cohort`},
		{"flavor twice", other("tpu_kueue_queue", "  name = \"q\"\n  flavors = [{ name = \"f\", accelerator = \"v5litepod-16\", slices = 1 }, { name = \"f\", accelerator = \"v5litepod-16\", slices = 1 }]\n"), `listed twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			resource.ParallelTest(t, resource.TestCase{
				IsUnitTest:               true,
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{{
					Config: g.Config("", c.config), PlanOnly: true,
					// Terraform wraps its messages at 80 columns.
					ExpectError: regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(c.want), " ", `\s+(│\s+)?`)),
				}},
			})
		})
	}
}
