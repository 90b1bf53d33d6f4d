package gke

import (
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// pace says when to look at operations: never more often than the unit, a
// second by default; then when an operation may have ended, going by how long
// its like took; else ever more seldom the longer all of them run. A slot that
// has come free is noticed soon, and a quiet half hour costs few requests.
type pace struct {
	unit    time.Duration
	asked   time.Time // last look
	began   time.Time // first thought of one since the last quiet time
	typical map[containerpb.Operation_Type]estimate
}

// estimate is how long operations of a kind take: smoothed mean and mean
// deviation, with the weights that TCP uses for round trips (RFC 6298).
type estimate struct{ mean, deviation time.Duration }

// age is an operation under way.
type age struct {
	kind  containerpb.Operation_Type
	since time.Time
}

func newPace(unit time.Duration) pace {
	return pace{unit: unit, typical: map[containerpb.Operation_Type]estimate{}}
}

// begin starts a busy time.
func (p *pace) begin(now time.Time) { p.began = now }

// learn takes in an operation that ended; watched is how long that took as
// seen from here, for when GKE does not say. Failures teach nothing: a refusal
// is quick, a stockout slow.
func (p *pace) learn(op *containerpb.Operation, watched time.Duration) {
	if op.GetError().GetCode() != 0 || op.GetStatusMessage() != "" {
		return
	}
	took := watched
	start, err1 := time.Parse(time.RFC3339Nano, op.GetStartTime())
	end, err2 := time.Parse(time.RFC3339Nano, op.GetEndTime())
	if err1 == nil && err2 == nil && end.After(start) {
		took = end.Sub(start)
	}
	e, known := p.typical[op.GetOperationType()]
	if !known {
		p.typical[op.GetOperationType()] = estimate{took, 0}
		return
	}
	e.deviation += ((took - e.mean).Abs() - e.deviation) / 4
	e.mean += (took - e.mean) / 8
	p.typical[op.GetOperationType()] = e
}

// next is when to look again. hungry says that something waits for a slot,
// doubtful that nothing can start before a look.
func (p *pace) next(all []age, hungry, doubtful bool) time.Time {
	earliest := p.asked.Add(p.unit)
	if doubtful {
		return earliest
	}
	if at := p.began.Add(p.unit); at.After(earliest) {
		earliest = at
	}
	if len(all) == 0 { // others' operations are in the way
		return later(earliest, p.asked.Add(p.slow(p.asked.Sub(p.began))))
	}
	wants := make([]time.Time, len(all))
	for i, a := range all {
		wants[i] = later(earliest, p.want(a, newest(all), hungry))
	}
	slices.SortFunc(wants, time.Time.Compare)
	at := wants[0]
	for _, w := range wants { // those that are due together are seen together
		if w.Sub(wants[0]) <= p.unit/4 {
			at = w
		}
	}
	return at
}

// want is when to look for the end of one operation.
func (p *pace) want(a age, newest time.Time, hungry bool) time.Time {
	asked := later(p.asked, p.began)
	e, known := p.typical[a.kind]
	if !known {
		gap := p.unit
		if !hungry {
			gap = p.slow(asked.Sub(a.since))
		}
		if newest.After(asked) { // in step with what started last: that ends last
			return newest.Add(gap + p.unit/50)
		}
		return asked.Add(gap)
	}
	const most = 5 // units between two looks at what is too young to have ended
	due := a.since.Add(e.mean + 2*e.deviation + p.unit/50)
	if e.deviation < p.unit/4 && due.After(asked) {
		if due.Sub(asked) <= (most+1)*p.unit {
			return due
		}
		return asked.Add(most * p.unit)
	}
	if young := a.since.Add(e.mean * 7 / 10); young.After(asked) {
		return sooner(young, asked.Add(most*p.unit))
	}
	if hungry {
		return asked.Add(p.unit)
	}
	return asked.Add(min(most*p.unit, p.slow(asked.Sub(a.since))))
}

// slow is the gap between looks at what has been going on for that long.
func (p *pace) slow(age time.Duration) time.Duration { return slow(p.unit, age) }

// slow is a twentieth of age, within one and ten units: what ends is noticed
// when that makes it 5% longer.
func slow(unit, age time.Duration) time.Duration {
	return min(max(age/20, unit), 10*unit)
}

// slow is that gap for what no operation shows, such as the status of a node
// pool that somebody else makes.
func (c *Client) slow(age time.Duration) time.Duration { return slow(c.cfg.PollInterval, age) }

func newest(all []age) (at time.Time) {
	for _, a := range all {
		at = later(at, a.since)
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
