package conn

import (
	"maps"
	"slices"
	"sync"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Shares keeps what one run knows of the quotas that follow slice pools. The
// zero value is ready.
type Shares struct {
	mu      sync.Mutex
	taken   map[string]map[string]int64 // slices by pool and queue
	lowered map[string][]queue.Lowered  // by pool
}

// Take notes how many slices of a pool a queue is planned to hand out, and
// returns what this run has noted of the pool so far: the sum, and its queues.
func (s *Shares) Take(pool, name string, n int64) (total int64, queues []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[string]map[string]int64{}
	}
	if s.taken[pool] == nil {
		s.taken[pool] = map[string]int64{}
	}
	s.taken[pool][name] = n
	for _, n := range s.taken[pool] {
		total += n
	}
	return total, slices.Sorted(maps.Keys(s.taken[pool]))
}

// Lower notes what this run has lowered before a pool went.
func (s *Shares) Lower(pool string, lowered []queue.Lowered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lowered == nil {
		s.lowered = map[string][]queue.Lowered{}
	}
	s.lowered[pool] = append(s.lowered[pool], lowered...)
}

// Lowered returns what was noted, once: to whoever has made the pool again.
func (s *Shares) Lowered(pool string) []queue.Lowered {
	s.mu.Lock()
	defer s.mu.Unlock()
	lowered := s.lowered[pool]
	delete(s.lowered, pool)
	return lowered
}
