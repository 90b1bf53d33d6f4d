package slicepool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// The timeouts of a small pool. GKE looks for capacity for about 35 minutes,
// and on_stockout = "wait" asks again after that.
const (
	applyTimeout  = 90 * time.Minute
	deleteTimeout = 60 * time.Minute
)

// defaultTimeout scales with the pool: slices are made a few at a time (GKE's
// operation quota), and each takes longer the more hosts it has.
func (m *model) defaultTimeout(base time.Duration) time.Duration {
	slices, hosts := m.SliceCount.ValueInt64(), m.HostsPerSlice.ValueInt64()
	return base + time.Duration(slices)*time.Minute + time.Duration(slices*hosts/16)*time.Minute
}

// operationsKey is where private state keeps the operations that an interrupt
// left running: a JSON object, node pool to operation.
const operationsKey = "operations"

// private is what requests and responses give access to.
type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func remember(ctx context.Context, p private, operations map[string]string) diag.Diagnostics {
	data, err := json.Marshal(operations)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Internal error", "writing the names of operations: "+err.Error())}
	}
	return p.SetKey(ctx, operationsKey, data)
}

// recall reads what remember wrote. Whatever cannot be read is no loss: the
// node pools' own status serves too.
func recall(ctx context.Context, p private) (operations map[string]string, diags diag.Diagnostics) {
	data, diags := p.GetKey(ctx, operationsKey)
	if len(data) > 0 {
		_ = json.Unmarshal(data, &operations)
	}
	return operations, diags
}
