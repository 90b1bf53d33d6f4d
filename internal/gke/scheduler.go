package gke

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/googleapis/gax-go/v2"
)

// scheduler decides when the operations of one cluster start.
//
//   - As many run at once as GKE takes; see slots.
//   - Slice pools take turns, so that two slices are not behind four hundred.
//   - An operation on the cluster itself excludes all others. One that waits
//     stops operations on node pools from starting; after it, those have a round
//     before the next.
//   - What GKE refuses because of operations that are not ours waits until a
//     list shows that they have ended. It is not asked again and again.
type scheduler struct {
	p *poller // its location's; its lock guards all of this
	slots
	cluster ClusterName

	owners  []string // those with something in queues; the first is next
	queues  map[string][]*waiter
	whole   []*waiter // for operations on the cluster itself
	turn    int       // operations on node pools that start before the next of whole
	blocked int       // lists in a row that showed only others' operations

	until time.Time // nothing is sent before: GKE asked for it, or has refused what should have been fine
	pace  gax.Backoff
	alarm *time.Timer
	works map[work]*progress
	ops   map[string]*waiter // operations that somebody of ours waits for
}

// waiter is one operation that wants to start.
type waiter struct {
	t     target
	owner string
	pool  string // node pool, or "" for the cluster itself
	ready chan struct{}
}

func newWaiter(t target) *waiter {
	w := &waiter{t: t}
	if _, pool, ok := strings.Cut(t.object, "/nodePools/"); ok {
		w.pool, w.owner = pool, ownerOf(pool)
	}
	return w
}

// ownerOf is the slice pool that a node pool belongs to by its name (NAME-3 is
// slice 3 of NAME), or the node pool itself.
func ownerOf(pool string) string {
	if i := strings.LastIndexByte(pool, '-'); i > 0 && i+1 < len(pool) && strings.Trim(pool[i+1:], "0123456789") == "" {
		return pool[:i]
	}
	return pool
}

func (c *Client) schedulerOf(cluster ClusterName) *scheduler {
	p := c.pollerOf(cluster.Parent())
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.schedulers[cluster.Cluster]
	if !ok {
		s = &scheduler{p: p, cluster: cluster, slots: newSlots(c.cfg.MaxOperations), pace: c.busy(),
			queues: map[string][]*waiter{}, works: map[work]*progress{}, ops: map[string]*waiter{}}
		p.schedulers[cluster.Cluster] = s
	}
	return s
}

// wait returns when w may send its request, or with ctx's error. first says
// that w was refused and goes before others of its kind.
func (s *scheduler) wait(ctx context.Context, w *waiter, first bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.p.mu.Lock()
	w.ready = make(chan struct{})
	s.enqueue(w, first)
	s.dispatch()
	s.p.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	select {
	case <-w.ready: // both at once: the slot goes to somebody else
		s.unsent(w.pool == "")
	default:
		s.dequeue(w)
	}
	s.dispatch()
	s.p.rethink()
	return ctx.Err()
}

func (s *scheduler) enqueue(w *waiter, first bool) {
	if w.pool == "" {
		s.whole = insert(s.whole, w, first)
		return
	}
	if len(s.queues[w.owner]) == 0 {
		s.owners = append(s.owners, w.owner)
	}
	s.queues[w.owner] = insert(s.queues[w.owner], w, first)
}

func insert(q []*waiter, w *waiter, first bool) []*waiter {
	if first {
		return slices.Insert(q, 0, w)
	}
	return append(q, w)
}

func (s *scheduler) dequeue(w *waiter) {
	is := func(o *waiter) bool { return o == w }
	if w.pool == "" {
		s.whole = slices.DeleteFunc(s.whole, is)
		return
	}
	s.queues[w.owner] = slices.DeleteFunc(s.queues[w.owner], is)
	if len(s.queues[w.owner]) == 0 {
		delete(s.queues, w.owner)
		s.owners = slices.DeleteFunc(s.owners, func(o string) bool { return o == w.owner })
	}
}

// hungry tells whether anything waits to start.
func (s *scheduler) hungry() bool { return len(s.owners)+len(s.whole) > 0 }

// dispatch starts whatever may start.
func (s *scheduler) dispatch() {
	if !s.hungry() {
		return
	}
	if d := time.Until(s.until); d > 0 {
		s.p.nudge()
		if s.alarm != nil {
			s.alarm.Stop()
		}
		s.alarm = time.AfterFunc(d, func() {
			s.p.mu.Lock()
			defer s.p.mu.Unlock()
			s.dispatch()
		})
		return
	}
	for s.doubt.IsZero() {
		w := s.next()
		if w == nil {
			break
		}
		s.dequeue(w)
		s.sent(w.pool == "")
		close(w.ready)
	}
	if s.hungry() {
		s.p.nudge()
	}
}

// next picks the operation that starts next, nil if none may.
func (s *scheduler) next() *waiter {
	if s.exclusive() {
		return nil
	}
	if len(s.owners) == 0 {
		s.turn = 0
	}
	if len(s.whole) > 0 && s.turn == 0 {
		if s.used() > 0 || len(s.foreign) > 0 {
			return nil
		}
		return s.whole[0]
	}
	if s.room() <= 0 {
		return nil
	}
	for range len(s.owners) {
		owner := s.owners[0]
		s.owners = append(s.owners[1:], owner)
		for _, w := range s.queues[owner] {
			if !s.busy(w.pool) {
				s.turn = max(0, s.turn-1)
				return w
			}
		}
	}
	s.turn = 0 // all of them wait for others' operations
	return nil
}

// started records that GKE has accepted w's request.
func (s *scheduler) started(w *waiter, op string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.accepted(op, w.pool == "", time.Now())
	s.pace = s.p.c.busy()
	s.ops[op] = w
	s.underway(w)
	s.dispatch()
}

// over records that an operation has ended.
func (s *scheduler) over(w *waiter, op string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.ended(op)
	delete(s.ops, op)
	s.afterWhole(w)
	s.dispatch()
}

// notStarted records that GKE did not take w's request for good. lost says
// that this is not certain: the answer did not come.
func (s *scheduler) notStarted(w *waiter, lost bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.unsent(w.pool == "")
	if lost {
		s.doubt = time.Now()
	}
	s.afterWhole(w)
	s.dispatch()
}

// afterWhole gives node pools a round after an operation on the cluster.
func (s *scheduler) afterWhole(w *waiter) {
	if w.pool != "" {
		return
	}
	for _, q := range s.queues {
		s.turn += len(q)
	}
	s.turn = min(s.turn, max(s.bound, probes))
}

// putOff records that GKE has no place for w's request now.
func (s *scheduler) putOff(w *waiter, err error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.unsent(w.pool == "")
	now := time.Now()
	if cause(err) == TooManyOps {
		s.tooMany(namedQuota(err.Error()), now)
	} else {
		s.refused(now)
	}
	wait := retryAfter(err)
	if wait > 0 || s.strikes > 1 {
		wait += s.pace.Pause()
	}
	if at := now.Add(wait); at.After(s.until) {
		s.until = at
	}
}

// stubborn is how many lists in a row (half an hour and more) may show nothing but others' operations
// before one request is tried all the same: GKE may not count them.
const stubborn = 200

// look takes in a list of the location's operations.
func (s *scheduler) look(ops []*containerpb.Operation, began time.Time) {
	unfinished := map[string]string{}
	for _, op := range ops {
		if cluster, pool := targetOf(op); cluster == s.cluster.Cluster && op.GetStatus() != containerpb.Operation_DONE {
			unfinished[op.GetName()] = pool
		}
		if w := s.ops[op.GetName()]; w != nil {
			s.note(w, says(op))
		}
	}
	s.saw(unfinished, s.p.awaited, began)
	maps.DeleteFunc(s.ops, func(op string, _ *waiter) bool { _, running := s.running[op]; return !running })
	if s.blocked++; !s.hungry() || s.used() > 0 || len(s.foreign) == 0 {
		s.blocked = 0
	}
	if s.blocked >= stubborn {
		s.blocked, s.ignored, s.foreign, s.strikes = 0, s.foreign, nil, 1
	}
	s.dispatch()
}

// blind goes on without a list, which could not be had: one request at a time,
// whose own answer says more. What nobody can see the end of keeps no slot.
func (s *scheduler) blind() {
	for name := range s.running {
		if !s.p.awaited(name) {
			s.ended(name)
			delete(s.ops, name)
		}
	}
	if !s.doubt.IsZero() {
		s.doubt, s.strikes = time.Time{}, s.strikes+1
		s.until = time.Now().Add(s.pace.Pause())
	}
	s.dispatch()
}

// targetOf reads what an operation is on. Links name the project by its
// number, and a zone as a zone.
func targetOf(op *containerpb.Operation) (cluster, pool string) {
	_, rest, _ := strings.Cut(op.GetTargetLink(), "/clusters/")
	cluster, rest, _ = strings.Cut(rest, "/")
	return cluster, strings.TrimPrefix(rest, "nodePools/")
}
