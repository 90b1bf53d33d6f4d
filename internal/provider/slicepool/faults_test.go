package slicepool_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"google.golang.org/grpc/codes"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// Whatever the API does on the way, the pool is READY in the end, there are no
// duplicates and no leftovers, and the second plan is empty.
func TestFaultsOnTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts   []fakegke.Option
		faults []fakegke.Fault
	}{
		"a quota of two operations": {opts: []fakegke.Option{fakegke.WithOperationQuota(2)}},
		"a quota of one operation":  {opts: []fakegke.Option{fakegke.WithOperationQuota(1)}},
		"reads that are late":       {opts: []fakegke.Option{fakegke.WithLateReads(2)}},
		"a reply that was lost":     {faults: []fakegke.Fault{{Method: "CreateNodePool", Call: 2, Reset: true, AfterEffect: true}}},
		"a lost reply and late reads": {opts: []fakegke.Option{fakegke.WithLateReads(3)},
			faults: []fakegke.Fault{{Method: "CreateNodePool", Call: 2, Reset: true, AfterEffect: true}}},
		"a request that was lost": {faults: []fakegke.Fault{{Method: "CreateNodePool", Call: 1, Reset: true}}},
		"polls that fail":         {faults: []fakegke.Fault{{Method: "ListOperations", Call: 2, Code: codes.Unavailable, Message: "Try later."}}},
		"throttling": {faults: []fakegke.Fault{{Method: "CreateNodePool", Call: 3, Code: codes.ResourceExhausted,
			Message: "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute'."}}},
		"an operation in the way": {faults: []fakegke.Fault{{Method: "CreateNodePool", Call: 1, Code: codes.FailedPrecondition,
			Message: "Cluster is running incompatible operation operation-1."}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := acctest.NewGKE(t, c.opts...)
			for _, f := range c.faults {
				g.Fail(f)
			}
			resource.UnitTest(t, resource.TestCase{
				ProtoV6ProviderFactories: g.Factories(),
				Steps: []resource.TestStep{{
					Config:            g.Config("faults", poolHCL("accelerator = \"v5litepod-16\"\nslice_count = 5")),
					Check:             has(t, g, "v5e-0", "v5e-1", "v5e-2", "v5e-3", "v5e-4"),
					ConfigStateChecks: []statecheck.StateCheck{status("READY"), ready(5)},
				}},
			})
			if !g.Empty() {
				t.Error("something is left in GKE")
			}
		})
	}
}
