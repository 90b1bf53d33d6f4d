package gke

import (
	"context"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// poller looks at the operations of one location, however many there are, with
// one list per look. It looks while somebody waits for an operation to end, or
// for a slot to start one.
type poller struct {
	c      *Client
	parent string

	// mu guards the poller and its location's schedulers: they act on each other.
	mu         sync.Mutex
	schedulers map[string]*scheduler // by cluster name
	pending    map[string]*pending   // by operation name
	pace       pace
	loop       bool          // somebody runs it
	changed    chan struct{} // the time of the next look may be another; capacity 1
}

// pending is an operation that somebody waits for.
type pending struct {
	t       target
	ctx     context.Context // of the first who waits, for what is logged
	kind    containerpb.Operation_Type
	since   time.Time
	waiting []chan outcome
	missing int // looks in a row that did not show it
	said    string
	told    time.Time
}

type outcome struct {
	op  *containerpb.Operation
	err error
}

func (c *Client) pollerOf(parent string) *poller {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pollers[parent]
	if !ok {
		p = &poller{c: c, parent: parent, schedulers: map[string]*scheduler{}, pending: map[string]*pending{},
			pace: newPace(c.cfg.PollInterval), changed: make(chan struct{}, 1)}
		c.pollers[parent] = p
	}
	return p
}

// add waits for an operation; its end comes through the channel.
func (p *poller) add(ctx context.Context, op *containerpb.Operation, t target) chan outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.pending[op.GetName()]
	if o == nil {
		o = &pending{t: t, ctx: ctx, kind: op.GetOperationType(), since: time.Now()}
		p.pending[op.GetName()] = o
	}
	ch := make(chan outcome, 1)
	o.waiting = append(o.waiting, ch)
	p.nudge()
	return ch
}

func (p *poller) drop(name string, ch chan outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.pending[name]; o != nil {
		o.waiting = slices.DeleteFunc(o.waiting, func(w chan outcome) bool { return w == ch })
		if len(o.waiting) == 0 {
			delete(p.pending, name)
			p.rethink()
		}
	}
}

// awaited tells whether somebody waits for an operation. The caller holds mu.
func (p *poller) awaited(name string) bool { return p.pending[name] != nil }

// end tells whoever waits. The caller holds mu.
func (p *poller) end(name string, r outcome) {
	for _, ch := range p.pending[name].waiting {
		ch <- r
	}
	delete(p.pending, name)
}

// nudge starts the loop, or makes it rethink. The caller holds mu.
func (p *poller) nudge() {
	if !p.loop {
		p.loop = true
		p.pace.begin(time.Now())
		go p.run()
		return
	}
	p.rethink()
}

// rethink makes the loop, if there is one, find out anew when to look.
func (p *poller) rethink() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// patience is how many looks in a row may fail (each of them tried `attempts`
// times) before the waiters are told: an operation goes on without us.
const patience = 6

// run looks until nobody waits. Each look has its own deadline; waiters leave
// by themselves.
func (p *poller) run() {
	failures := 0
	for {
		at, more := p.when()
		if !more {
			return
		}
		if d := time.Until(at); d > 0 {
			timer := time.NewTimer(d)
			select {
			case <-timer.C:
			case <-p.changed:
				timer.Stop()
				continue
			}
		}
		began := time.Now()
		p.mu.Lock()
		p.pace.asked = began
		names := make([]string, 0, len(p.pending))
		for n := range p.pending {
			names = append(names, n)
		}
		p.mu.Unlock()
		ops, err := p.c.ListOperations(context.Background(), p.parent)
		if err != nil {
			failures++
			if c := cause(err); failures >= patience || c != Unreachable && c != Unavailable {
				p.fail(names, err)
			}
			continue
		}
		failures = 0
		for _, n := range p.look(ops, names, began) {
			p.ask(n)
		}
	}
}

// when is the time of the next look; false when nobody waits for any.
func (p *poller) when() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.changed: // it is taken into account now
	default:
	}
	hungry, doubtful := false, false
	for _, s := range p.schedulers {
		hungry = hungry || s.hungry()
		doubtful = doubtful || s.hungry() && !s.doubt.IsZero()
	}
	if len(p.pending) == 0 && !hungry {
		p.loop = false
		for _, s := range p.schedulers { // nobody will see these end
			s.foreign = nil
		}
		return time.Time{}, false
	}
	all := make([]age, 0, len(p.pending))
	for _, o := range p.pending {
		all = append(all, age{o.kind, o.since})
	}
	return p.pace.next(all, hungry, doubtful), true
}

// look takes in a list. It returns the operations that must be asked for by
// name: twice the list did not show them, so they are too old for it.
func (p *poller) look(ops []*containerpb.Operation, names []string, began time.Time) (missing []string) {
	now := time.Now()
	var lines []line
	var told []func()
	p.mu.Lock()
	for _, s := range p.schedulers {
		s.look(ops, began)
		lines = append(lines, s.lines(now)...)
	}
	found := make(map[string]*containerpb.Operation, len(names))
	for _, op := range ops {
		if p.awaited(op.GetName()) {
			found[op.GetName()] = op
		}
	}
	for _, n := range names {
		o := p.pending[n]
		if o == nil { // left meanwhile
			continue
		}
		op := found[n]
		if op == nil {
			if o.missing++; o.missing > 1 {
				missing = append(missing, n)
			}
			continue
		}
		o.missing, o.kind = 0, op.GetOperationType()
		if op.GetStatus() == containerpb.Operation_DONE {
			p.pace.learn(op, now.Sub(o.since))
			p.end(n, outcome{op: op})
			continue
		}
		if text := says(op); text != "" && text != o.said && now.Sub(o.told) >= quiet*p.c.cfg.PollInterval {
			o.said, o.told = text, now
			told = append(told, func() {
				p.c.log(o.ctx, "operation under way", map[string]any{"operation": n, "call": o.t.verb, "object": o.t.object,
					"status": op.GetStatus().String(), "says": text, "for": now.Sub(o.since).Round(time.Second).String()})
			})
		}
	}
	p.mu.Unlock()
	for _, f := range told {
		f()
	}
	for _, l := range lines {
		p.c.tell(l.ctx, l.Progress)
	}
	return missing
}

// ask reads one operation by its name.
func (p *poller) ask(name string) {
	op, err := p.c.getOperation(context.Background(), p.parent+"/operations/"+name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awaited(name) && (err != nil || op.GetStatus() == containerpb.Operation_DONE) {
		p.end(name, outcome{op, err})
	}
}

// fail tells all that looking does not work.
func (p *poller) fail(names []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range names {
		if p.awaited(n) {
			p.end(n, outcome{err: err})
		}
	}
	for _, s := range p.schedulers {
		s.blind()
	}
}
