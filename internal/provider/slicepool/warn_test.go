package slicepool

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
)

// A slice larger than the documented ones is planned with a warning at the
// accelerator, a documented one without.
func TestPlanWarnsOfUndocumentedSizes(t *testing.T) {
	for name, want := range map[string]int{"v5p-12288": 0, "v5p-17920": 1} {
		m := model{Accelerator: types.StringValue(name), Cluster: types.StringValue("projects/p/locations/us-east5-a/clusters/c")}
		var diags diag.Diagnostics
		(&Resource{data: &conn.Data{}}).derive(m, &m, &diags)
		if diags.HasError() || diags.WarningsCount() != want {
			t.Fatalf("%s: %v; want %d warnings", name, diags, want)
		}
		for _, d := range diags {
			at, ok := d.(diag.DiagnosticWithPath)
			if !ok || !at.Path().Equal(path.Root("accelerator")) || !strings.Contains(d.Detail(), "6144") {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
}

// An interrupt is no other resource's doing, and a timeout is.
func TestNoTurn(t *testing.T) {
	if got := noTurn("Another resource holds x", fmt.Errorf("waiting: %w", context.Canceled)); strings.Contains(got, "Another resource") || strings.Contains(got, "context canceled") {
		t.Errorf("after an interrupt: %q", got)
	}
	if got := noTurn("Another resource holds x", context.DeadlineExceeded); !strings.HasPrefix(got, "Another resource holds x, and was waited for") {
		t.Errorf("after a timeout: %q", got)
	}
}
