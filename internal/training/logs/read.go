package logs

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// atOnce is how many logs are being opened at a time. Those that are open are
// streams of few connections, and not bounded.
const atOnce = 32

// reader is one Read or Follow.
type reader struct {
	Options
	source Source
	emit   func(Line) error // one at a time
	// following: a line that a running program has not finished comes later.
	following bool

	mu       sync.Mutex
	programs map[programKey]*program
	pods     map[types.UID]*podView
	slots    chan struct{}
}

type programKey struct {
	pod       types.UID
	container string
}

func newReader(s Source, o Options, emit func(Line) error) *reader {
	var mu sync.Mutex
	one := func(l Line) error {
		mu.Lock()
		defer mu.Unlock()
		return emit(l)
	}
	return &reader{Options: o, source: s, emit: one, programs: map[programKey]*program{}, pods: map[types.UID]*podView{}, slots: make(chan struct{}, atOnce)}
}

// find adds the programs of a pod that are wanted, and returns the new ones.
func (r *reader) find(p *corev1.Pod) []*program {
	line := of(p)
	if !r.wants(line) {
		return nil
	}
	names := make([]string, 0, len(p.Spec.Containers))
	for i := range p.Spec.Containers {
		names = append(names, p.Spec.Containers[i].Name)
	}
	if r.Container != "" {
		for i := range p.Spec.InitContainers {
			names = append(names, p.Spec.InitContainers[i].Name)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*program
	for _, name := range names {
		key := programKey{p.UID, name}
		if r.Container != "" && r.Container != name || r.programs[key] != nil {
			continue
		}
		g := &program{line: line, cursor: cursor{from: r.Since}, tail: r.Tail}
		g.line.Container = name
		r.programs[key] = g
		found = append(found, g)
	}
	return found
}

// read merges the logs that there are by time.
func (r *reader) read(ctx context.Context) (int, error) {
	pods, err := r.source.Pods(ctx)
	if err != nil {
		return 0, err
	}
	latest := newest(pods)
	var streams []*stream
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	for i := range pods {
		p := &pods[i]
		replaced := latest[hostOf(p)] != p.UID
		for _, g := range r.find(p) {
			st, runs := stateOf(p, g.line.Container)
			g.runs = runs // what it ran before is told by Previous alone
			previous := r.Previous && !replaced
			if st == waiting && runs == 0 || previous && runs == 0 {
				continue
			}
			s := &stream{program: g, ended: st == ended, lines: make(chan Line, 64)}
			streams = append(streams, s)
			tasks.Go(func() {
				defer close(s.lines)
				s.err = r.feed(ctx, s, previous)
			})
		}
	}
	if len(streams) == 0 && !r.following {
		if why := r.lacking(pods); why != "" {
			return 0, &NoPodsError{Why: why}
		}
	}
	return len(streams), r.merge(ctx, streams)
}

// lacking says what pods that are there do not have: the container, or a run
// before the present one.
func (r *reader) lacking(pods []corev1.Pod) string {
	there, began := map[string]bool{}, false
	for i := range pods {
		p := &pods[i]
		if !r.wants(of(p)) {
			continue
		}
		for _, containers := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for j := range containers {
				name := containers[j].Name
				there[name] = true
				st, _ := stateOf(p, name)
				began = began || st != waiting && (r.Container == "" || r.Container == name)
			}
		}
	}
	switch names := slices.Sorted(maps.Keys(there)); {
	case len(names) == 0:
		return ""
	case r.Container != "" && !there[r.Container]:
		return fmt.Sprintf("its pods have no container %s; they have %s", r.Container, strings.Join(names, ", "))
	case r.Previous && began:
		return "nothing ran before what runs or ran last, as far as its pods tell: no container has restarted, and no earlier pod is there. Leave --previous out"
	}
	return ""
}

// newest are the latest pods of each host.
func newest(pods []corev1.Pod) map[Line]types.UID {
	latest := map[Line]*corev1.Pod{}
	for i := range pods {
		p := &pods[i]
		had := latest[hostOf(p)]
		if had == nil || cmp.Or(had.CreationTimestamp.Compare(p.CreationTimestamp.Time), cmp.Compare(had.Name, p.Name)) < 0 {
			latest[hostOf(p)] = p
		}
	}
	uids := map[Line]types.UID{}
	for host, p := range latest {
		uids[host] = p.UID
	}
	return uids
}

// hostOf is which host of the job a pod is, whichever its attempt.
func hostOf(p *corev1.Pod) Line {
	l := of(p)
	l.Pod, l.Attempt = "", 0
	return l
}

// stream is a log while it is merged with others.
type stream struct {
	program *program
	ended   bool
	lines   chan Line
	next    Line
	err     error // once lines is closed
}

// feed reads a program's log into its stream. Where the log was cut off, it
// goes on a few times.
func (r *reader) feed(ctx context.Context, s *stream, previous bool) error {
	emit := func(l Line) error {
		select {
		case s.lines <- l:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for try, pause := 0, firstPause; ; try, pause = try+1, min(2*pause, longestPause) {
		err := r.once(ctx, s.program, s.program.options(false, previous), s.ended || !r.following, emit)
		if errors.Is(err, errCut) {
			return nil
		}
		if err == nil || stopped(err) || ctx.Err() != nil || hindranceOf(err) != passes || try == readTries {
			return err
		}
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// once opens a program's log and reads it to its end; whole as of cursor.scan.
func (r *reader) once(ctx context.Context, g *program, o corev1.PodLogOptions, whole bool, emit func(Line) error) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	stream, err := r.source.Open(ctx, g.line.Pod, o)
	<-r.slots
	if err != nil {
		return err
	}
	defer stream.Close()
	return g.scan(stream, whole, o.TailLines != nil, emit)
}

// merge hands over the lines of all streams, the earliest first.
func (r *reader) merge(ctx context.Context, streams []*stream) error {
	var q queue
	advance := func(s *stream) error {
		l, more := <-s.lines
		if more {
			s.next = l
			heap.Push(&q, s)
			return nil
		}
		return r.judge(s)
	}
	for _, s := range streams {
		if err := advance(s); err != nil {
			return err
		}
	}
	for len(q) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := heap.Pop(&q).(*stream)
		if err := r.emit(s.next); err != nil {
			return err
		}
		if err := advance(s); err != nil {
			return err
		}
	}
	return nil
}

// judge says what the end of a stream means for all: a log that is not there is
// none's fault, one that nobody may read is the end.
func (r *reader) judge(s *stream) error {
	switch {
	case s.err == nil:
		return nil
	case stopped(s.err), hindranceOf(s.err) == refused:
		return s.err
	case hindranceOf(s.err) == absent:
		return nil
	}
	r.note("%s (pod %s): the log cannot be read, or not to its end: %v", s.program.line.Name(), s.program.line.Pod, s.err)
	return nil
}

// queue is the streams by their next lines.
type queue []*stream

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*stream)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = slices.Delete(*q, len(*q)-1, len(*q))
	return last
}
func (q queue) Less(i, j int) bool {
	a, b := q[i].next, q[j].next
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container)) < 0
}

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	readTries    = 4
)

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
