package logs

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

const (
	// recheck bounds what a watch that silently died can cost.
	recheck = 30 * time.Second
	// drain is how long programs of a job that has ended may take to say the
	// rest: a host that is lost never does.
	drain = 20 * time.Second
	// settle is how long a pod's status may lag behind the end of its log.
	settle = time.Second
)

// podView is the newest state of a pod, and a sign that it has changed.
type podView struct {
	mu      sync.Mutex
	pod     *corev1.Pod // nil: gone
	changed chan struct{}
}

func (v *podView) set(p *corev1.Pod) {
	v.mu.Lock()
	v.pod = p
	v.mu.Unlock()
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

func (v *podView) get() *corev1.Pod {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pod
}

func (r *reader) follow(ctx context.Context, done <-chan struct{}) error {
	r.following = true
	if _, err := r.read(ctx); err != nil && !kube.Transient(err) {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f := &follower{reader: r, stop: stop, closing: make(chan struct{})}
	err := f.run(ctx, done)
	close(f.closing)
	if err == nil { // the job has ended: hear its programs out
		timer := time.AfterFunc(drain, func() { stop(errDrained) })
		defer timer.Stop()
	} else {
		stop(err)
	}
	f.tasks.Wait()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, errDrained) {
		return cause
	}
	return err
}

// errDrained ends the reading of programs, and is told by Note only.
var errDrained = errors.New("the job has ended, but the log of this host has not")

// follower is a Follow past what was there at its beginning.
type follower struct {
	*reader
	stop    context.CancelCauseFunc
	closing chan struct{} // closed when the job has ended
	tasks   sync.WaitGroup
}

// run looks after pods until done is closed, ctx ends or somebody refuses.
func (f *follower) run(ctx context.Context, done <-chan struct{}) error {
	for pause := firstPause; ; {
		finished := closed(done) // before the list: it then has all pods there were
		pods, err := f.source.Pods(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !kube.Transient(err):
			return err
		case err != nil:
			pause = min(2*pause, longestPause)
		default:
			pause = firstPause
			f.all(ctx, pods)
			if finished {
				return nil
			}
			f.watch(ctx, done)
		}
		ending := done
		if finished {
			ending = nil
		}
		select {
		case <-ending:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// watch sees every change until the watch is over, the job is, or it is time to
// look without it.
func (f *follower) watch(ctx context.Context, done <-chan struct{}) {
	watching, end := context.WithTimeout(ctx, recheck)
	defer end()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.source.Watch(watching, func(p corev1.Pod) { f.see(ctx, &p) })
	}()
	select {
	case <-done:
		end()
		<-over
	case <-over:
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// all takes a list of pods in: what it lacks is gone.
func (f *follower) all(ctx context.Context, pods []corev1.Pod) {
	there := map[string]bool{}
	for i := range pods {
		there[string(pods[i].UID)] = true
		f.see(ctx, &pods[i])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, v := range f.pods {
		if !there[string(uid)] {
			v.set(nil)
		}
	}
}

// see takes in how a pod is, and follows what has begun in it.
func (f *follower) see(ctx context.Context, p *corev1.Pod) {
	f.find(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.pods[p.UID]
	if v == nil {
		v = &podView{changed: make(chan struct{}, 1)}
		f.pods[p.UID] = v
	}
	v.set(p.DeepCopy())
	for key, g := range f.programs {
		if key.pod != p.UID || g.followed {
			continue
		}
		if st, runs := stateOf(p, key.container); st == waiting && runs == 0 {
			continue
		}
		g.followed = true
		f.tasks.Go(func() {
			if err := f.tail(ctx, g, v); err != nil {
				f.stop(err)
			}
		})
	}
}

// tail follows one program to its end. The error is one that ends everything.
func (f *follower) tail(ctx context.Context, g *program, v *podView) error {
	caught := false // up with a run that ended while the container is to run again
	last := false   // reading: nothing is expected any more but a line without its newline
	for pause, tries := firstPause, 0; ctx.Err() == nil; {
		st, runs := stateOf(v.get(), g.line.Container)
		var err error
		before := g.cursor.n
		switch {
		case st == gone:
			return nil
		case runs > g.runs:
			// The end of the run before. What it was before that is lost.
			err = f.once(ctx, g, g.options(false, true), true, f.emit)
			if err == nil || hindranceOf(err) == absent {
				g.runs, caught = runs, false
				continue
			}
		case st == waiting && caught:
			f.await(ctx, v, longestPause)
			if closed(f.closing) {
				return nil
			}
			continue
		case st == waiting:
			err = f.once(ctx, g, g.options(false, false), true, f.emit)
			caught = err == nil || hindranceOf(err) == absent
		case st == ended:
			err = f.once(ctx, g, g.options(false, false), last, f.emit)
			complete := err == nil || errors.Is(err, errCut)
			switch {
			case hindranceOf(err) == absent, last && complete:
				return nil
			case complete:
				// An API server that loses the kubelet ends the log as if it were
				// all: it is, when another look finds no more.
				last = g.cursor.n == before
				continue
			}
		default:
			if err = f.once(ctx, g, g.options(true, false), false, f.emit); err == nil || hindranceOf(err) == absent {
				// Either the program has ended, and its pod will say so, or the
				// stream was cut.
				if f.await(ctx, v, settle) {
					pause, tries = firstPause, 0
					continue
				}
				f.refresh(ctx, v)
			}
		}
		switch {
		case stopped(err):
			return err
		case err != nil && ctx.Err() == nil && hindranceOf(err) == refused:
			return err
		case g.cursor.n > before:
			pause, tries = firstPause, 0
			continue
		case err == nil:
			continue
		}
		if tries++; tries == readTries && ctx.Err() == nil {
			f.note("%s (pod %s): the log cannot be read for now: %v", g.line.Name(), g.line.Pod, err)
		}
		if closed(f.closing) && tries >= readTries {
			return nil
		}
		f.await(ctx, v, pause)
		pause = min(2*pause, longestPause)
	}
	if errors.Is(context.Cause(ctx), errDrained) {
		f.note("%s (pod %s): %v", g.line.Name(), g.line.Pod, errDrained)
	}
	return nil
}

// await returns when the pod has changed, which it tells, the job has ended, or
// the time is over.
func (f *follower) await(ctx context.Context, v *podView, d time.Duration) (changed bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	closing := f.closing
	if closed(f.closing) {
		closing = nil
	}
	select {
	case <-v.changed:
		return true
	case <-closing:
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// refresh reads a pod whose watch may be silent.
func (f *follower) refresh(ctx context.Context, v *podView) {
	had := v.get()
	if had == nil {
		return
	}
	p, err := f.source.Pod(ctx, had.Name)
	if err != nil {
		return
	}
	if p != nil && p.UID != had.UID {
		p = nil
	}
	v.mu.Lock()
	v.pod = p
	v.mu.Unlock()
}
