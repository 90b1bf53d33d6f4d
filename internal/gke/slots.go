package gke

import (
	"regexp"
	"strconv"
	"time"
)

// probes is how many requests are on their way at once while nobody has said
// how many operations the cluster may have: no more can be refused before
// GKE's quota is known. It is also the quota of GKE's published messages, so
// that a cluster with that one starts full.
const probes = 5

// slots knows how many more operations GKE would take on a cluster. GKE
// publishes no number. An operation that it accepts proves that the quota is
// not reached, so more are tried until it refuses one. Its refusal usually
// names the quota; without a number, what was in flight then is the estimate,
// and a run of successes tries one more: rarely, when that was refused too.
//
// Nothing here waits or locks: that is the scheduler's.
type slots struct {
	most int // the user's upper bound; 0 is none

	bound int  // operations that GKE takes in all, others' included; 0 is not known yet
	named bool // bound is in GKE's own words

	sending        int               // requests on their way
	sendingCluster bool              // one of them is for the cluster itself
	running        map[string]held   // operations accepted and not seen to end, by name
	foreign        map[string]string // others' operations, by name with their node pool
	ignored        map[string]string // those of them that kept nothing from starting

	// Since doubt, GKE holds something that is not known here: nothing starts
	// until a list of its operations that was asked for later. Zero is no doubt.
	doubt time.Time
	// strikes counts refusals that such a list did not explain. With any, one
	// request goes ahead of the others.
	strikes   int
	successes int // ends since bound was last changed
	refusals  int // of estimates, for the pace of trying one more
}

// held is an operation that this process started. It keeps its slot until GKE
// has ended it, also when nobody waits for it any more.
type held struct {
	accepted time.Time
	cluster  bool // on the cluster itself
}

func newSlots(most int) slots {
	return slots{most: most, running: map[string]held{}}
}

func (s *slots) used() int { return s.sending + len(s.running) }

// room is how many operations on node pools may start now.
func (s *slots) room() int {
	free := probes - s.sending
	if s.bound > 0 {
		free = s.bound - s.used() - len(s.foreign)
	}
	if s.most > 0 {
		free = min(free, s.most-s.used())
	}
	if s.strikes > 0 {
		free = min(free, 1-s.sending)
	}
	return free
}

// exclusive tells whether an operation on the cluster itself is under way,
// ours or another's: GKE takes no other besides.
func (s *slots) exclusive() bool {
	if s.sendingCluster {
		return true
	}
	for _, h := range s.running {
		if h.cluster {
			return true
		}
	}
	for _, pool := range s.foreign {
		if pool == "" {
			return true
		}
	}
	return false
}

// busy tells whether another's operation is under way on a node pool.
func (s *slots) busy(pool string) bool {
	for _, p := range s.foreign {
		if p == pool {
			return true
		}
	}
	return false
}

// sent takes a slot for a request.
func (s *slots) sent(cluster bool) {
	s.sending++
	s.sendingCluster = s.sendingCluster || cluster
}

// unsent gives it back.
func (s *slots) unsent(cluster bool) {
	s.sending--
	if cluster {
		s.sendingCluster = false
	}
}

// accepted turns a request into a running operation.
func (s *slots) accepted(name string, cluster bool, now time.Time) {
	s.unsent(cluster)
	s.running[name] = held{accepted: now, cluster: cluster}
	delete(s.foreign, name) // a list may have been quicker than the reply
	s.strikes = 0
	if now := len(s.running) + len(s.foreign); s.bound > 0 && !s.named && now > s.bound {
		s.bound = now // more than was thought, as it shows
	}
}

// ended frees the slot of an operation. It may be told more than once.
func (s *slots) ended(name string) {
	if _, ok := s.running[name]; !ok {
		return
	}
	delete(s.running, name)
	if s.bound == 0 || s.named {
		return
	}
	// 1, 4, 16, ... rounds: a thousand operations try it four times.
	if s.successes++; s.successes >= s.bound<<(2*min(s.refusals-1, 6)) {
		s.bound, s.successes = s.bound+1, 0
	}
}

// tooMany takes in a refusal for the quota; quota is 0 if it names none.
func (s *slots) tooMany(quota int, now time.Time) {
	if quota > 0 {
		s.bound, s.named = quota, true
	} else if !s.named && s.doubt.IsZero() { // several on their way are refused together: that counts once
		inFlight := len(s.running) + len(s.foreign)
		if s.bound == 0 || inFlight < s.bound {
			s.bound = max(1, inFlight)
		} else {
			s.bound = max(1, s.bound/2)
		}
		s.refusals, s.successes = s.refusals+1, 0
	}
	s.refused(now)
}

// refused takes in that GKE did not take a request for what else it is doing.
func (s *slots) refused(now time.Time) {
	if s.doubt.IsZero() {
		s.strikes++
	}
	s.doubt, s.ignored = now, nil
}

// saw takes in the cluster's operations that a list, asked for at began, shows
// as unfinished, by name with their node pool ("" is the cluster itself), and
// which operations somebody waits for. Those are ended by whoever waits.
func (s *slots) saw(unfinished map[string]string, awaited func(string) bool, began time.Time) {
	s.foreign = map[string]string{}
	for name, pool := range unfinished {
		_, ours := s.running[name]
		if _, ignored := s.ignored[name]; !ours && !ignored {
			s.foreign[name] = pool
		}
	}
	for name, h := range s.running {
		if _, goesOn := unfinished[name]; !goesOn && !awaited(name) && !began.Before(h.accepted) {
			s.ended(name)
		}
	}
	if s.doubt.IsZero() || began.Before(s.doubt) {
		return
	}
	s.doubt = time.Time{}
	inFlight := s.used() + len(s.foreign)
	if s.bound > 0 && !s.named && s.strikes > 0 {
		s.bound = max(s.bound, inFlight) // others' were not counted at the refusal
	}
	if s.bound > 0 && inFlight >= s.bound || len(s.foreign) > 0 {
		s.strikes = 0 // explained
	}
}

var quotaWords = regexp.MustCompile(`concurrent operations quota (\d+)`)

// namedQuota is the number in `Too many operations: cluster "X" hits the
// concurrent operations quota 5, please try again later.`, or 0.
func namedQuota(message string) int {
	if m := quotaWords.FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}
