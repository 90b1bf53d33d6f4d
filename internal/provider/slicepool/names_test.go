package slicepool_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// manyHCL is a pool with other meta-arguments, or several.
func manyHCL(meta, name string) string {
	return clusterHCL + fmt.Sprintf(`
resource "tpu_slice_pool" "v5e" {
  %s
  cluster     = tpu_training_cluster.main.id
  name        = %s
  accelerator = "v5litepod-16"
  slice_count = 2
}
`, meta, name)
}

// Two resources of one name are refused before anything is touched, whether
// both are new, one is there, or the names are known at apply only.
func TestTwoResourcesOneName(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	refused := regexp.MustCompile(`Two resources name slice pool v5e`)
	late := g.Config("a", `
resource "terraform_data" "name" {
  input = "late"
}
`+manyHCL("count = 2", "terraform_data.name.output"))
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: g.Config("a", clusterHCL)},
			{Config: g.Config("a", manyHCL("count = 2", `"v5e"`)), PlanOnly: true, ExpectError: refused},
			{Config: g.Config("a", manyHCL("count = 1", `"v5e"`)), Check: has(t, g, "v5e-0", "v5e-1")},
			{Config: g.Config("a", manyHCL("count = 2", `"v5e"`)), PlanOnly: true, ExpectError: refused},
			{Config: g.Config("a", manyHCL("count = 2", `"v5e${count.index}"`)), Check: has(t, g, "v5e0-0", "v5e0-1", "v5e1-0", "v5e1-1")},
			{Config: late, ExpectError: regexp.MustCompile(`Two resources name slice pool late`)},
		},
	})
}

// deletions counts those of node pools.
func deletions(g *acctest.GKE) (n int) {
	for _, op := range g.Operations() {
		if op.OperationType == containerpb.Operation_DELETE_NODE_POOL {
			n++
		}
	}
	return n
}

// Another address for a pool, with a moved block or without, costs no pool its
// state; nor does a replacement that makes before it destroys.
func TestOneNameAtTwoAddresses(t *testing.T) {
	t.Parallel()
	each := func(key string) string { return manyHCL(fmt.Sprintf("for_each = toset([%q])", key), `"v5e"`) }
	moved := `
moved {
  from = tpu_slice_pool.v5e["one"]
  to   = tpu_slice_pool.v5e["other"]
}
`
	before := manyHCL("lifecycle {\n    create_before_destroy = true\n  }", `"v5e"`)
	for name, c := range map[string]struct {
		from, to string
		args     []string
		says     string
		again    bool // made again
	}{
		"moved":                 {each("one"), each("other") + moved, nil, "", false},
		"replaced":              {manyHCL("", `"v5e"`), manyHCL("", `"v5e"`), []string{"-replace=tpu_slice_pool.v5e"}, "", true},
		"made before destroyed": {before, before, []string{"-replace=tpu_slice_pool.v5e"}, "node pools of slice pool v5e stay", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t)
			d := workspace(t, g, g.Config("a", c.from))
			if out, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			before := deletions(g)
			if err := d.Write("main.tf", terraformBlock+g.Config("a", c.to)); err != nil {
				t.Fatal(err)
			}
			out, err := d.Output(t.Context(), append([]string{"apply", "-auto-approve", "-no-color"}, c.args...)...)
			if err != nil || !strings.Contains(out, c.says) {
				t.Errorf("%v\n%s", err, out)
			}
			deleted := deletions(g) > before
			if now := slicesOf(g, "a"); len(now) != 2 || deleted != c.again {
				t.Errorf("deleted: %t; now there are %v", deleted, now)
			}
			if out, err := d.Output(t.Context(), "plan", "-detailed-exitcode", "-no-color"); err != nil {
				t.Errorf("the second plan: %v\n%s", err, out)
			}
			if out, err := d.Output(t.Context(), "destroy", "-auto-approve", "-no-color"); err != nil || len(slicesOf(g, "a")) != 0 {
				t.Errorf("the destroy: %v\n%s", err, out)
			}
		})
	}
}

// A pool that is removed at one address and made at another, in whatever order,
// is there in the end.
func TestRenamedWithoutMoved(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := func(address string) string {
		return g.Config("a", strings.Replace(manyHCL("", `"v5e"`), `"tpu_slice_pool" "v5e"`, fmt.Sprintf(`"tpu_slice_pool" %q`, address), 1))
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: g.Factories(),
		Steps: []resource.TestStep{
			{Config: config("one"), Check: has(t, g, "v5e-0", "v5e-1")},
			{Config: config("other"), Check: has(t, g, "v5e-0", "v5e-1")},
			{Config: config("other"), ConfigPlanChecks: emptyPlan},
		},
	})
}
