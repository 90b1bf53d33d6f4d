package fakegke

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// recorder is a ControlPlanes that writes down what it is asked for, and fails
// on demand.
type recorder struct {
	mu                          sync.Mutex
	log                         []string
	startErr, stopErr, nodesErr error
	port                        int
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Start(_ context.Context, cluster string) (Endpoint, error) {
	r.note("start %s", cluster)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.port++
	return Endpoint{Host: fmt.Sprintf("127.0.0.1:%d", 1000+r.port), CA: []byte("the CA")}, r.startErr
}

func (r *recorder) Stop(_ context.Context, cluster string) error {
	r.note("stop %s", cluster)
	return r.stopErr
}

func (r *recorder) SetNodes(_ context.Context, _, pool string, nodes []*corev1.Node) error {
	r.note("%s has %d nodes", pool, len(nodes))
	return r.nodesErr
}

// calls returns what was asked for since the last time.
func (r *recorder) calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.log)
	r.log = nil
	return out
}
