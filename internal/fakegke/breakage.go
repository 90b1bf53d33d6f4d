package fakegke

import (
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// Break makes a running node pool lose instances, as when spot machines are
// taken back: it is in RUNNING_WITH_ERROR with the given number per zone still
// up, and the nodes of the others are gone. It reports whether there is such a
// pool.
func (s *Server) Break(pool string, running int, t Trouble) (ok bool) {
	return s.turn(pool, func(p *containerpb.NodePool) {
		text := "Google Compute Engine: " + shortText(time.Minute, int(p.InitialNodeCount), running, t.words(instanceOf(pool, p.Locations[0], running), projectOf(pool), p.Locations[0]))
		p.Status, p.StatusMessage, p.Conditions = containerpb.NodePool_RUNNING_WITH_ERROR, text, []*containerpb.StatusCondition{t.condition(text)}
	})
}

// Mend gives a node pool in RUNNING_WITH_ERROR all its instances again, as GKE
// does when there are spot machines once more. It reports whether there is such
// a pool.
func (s *Server) Mend(pool string) (ok bool) {
	return s.turn(pool, func(p *containerpb.NodePool) {
		p.Status, p.StatusMessage, p.Conditions = containerpb.NodePool_RUNNING, "", nil
	})
}

// turn changes a pool that is up, by whatever happens to its machines, and then
// its nodes.
func (s *Server) turn(pool string, change func(*containerpb.NodePool)) (ok bool) {
	var after *containerpb.NodePool
	s.settle(func(next state) {
		p := proto.CloneOf(next.pools[pool])
		if p == nil || len(p.Locations) == 0 || !hasNodes(p) {
			return
		}
		change(p)
		p.Etag = etag(p)
		next.pools[pool], after = p, p
	})
	if after == nil {
		return false
	}
	if err := s.setNodes(s.ctx, pool, after); err != nil {
		s.opts.log.Error("a node pool's machines changed, and not its nodes", "pool", pool, "error", err)
	}
	return true
}
