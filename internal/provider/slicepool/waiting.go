package slicepool

import (
	"time"
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
// left running: a JSON object, node pool to operation. Whatever cannot be read is
// no loss: the node pools' own status serves too.
const operationsKey = "operations"
