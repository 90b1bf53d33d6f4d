package fakegke

import (
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
)

// Quota is how many chips a project may have in a region, on demand or spot;
// reservations do not count.
type Quota struct {
	Region string // "" for every region
	Metric string // "" is Compute Engine's own, TPUS_PER_TPU_FAMILY
	Family string // beginning of the machine types that count: "ct5lp"; "" for all TPUs
	Limit  int
}

// Reservation is machines that a node pool may name.
type Reservation struct {
	Project string // "" for every project
	Name    string
	Zone    string
	Machine string // machine type
	Count   int
}

// scarcity is what there is not enough of.
type scarcity struct {
	quotas       []Quota
	reservations []Reservation
}

// SetQuotas replaces the quotas. Without any there is enough of everything.
func (s *Server) SetQuotas(q ...Quota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quotas = slices.Clone(q)
}

// SetReservations replaces the reservations there are. Without any, every
// reservation that a node pool names is there and large enough.
func (s *Server) SetReservations(r ...Reservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reservations = slices.Clone(r)
}

// checkScarcity refuses a new node pool for which a quota or a reservation is
// too small. It is in next already. The caller holds mu.
func (s *Server) checkScarcity(next state, path string) error {
	p := next.pools[path]
	if c := p.Config.ReservationAffinity; c.GetConsumeReservationType() == specificReservation {
		return s.checkReservation(next, path, c.Values[0])
	}
	return s.checkQuotas(next, path)
}

// checkQuotas speaks as GKE does, which lists several quotas that are too
// small by number.
func (s *Server) checkQuotas(next state, path string) error {
	var short []string
	for _, q := range s.quotas {
		asked := q.chips(path, next.pools[path])
		used := 0
		for other, p := range next.pools {
			if other != path && projectOf(other) == projectOf(path) {
				used += q.chips(other, p)
			}
		}
		if free := max(0, q.Limit-used); asked > free {
			short = append(short, fmt.Sprintf("nsufficient regional quota to satisfy request: resource %q: request requires '%d.0' and is short '%d.0'. project has a quota of '%d.0' with '%d.0' available. "+
				"View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=%s", q.metric(), asked, asked-free, q.Limit, free, projectOf(path)))
		}
	}
	switch len(short) {
	case 0:
		return nil
	case 1:
		return denied("I%s.", short[0])
	}
	var b strings.Builder
	for i, text := range short {
		fmt.Fprintf(&b, "\n\t(%d) i%s", i+1, text)
	}
	return denied("%s.", b.String())
}

func (q Quota) metric() string {
	if q.Metric == "" {
		return "TPUS_PER_TPU_FAMILY"
	}
	return q.Metric
}

// chips of a node pool that count against the quota.
func (q Quota) chips(path string, p *containerpb.NodePool) int {
	m, ok := machineOf(p.Config.GetMachineType())
	if !ok || m.tpu == nil || !strings.HasPrefix(m.name, q.Family) || p.Config.ReservationAffinity.GetConsumeReservationType() == specificReservation {
		return 0
	}
	at, err := parseCluster(clusterOf(path))
	if err != nil || q.Region != "" && at.region() != q.Region {
		return 0
	}
	return int(p.InitialNodeCount) * max(1, len(p.Locations)) * m.chips
}

func (s *Server) checkReservation(next state, path, name string) error {
	if len(s.reservations) == 0 {
		return nil
	}
	p, zone := next.pools[path], next.pools[path].Locations[0]
	i := slices.IndexFunc(s.reservations, func(r Reservation) bool { return r.named(name, projectOf(path)) && r.Zone == zone })
	if i < 0 {
		return apiError(codes.NotFound, fmt.Sprintf("Google Compute Engine: reservation %q not found for node pool %q at zone %q.", name, p.Name, zone))
	}
	r := s.reservations[i]
	if r.Machine != p.Config.MachineType {
		return invalid("Invalid value for field 'resource.reservationAffinity': '{ \"consumeReservationType\": \"SPECIFIC_ALLOCATION\", \"key\": \"compute.googleapis.com/reservation-name\", \"values\": [%q] }'. Specified reservation %q does not match the machine type %s.",
			name, name, p.Config.MachineType)
	}
	free := r.Count
	for other, o := range next.pools {
		if a := o.Config.ReservationAffinity; other != path && a.GetConsumeReservationType() == specificReservation && r.named(a.Values[0], projectOf(other)) && o.Locations[0] == zone {
			free -= int(o.InitialNodeCount)
		}
	}
	if need := int(p.InitialNodeCount); need > free {
		return apiError(codes.ResourceExhausted, fmt.Sprintf("Reservation does not have enough resources for the request: specific reservation %q is insufficient for node pool %q at zone %q: required %d and short of %d VM count of machine type %s.",
			name, p.Name, zone, need, need-max(0, free), p.Config.MachineType))
	}
	return nil
}

// named tells whether a node pool of a project means this reservation: NAME, or
// projects/PROJECT/reservations/NAME, perhaps with a block of it.
func (r Reservation) named(name, project string) bool {
	if rest, ok := strings.CutPrefix(name, "projects/"); ok {
		project, name, ok = strings.Cut(rest, "/reservations/")
		if !ok {
			return false
		}
	}
	name, _, _ = strings.Cut(name, "/")
	return name == r.Name && (r.Project == "" || r.Project == project)
}
