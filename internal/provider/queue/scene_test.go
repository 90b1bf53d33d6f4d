package queue_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// One configuration with a slice pool, the queue that follows it and the
// queue's state: Terraform takes the whole pool for slice_pool, knows the quota
// in the plan, and changes the queue together with the pool.
func TestQueueBesideItsSlicePool(t *testing.T) {
	g, _, cluster := world(t)
	config := func(slices int) string {
		return g.Config("team", fmt.Sprintf(`
resource "tpu_slice_pool" "v5e" {
  cluster     = %q
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = %d
}
resource "tpu_kueue_queue" "team" {
  cluster = tpu_slice_pool.v5e.cluster
  name    = "team-a"
  flavors = [{ name = "v5e-4x4", slice_pool = tpu_slice_pool.v5e }]
}
data "tpu_queue_status" "team" { queue = tpu_kueue_queue.team.id }
`, cluster, slices))
	}
	const team = "tpu_kueue_queue.team"
	first := tfjsonpath.New("flavors").AtSliceIndex(0)
	plan := func(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: checks}
	}
	quota := func(slices, chips int64) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(team, first.AtMapKey("slices"), knownvalue.Int64Exact(slices)),
			statecheck.ExpectKnownValue(team, tfjsonpath.New("chips"), knownvalue.Int64Exact(chips)),
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{
				Config:           config(3),
				ConfigPlanChecks: plan(plancheck.ExpectKnownValue(team, first.AtMapKey("slices"), knownvalue.Int64Exact(3))),
				ConfigStateChecks: append(quota(3, 48),
					statecheck.ExpectKnownValue("data.tpu_queue_status.team", tfjsonpath.New("status"), knownvalue.StringExact("Active")),
					statecheck.ExpectKnownValue("data.tpu_queue_status.team", first.AtMapKey("slices"), knownvalue.Int64Exact(3))),
			},
			{Config: config(3), ConfigPlanChecks: plan(plancheck.ExpectEmptyPlan())},
			{
				Config: config(1),
				ConfigPlanChecks: plan(plancheck.ExpectResourceAction(team, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(team, first.AtMapKey("chips"), knownvalue.Int64Exact(16))),
				ConfigStateChecks: quota(1, 16),
			},
			{
				// A pool that is made anew lowers the quota to nothing meanwhile.
				Config: config(1), Taint: []string{"tpu_slice_pool.v5e"},
				ConfigPlanChecks:  plan(plancheck.ExpectResourceAction("tpu_slice_pool.v5e", plancheck.ResourceActionReplace)),
				ConfigStateChecks: quota(1, 16),
			},
			{Config: config(1), ConfigPlanChecks: plan(plancheck.ExpectEmptyPlan())},
			{Config: config(1), ResourceName: team, ImportState: true, ImportStateVerify: true},
		},
	})
}

// While Kueue is down a plan works, and an apply says what is down; the queue
// stays in state, and the next apply goes on.
func TestKueueDown(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	config := with(everything(cluster), object{"timeouts": object{"update": "2s"}})
	r, text := p.Apply(typ, nil, config)
	if text != "" {
		t.Fatal(text)
	}
	g.Cluster.WebhookDown("kueue-webhook-service", "kueue-system")
	change := with(config, object{"cohort": "other"})
	fresh, text := p.Refresh(r)
	if fresh == nil || text != "" {
		t.Fatalf("refresh: %v, %s", fresh, text)
	}
	if plan := p.Plan(typ, fresh, change); plan.Text != "" || !strings.Contains(fmt.Sprint(plan.Changed), "cohort") {
		t.Errorf("plan: %v, %s", plan.Changed, plan.Text)
	}
	kept, text := p.Apply(typ, fresh, change)
	if kept == nil || !strings.Contains(text, "Cannot apply queue team-a") || !strings.Contains(text, "Service kueue-webhook-service in namespace kueue-system is down") {
		t.Errorf("apply: %v, %s", kept, text)
	}
	if none, text := g.Protocol(t, "").Apply(typ, nil, with(change, object{"name": "team-b", "timeouts": object{"create": "2s"}})); none != nil || !strings.Contains(text, "is down") {
		t.Errorf("another queue: %v, %s", none, text)
	}
	g.Cluster.WebhookDown("", "")
	if r, text = p.Apply(typ, kept, change); text != "" || r.State["cohort"] != "other" {
		t.Errorf("afterwards: %v, %s", r.State["cohort"], text)
	}
}

// The status after an update is of the queue as it then is, not of the one
// before: a flavor that is missing at first is waited for.
func TestStatusAfterAnUpdate(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	config := object{"cluster": cluster, "name": "team-a", "flavors": []any{object{"name": "v5e-4x4", "accelerator": "v5litepod-16", "slices": 1}}}
	r, text := p.Apply(typ, nil, config)
	if text != "" || r.State["status"] != "Active" {
		t.Fatalf("create: %v, %s", r, text)
	}
	var missed atomic.Bool
	made := make(chan error, 1)
	go func() {
		live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
		err := k.Until(t.Context(), live, func(bool) (bool, error) {
			_, reason, _ := queue.Standing(live)
			return reason == kueue.ClusterQueueActiveReasonFlavorNotFound, nil
		})
		missed.Store(err == nil)
		if err == nil {
			err = k.Apply(t.Context(), queue.Flavor{Name: "late", Slice: smallSlice(t)}.Object(), kube.ApplyOptions{})
		}
		made <- err
	}()
	config["flavors"] = append(config["flavors"].([]any), object{"name": "late", "accelerator": "v5litepod-4", "slices": 1})
	r, text = p.Apply(typ, r, config)
	if text != "" || r.State["status"] != "Active" || !missed.Load() {
		t.Errorf("update: status %v, which was FlavorNotFound before: %t, %s", r.State["status"], missed.Load(), text)
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
}

func smallSlice(t *testing.T) accelerator.Slice {
	t.Helper()
	s, err := accelerator.Resolve("v5litepod-4")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A queue whose admission check nobody on the cluster can answer is made at once,
// and said to wait for it.
func TestCheckThatNobodyAnswers(t *testing.T) {
	g, k, cluster := world(t)
	g.Cluster.Keep(t, &kueue.AdmissionCheck{})
	check := queue.AdmissionCheck{Name: "queued", Controller: queue.ProvisioningController, Request: &queue.Request{Class: "queued-provisioning.gke.io"}}
	if err := k.Apply(t.Context(), check.Object(), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	config := object{"cluster": cluster, "name": "team-a", "flavors": []any{object{"name": "v5e-4x4", "accelerator": "v5litepod-16", "slices": 1}},
		"admission_checks": []any{object{"name": "queued"}}}
	began := time.Now()
	r, text := g.Protocol(t, "").Apply(typ, nil, config)
	if r == nil || r.State["status"] != "AdmissionCheckInactive" || !strings.Contains(text, "Nobody answers for admission check queued") {
		t.Errorf("%v, %s", r, text)
	}
	if took := time.Since(began); took > 14*time.Second {
		t.Errorf("it took %v: as long as a queue gets that may yet become active", took)
	}
}
