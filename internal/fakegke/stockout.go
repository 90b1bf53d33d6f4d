package fakegke

import (
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Stockout is capacity that a zone does not have, or another Trouble by which
// instances do not come up. A node pool that needs it is created, tries for 35
// minutes (other troubles show sooner) and ends in ERROR.
type Stockout struct {
	Project string  // "" for every project
	Zone    string  // "" for every zone
	Pool    string  // name of a node pool; "" for every pool
	TPUs    bool    // only node pools of TPU machines
	Trouble Trouble // "" is OutOfStock
	// Room is how many of these node pools there is capacity for in the zone,
	// those that are up included. One that is deleted makes room.
	Room int
	// Running is how many of the instances come up all the same. A multi-host
	// slice is all or nothing and ignores it.
	Running int
}

// SetStockout replaces what is out of stock. None ends all stockouts; an
// operation that is still trying then succeeds when its time is up.
func (s *Server) SetStockout(stockouts ...Stockout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stockouts = slices.Clone(stockouts)
}

// stockout finds what keeps a pool that is being created from coming up, and
// where. One that is let through has its place until its creation ends.
func (s *Server) stockout(path string, p *containerpb.NodePool) (Stockout, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.stockouts {
		for _, zone := range p.Locations {
			if o.hits(path, p, zone) && s.taken(o, path, zone) >= o.Room {
				o.Zone = zone
				return o, true
			}
		}
	}
	s.placed[path] = true
	return Stockout{}, false
}

// taken counts the pools other than path that have their capacity in a zone.
// The caller holds mu.
func (s *Server) taken(o Stockout, path, zone string) int {
	n := 0
	for other, p := range s.st.pools {
		if other != path && o.hits(other, p, zone) && (hasNodes(p) || s.placed[other]) {
			n++
		}
	}
	return n
}

// hits tells whether a pool needs, in a zone, what the stockout is about.
func (o Stockout) hits(path string, p *containerpb.NodePool, zone string) bool {
	switch {
	case o.Project != "" && o.Project != projectOf(path), o.Pool != "" && o.Pool != p.Name,
		o.Zone != "" && o.Zone != zone, !slices.Contains(p.Locations, zone):
		return false
	}
	m, _ := machineOf(p.Config.GetMachineType())
	return !o.TPUs || m.tpu != nil
}
