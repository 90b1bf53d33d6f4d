package slicepool_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// ownedBy checks what the labels of all slices name.
func ownedBy(t *testing.T, g *acctest.GKE, want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		r, err := raw(t, g).ListNodePools(t.Context(), &containerpb.ListNodePoolsRequest{Parent: clusterPath(g)})
		if err != nil {
			return err
		}
		for _, np := range r.NodePools {
			if o := gke.OwnershipOf(np.GetConfig().GetResourceLabels()); o.Kind == gke.KindSlice && o.Owner != want {
				return fmt.Errorf("node pool %s is labelled with owner %q, want %q", np.Name, o.Owner, want)
			}
		}
		return nil
	}
}

// Another owner, a first one, or none any more: a plan shows it, and the next
// apply writes it on the slices that are there, which stay the same.
func TestOwnerChanges(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	two := poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2")
	three := poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 3")
	steps := []resource.TestStep{{Config: g.Config("", two)}}
	for _, s := range []struct{ owner, config string }{{"a", two}, {"b", three}, {"", three}} {
		steps = append(steps,
			resource.TestStep{Config: g.Config(s.owner, s.config), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
			resource.TestStep{Config: g.Config(s.owner, s.config), ConfigPlanChecks: emptyPlan, Check: ownedBy(t, g, s.owner)})
	}
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: steps})
}

// Slices that were deleted by hand and made again by another owner are not the
// first one's, though its state knows their names: its plan shows a pool to
// make, its apply is refused in words, and no destroy of it touches them.
func TestSlicesThatAnotherOwnerMadeAgain(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	body := poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2")
	first := workspace(t, g, g.Config("first", body))
	run := func(args ...string) (string, error) {
		out, err := first.Output(t.Context(), append(args, "-no-color")...)
		return out, err
	}
	if out, err := run("apply", "-auto-approve"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deleteNodePool(t, g, "v5e-0")
	deleteNodePool(t, g, "v5e-1")
	alone := strings.Replace(strings.TrimPrefix(body, clusterHCL), "tpu_training_cluster.main.id", fmt.Sprintf("%q", clusterPath(g)), 1)
	second := workspace(t, g, g.Config("second", alone))
	if out, err := second.Output(t.Context(), "apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	untouched := func(after string) {
		t.Helper()
		for _, check := range []resource.TestCheckFunc{has(t, g, "v5e-0", "v5e-1"), ownedBy(t, g, "second")} {
			if err := check(nil); err != nil {
				t.Errorf("after %s: %v", after, err)
			}
		}
	}
	if out, err := run("plan"); err != nil || !strings.Contains(out, "tpu_slice_pool.v5e will be created") {
		t.Errorf("plan: %v\n%s", err, out)
	}
	// From the state as it is, which still has the names.
	if out, err := run("destroy", "-auto-approve", "-refresh=false", "-target=tpu_slice_pool.v5e", "-state-out=destroyed.tfstate"); err != nil {
		t.Errorf("destroy without a refresh: %v\n%s", err, out)
	}
	untouched("a destroy without a refresh")
	if out, err := run("apply", "-auto-approve"); err == nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), `its owner is "second"`) {
		t.Errorf("apply: %v\n%s", err, out)
	}
	untouched("an apply")
	if out, err := run("destroy", "-auto-approve", "-target=tpu_slice_pool.v5e"); err != nil {
		t.Errorf("destroy: %v\n%s", err, out)
	}
	untouched("a destroy")
}
