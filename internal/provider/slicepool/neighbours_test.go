package slicepool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// neighbour is another configuration on the same cluster, with a state and an
// owner of its own.
func neighbour(g *acctest.GKE, name, body string) string {
	return g.Config("team-b", fmt.Sprintf(`
resource "tpu_slice_pool" "theirs" {
  cluster     = %q
  name        = %q
  accelerator = "v5litepod-16"
  %s
}
`, clusterPath(g), name, body))
}

// slicesOf tells of every slice in GKE whose it is, and since when: a node pool
// that is made again has another moment of creation or another etag.
func slicesOf(g *acctest.GKE, owner string) map[string]string {
	found := map[string]string{}
	for _, np := range g.NodePools(clusterPath(g)) {
		if labels := np.Config.ResourceLabels; labels[gke.LabelOwner] == owner && labels[gke.LabelKind] == gke.KindSlice {
			found[np.Name] = labels[gke.LabelCreated] + " " + np.Etag
		}
	}
	return found
}

// Two configurations with other owners share a cluster. With the same name the
// second is refused and takes nothing; with names of which one begins the
// other, each grows, shrinks and goes without a touch on the other's slices.
func TestTwoOwnersOnOneCluster(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	mine := workspace(t, g, g.Config("team-a", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 2")))
	theirs := workspace(t, g, neighbour(g, "v5e", "slice_count = 3"))
	run := func(d *tfrun.Dir, args ...string) (string, error) {
		return d.Output(t.Context(), append(args, "-no-color")...)
	}
	must := func(d *tfrun.Dir, args ...string) {
		t.Helper()
		if out, err := run(d, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	must(mine, "apply", "-auto-approve")
	before := slicesOf(g, "team-a")
	untouched := func(when string) {
		t.Helper()
		if diff := cmp.Diff(before, slicesOf(g, "team-a")); diff != "" || len(before) != 2 {
			t.Errorf("%s, the slices of team-a (-were +are):\n%s", when, diff)
		}
	}
	if out, err := run(theirs, "apply", "-auto-approve"); err == nil || !strings.Contains(out+err.Error(), `owner is "team-a"`) {
		t.Errorf("the same name: %v\n%s", err, out)
	}
	if left := slicesOf(g, "team-b"); len(left) != 0 {
		t.Errorf("the refused apply made %v", left)
	}
	untouched("after an apply with the same name")
	must(theirs, "destroy", "-auto-approve")
	untouched("after a destroy of nothing with the same name")

	for _, count := range []int{2, 1} {
		if err := theirs.Write("main.tf", terraformBlock+neighbour(g, "v5e-0", fmt.Sprintf("slice_count = %d", count))); err != nil {
			t.Fatal(err)
		}
		must(theirs, "apply", "-auto-approve")
		if left := slicesOf(g, "team-b"); len(left) != count {
			t.Errorf("team-b has %v, want %d", left, count)
		}
		untouched("after a change by team-b")
		must(mine, "plan", "-detailed-exitcode")
	}
	was := slicesOf(g, "team-b")
	if err := mine.Write("main.tf", terraformBlock+g.Config("team-a", clusterHCL)); err != nil {
		t.Fatal(err)
	}
	must(mine, "apply", "-auto-approve")
	if diff := cmp.Diff(was, slicesOf(g, "team-b")); diff != "" || len(slicesOf(g, "team-a")) != 0 {
		t.Errorf("after team-a removed its pool, the slices of team-b (-were +are):\n%s", diff)
	}
	must(theirs, "plan", "-detailed-exitcode")
}
