package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// quiet is how many poll intervals lie between two lines about the same work.
const quiet = 10

// Progress is how far the operations of one kind on one slice pool, or one on
// a cluster, have come.
type Progress struct {
	Cluster ClusterName
	Pool    string // slice pool, or "" for the cluster itself
	Verb    string // "creating", "deleting", ...
	// Node pools by what has become of them; a cluster counts as one.
	Done, Failed, Running, Waiting int
	Elapsed                        time.Duration
	// Note is what GKE says about an operation that has trouble, or how far the
	// latest is.
	Note string
}

// doneWord says what an operation has reached.
var doneWord = map[string]string{"creating": "ready", "deleting": "deleted", "updating": "updated", "resizing": "resized", "labelling": "labelled"}

// String is one line for people: `slice pool train: 12 of 50 slices ready, 5
// in progress, 33 waiting, 3m10s`.
func (p Progress) String() string {
	word := doneWord[p.Verb]
	if word == "" {
		word = "done"
	}
	var b strings.Builder
	if p.Pool == "" {
		fmt.Fprintf(&b, "cluster %s: ", p.Cluster.Cluster)
		switch {
		case p.Done > 0:
			b.WriteString(word)
		case p.Failed > 0:
			b.WriteString(p.Verb + " failed")
		case p.Running > 0:
			b.WriteString(p.Verb)
		default:
			b.WriteString(p.Verb + " waits for other operations")
		}
	} else {
		all, slices := p.Done+p.Failed+p.Running+p.Waiting, "slices"
		if all == 1 {
			slices = "slice"
		}
		fmt.Fprintf(&b, "slice pool %s: %d of %d %s %s", p.Pool, p.Done, all, slices, word)
		for _, n := range []struct {
			count int
			word  string
		}{{p.Failed, "failed"}, {p.Running, "in progress"}, {p.Waiting, "waiting"}} {
			if n.count > 0 {
				fmt.Fprintf(&b, ", %d %s", n.count, n.word)
			}
		}
	}
	b.WriteString(", " + p.Elapsed.Round(time.Second).String())
	if p.Note != "" {
		b.WriteString("; GKE: " + p.Note)
	}
	return b.String()
}

// work names what is reported together.
type work struct{ pool, verb string }

// progress counts one work while any of it is unfinished.
type progress struct {
	ctx     context.Context // of whoever began it: what a hook logs with
	since   time.Time
	told    time.Time // last line; zero is never
	waiting map[*waiter]bool
	running map[*waiter]string // with what GKE says
	ended   map[string]bool    // node pools; true is success
}

func workOf(w *waiter) work {
	verb, _, _ := strings.Cut(w.t.verb, " ")
	return work{w.owner, verb}
}

// begin counts w in.
func (s *scheduler) begin(ctx context.Context, w *waiter) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	g := s.works[workOf(w)]
	if g == nil {
		g = &progress{ctx: ctx, since: time.Now(), waiting: map[*waiter]bool{}, running: map[*waiter]string{}, ended: map[string]bool{}}
		s.works[workOf(w)] = g
	}
	delete(g.ended, w.pool) // tried once more
	g.waiting[w] = true
}

// underway counts w as running. The caller holds the lock.
func (s *scheduler) underway(w *waiter) {
	g := s.works[workOf(w)]
	delete(g.waiting, w)
	g.running[w] = ""
}

// note records what GKE says about w's operation. The caller holds the lock.
func (s *scheduler) note(w *waiter, text string) {
	if g := s.works[workOf(w)]; g != nil {
		if _, running := g.running[w]; running {
			g.running[w] = text
		}
	}
}

// finish counts w out. The end of a work of which something was told is told.
func (s *scheduler) finish(ctx context.Context, w *waiter, err error) {
	s.p.mu.Lock()
	k := workOf(w)
	g := s.works[k]
	delete(g.waiting, w)
	delete(g.running, w)
	g.ended[w.pool] = err == nil
	last := len(g.waiting)+len(g.running) == 0
	end := s.count(k, g)
	if last {
		delete(s.works, k)
	}
	s.p.mu.Unlock()
	if last && !g.told.IsZero() && ctx.Err() == nil {
		s.p.c.tell(ctx, end)
	}
}

// count adds a work up. The caller holds the lock.
func (s *scheduler) count(k work, g *progress) Progress {
	p := Progress{Cluster: s.cluster, Pool: k.pool, Verb: k.verb, Running: len(g.running), Waiting: len(g.waiting), Elapsed: time.Since(g.since)}
	for _, ok := range g.ended {
		if ok {
			p.Done++
		} else {
			p.Failed++
		}
	}
	for _, note := range g.running {
		p.Note = max(p.Note, note) // any one, but the same while nothing changes
	}
	return p
}

// lines are what it is time to tell. The caller holds the lock.
func (s *scheduler) lines(now time.Time) (out []line) {
	for k, g := range s.works {
		since := g.told
		if since.IsZero() {
			since = g.since
		}
		if now.Sub(since) >= quiet*s.p.c.cfg.PollInterval {
			g.told = now
			out = append(out, line{g.ctx, s.count(k, g)})
		}
	}
	return out
}

type line struct {
	ctx context.Context
	Progress
}

func (c *Client) tell(ctx context.Context, p Progress) {
	if c.cfg.Progress != nil {
		c.cfg.Progress(ctx, p)
	}
}

// says is what GKE tells of an operation under way: trouble first, then the
// stage and its figures.
func says(op *containerpb.Operation) string {
	for _, c := range append(op.GetNodepoolConditions(), op.GetClusterConditions()...) {
		if c.GetMessage() != "" {
			return c.GetMessage()
		}
	}
	if op.GetDetail() != "" {
		return op.GetDetail()
	}
	var parts []string
	for _, m := range op.GetProgress().GetMetrics() {
		var v string
		switch x := m.GetValue().(type) {
		case *containerpb.OperationProgress_Metric_IntValue:
			v = fmt.Sprint(x.IntValue)
		case *containerpb.OperationProgress_Metric_DoubleValue:
			v = fmt.Sprint(x.DoubleValue)
		case *containerpb.OperationProgress_Metric_StringValue:
			v = x.StringValue
		}
		parts = append(parts, strings.ToLower(strings.ReplaceAll(m.GetName(), "_", " "))+" "+v)
	}
	if stage := op.GetProgress().GetName(); stage != "" && len(parts) > 0 {
		return stage + ": " + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}
