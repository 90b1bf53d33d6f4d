package conn

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Ctrl-C is told as an interrupt that says how to go on, a timeout as what it
// is; nobody has to read "context canceled".
func TestInterruptsAreToldInWords(t *testing.T) {
	waiting := func(cause error) error {
		return fmt.Errorf("above: %w", &kube.Error{Verb: "waiting for", Kind: "Namespace", Key: "research", Cluster: "c", Err: cause})
	}
	tests := map[string]struct {
		add  func(*diag.Diagnostics)
		want string
		not  string
	}{
		"delete interrupted": {func(d *diag.Diagnostics) { AddDeleteError(d, "namespace research", waiting(context.Canceled)) },
			"Interrupted while deleting namespace research: The deletion goes on in Kubernetes", "context"},
		"delete timed out": {func(d *diag.Diagnostics) { AddDeleteError(d, "namespace research", waiting(context.DeadlineExceeded)) },
			"Cannot delete namespace research: above: waiting for Namespace research on cluster c: context deadline exceeded", "nterrupted"},
		"write interrupted": {func(d *diag.Diagnostics) { AddError(d, "Cannot apply queue q", waiting(context.Canceled)) },
			"Cannot apply queue q: Interrupted.", "context"},
		"write failed": {func(d *diag.Diagnostics) { AddError(d, "Cannot apply queue q", waiting(context.DeadlineExceeded)) },
			"Cannot apply queue q: above: waiting for", "nterrupted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var d diag.Diagnostics
			tt.add(&d)
			if len(d) != 1 {
				t.Fatalf("got %v", d)
			}
			text := d[0].Summary() + ": " + d[0].Detail()
			if !strings.Contains(text, tt.want) || strings.Contains(text, tt.not) {
				t.Errorf("got %q, want %q and no %q", text, tt.want, tt.not)
			}
		})
	}
}
