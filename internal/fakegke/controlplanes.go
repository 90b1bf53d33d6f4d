package fakegke

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// ControlPlanes makes real API servers for the fake's clusters. nil = nodes
// are kept in memory only. A cluster is named by its path,
// projects/P/locations/L/clusters/C. Methods are called from several
// goroutines, at most one at a time for one cluster's Start and Stop.
type ControlPlanes interface {
	// Start starts or restarts a cluster's API server; it blocks until /readyz.
	Start(ctx context.Context, cluster string) (Endpoint, error)
	// Stop ends it and removes its files.
	Stop(ctx context.Context, cluster string) error
	// SetNodes makes the cluster's nodes of that pool be exactly these; nil removes them.
	SetNodes(ctx context.Context, cluster, pool string, nodes []*corev1.Node) error
}

// Endpoint is where an API server listens and who signed its certificate.
type Endpoint struct {
	Host string // "127.0.0.1:34567"
	CA   []byte // PEM
}
