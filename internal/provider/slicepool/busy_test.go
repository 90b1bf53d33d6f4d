package slicepool_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// Shrinking takes idle slices first, spares those that run a job unless forced,
// and leaves gaps that growing fills again.
func TestShrinkIdleFirst(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("shrink", poolHCL("accelerator = \"v5litepod-16\"\n"+body))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config(`slice_count = 4`)},
			{
				PreConfig:         func() { g.Cluster.Run("train", "v5e-2", "v5e-3") },
				Config:            config(`slice_count = 2`),
				Check:             has(t, g, "v5e-2", "v5e-3"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
			{ // the other one runs a job too: it stays, and the next plan says so
				Config:             config(`slice_count = 1`),
				ExpectNonEmptyPlan: true,
				Check:              has(t, g, "v5e-2", "v5e-3"),
				ConfigStateChecks:  []statecheck.StateCheck{status("DEGRADED"), ready(2)},
			},
			{
				Config:            config("slice_count = 1\nforce = true"),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				Check:             has(t, g, "v5e-2"),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(1)},
			},
			{Config: config(`slice_count = 3`), Check: has(t, g, "v5e-0", "v5e-1", "v5e-2")},
			{ResourceName: address, ImportState: true, ImportStateVerify: true},
		},
	})
}

// A slice that lost a host keeps the job that runs on it: the apply names the
// job and leaves the slice, which stays an update in the next plan, until force
// is set.
func TestBrokenSliceWithABusyHost(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("brokenbusy", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2\n"+body))
	}
	creates := func(want int) func() {
		return func() {
			if n := g.Calls()["CreateNodePool"]; n != want {
				t.Errorf("%d creates, want %d", n, want)
			}
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("")},
			{
				PreConfig: func() {
					g.Cluster.Run("train", "v5e-1")
					g.Break(clusterPath(g)+"/nodePools/v5e-1", 3, fakegke.OutOfStock)
				},
				Config:             config(""),
				ExpectNonEmptyPlan: true,
				Check:              has(t, g, "v5e-0", "v5e-1"),
				ConfigStateChecks:  []statecheck.StateCheck{status("DEGRADED"), ready(1)},
			},
			{
				PreConfig:         creates(2),
				Config:            config("force = true"),
				ConfigPlanChecks:  action(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(2)},
			},
			{PreConfig: creates(3), Config: config("force = true"), ConfigPlanChecks: emptyPlan},
		},
	})
}

// A slice that is too many and busy gets no new settings and is not warned
// about for want of them: it goes.
func TestSurplusSliceIsNotChanged(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string {
		return g.Config("surplus", poolHCL("accelerator = \"v5litepod-16\"\n"+body))
	}
	d := workspace(t, g, config("slice_count = 2"))
	apply := func() string {
		t.Helper()
		out, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	apply()
	g.Cluster.Run("train", "v5e-0", "v5e-1")
	if err := d.Write("main.tf", terraformBlock+config("slice_count = 1\nnode = { boot_disk = { size_gb = 150 } }")); err != nil {
		t.Fatal(err)
	}
	out := apply()
	if !strings.Contains(out, "v5e keeps 1 slice more than it should have") || !strings.Contains(out, "v5e: 1 slice has not got its new settings") {
		t.Errorf("want one slice too many, and one with earlier settings: %s", out)
	}
}

// deletion_protection stops a destroy and a replacement, at plan.
func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(body string) string { return g.Config("protected", poolHCL(body)) }
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("accelerator = \"v5litepod-16\"\ndeletion_protection = true")},
			{Config: config("accelerator = \"v5litepod-16\"\ndeletion_protection = true"), Destroy: true, ExpectError: regexp.MustCompile(`protected from deletion`)},
			{Config: config("accelerator = \"v5litepod-32\"\ndeletion_protection = true"), ExpectError: regexp.MustCompile(`protected from\s+replacement`)},
			{Config: config("accelerator = \"v5litepod-16\"\ndeletion_protection = false"), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		},
	})
}

// A plan that would delete or replace a pool names the jobs that run on it, and
// only those: not jobs of other pools, and none when it changes in place.
func TestPlansNameRunningJobs(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(accelerator string) string {
		return g.Config("jobs", poolHCL(fmt.Sprintf("accelerator = %q\nslice_count = 2", accelerator))+`
resource "tpu_slice_pool" "other" {
  cluster     = tpu_training_cluster.main.id
  name        = "other"
  accelerator = "v5litepod-16"
}
`)
	}
	d := workspace(t, g, config("v5litepod-16"))
	plan := func(args ...string) string {
		t.Helper()
		out, err := d.Output(t.Context(), append([]string{"plan", "-no-color"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	if _, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatal(err)
	}
	const destroys, replaces = "Deleting slice pool v5e kills running jobs", "Replacing slice pool v5e kills running jobs"
	if out := plan("-destroy"); strings.Contains(out, "kills running jobs") {
		t.Errorf("nothing runs: %s", out)
	}
	g.Cluster.Run("train", "v5e-1")
	if out := plan(); strings.Contains(out, "kills running jobs") {
		t.Errorf("nothing changes: %s", out)
	}
	before := g.Cluster.Lists()
	if out := plan("-destroy"); !strings.Contains(out, destroys) || !strings.Contains(out, "default/train[0]") || strings.Contains(out, "pool other kills") {
		t.Errorf("the plan to destroy does not name the job: %s", out)
	}
	if n := g.Cluster.Lists() - before; n != 1 {
		t.Errorf("the pods of the cluster were listed %d times for two pools, want once", n)
	}
	if err := d.Write("main.tf", terraformBlock+config("v5litepod-32")); err != nil {
		t.Fatal(err)
	}
	if out := plan(); !strings.Contains(out, replaces) || !strings.Contains(out, "default/train[0]") {
		t.Errorf("the plan to replace does not name the job: %s", out)
	}
}
