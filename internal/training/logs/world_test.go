package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// world is a cluster with the pods of one job, for tests in a bubble.
type world struct {
	mu   sync.Mutex
	cond *sync.Cond
	pods []*program1
	// cut, when set, ends streams after so many bytes, cleanly or not.
	cut   func() (bytes int, err error)
	quiet bool  // watches tell nothing
	deny  error // of every Open
	fails int   // so many Opens fail first
	opens int
}

// program1 is a pod of one container, and what each of its runs printed.
type program1 struct {
	w    *world
	pod  corev1.Pod
	runs [][]string // the lines of each run, with their times
	gone bool
}

func newWorld() *world {
	w := &world{}
	w.cond = sync.NewCond(&w.mu)
	return w
}

// host adds a running pod.
func (w *world) host(job string, slice, host, attempt int) *program1 {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("train-%s-%d-%d-%d", job, slice, host, len(w.pods))
	p := &program1{w: w, runs: [][]string{nil}, pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now(), Labels: map[string]string{
			jobset.JobSetNameKey: "train", jobset.ReplicatedJobNameKey: job, jobset.JobIndexKey: fmt.Sprint(slice),
			batchv1.JobCompletionIndexAnnotation: fmt.Sprint(host), training.LabelRestartAttempt: fmt.Sprint(attempt),
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}}
	w.pods = append(w.pods, p)
	w.cond.Broadcast()
	return p
}

// wake lets everybody look again; under the lock, or somebody could look away.
func (w *world) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cond.Broadcast()
}

func (p *program1) change(do func()) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	do()
	p.w.cond.Broadcast()
}

// say prints lines at this moment.
func (p *program1) say(lines ...string) {
	p.change(func() {
		for _, l := range lines {
			last := &p.runs[len(p.runs)-1]
			*last = append(*last, time.Now().UTC().Format(time.RFC3339Nano)+" "+l+"\n")
		}
	})
}

func (p *program1) terminated(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
}

func (p *program1) end(code int32) {
	p.change(func() {
		p.pod.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			p.pod.Status.Phase = corev1.PodFailed
		}
		p.pod.Status.ContainerStatuses[0].State = p.terminated(code)
	})
}

// restart ends the run of the container and begins another in the same pod.
func (p *program1) restart() {
	p.change(func() {
		c := &p.pod.Status.ContainerStatuses[0]
		c.RestartCount++
		c.LastTerminationState = p.terminated(1)
		p.runs = append(p.runs, nil)
	})
}

func (p *program1) remove() { p.change(func() { p.gone = true }) }

func (w *world) Pods(context.Context) ([]corev1.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []corev1.Pod
	for _, p := range w.pods {
		if !p.gone {
			out = append(out, *p.pod.DeepCopy())
		}
	}
	return out, nil
}

func (w *world) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pods, _ := w.Pods(ctx)
	for i := range pods {
		if pods[i].Name == name {
			return &pods[i], nil
		}
	}
	return nil, nil
}

func (w *world) Watch(ctx context.Context, changed func(corev1.Pod)) {
	if w.quiet {
		<-ctx.Done()
		return
	}
	defer context.AfterFunc(ctx, w.wake)()
	told := map[string]string{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for ctx.Err() == nil {
		var news []corev1.Pod
		for _, p := range w.pods {
			if state := fmt.Sprint(p.pod.Status); told[p.pod.Name] != state {
				told[p.pod.Name] = state
				news = append(news, *p.pod.DeepCopy())
			}
		}
		if len(news) == 0 {
			w.cond.Wait()
			continue
		}
		w.mu.Unlock()
		for _, p := range news {
			changed(p)
		}
		w.mu.Lock()
	}
}

func (w *world) Open(ctx context.Context, pod string, o corev1.PodLogOptions) (io.ReadCloser, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opens++
	if w.fails > 0 {
		w.fails--
		return nil, apierrors.NewInternalError(errors.New("the kubelet does not answer"))
	}
	if w.deny != nil {
		return nil, w.deny
	}
	for _, p := range w.pods {
		if p.pod.Name != pod || p.gone {
			continue
		}
		s := &stream1{p: p, ctx: ctx, run: len(p.runs) - 1, follow: o.Follow, since: time.Time{}, limit: -1}
		if o.Previous {
			if s.run--; s.run < 0 {
				return nil, apierrors.NewBadRequest("previous terminated container not found")
			}
		}
		if o.SinceTime != nil { // the API carries whole seconds
			s.since = o.SinceTime.Truncate(time.Second)
		}
		if o.TailLines != nil {
			s.at = max(0, len(p.runs[s.run])-int(*o.TailLines))
		}
		if w.cut != nil {
			s.limit, s.err = w.cut()
			if !o.Follow {
				s.err = io.ErrUnexpectedEOF
			}
		}
		s.stop = context.AfterFunc(ctx, w.wake)
		return s, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
}

// stream1 is an open log.
type stream1 struct {
	p      *program1
	ctx    context.Context
	stop   func() bool
	run    int
	at     int // the next line
	rest   string
	since  time.Time
	follow bool
	limit  int // bytes until err; negative: none
	err    error
}

func (s *stream1) Close() error { s.stop(); return nil }

func (s *stream1) Read(b []byte) (int, error) {
	w := s.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		lines := s.p.runs[s.run]
		switch {
		case s.ctx.Err() != nil:
			return 0, s.ctx.Err()
		case s.limit == 0:
			return 0, s.err
		case s.rest != "":
			n := copy(b, s.rest)
			if s.limit > 0 {
				n = min(n, s.limit)
				s.limit -= n
			}
			s.rest = s.rest[n:]
			return n, nil
		case s.at < len(lines):
			line := lines[s.at]
			s.at++
			stamp, _, _ := strings.Cut(line, " ")
			if at, _ := time.Parse(time.RFC3339Nano, stamp); !at.Before(s.since) {
				s.rest = line
			}
		case s.follow && s.run == len(s.p.runs)-1 && !s.p.gone && s.p.pod.Status.ContainerStatuses[0].State.Running != nil:
			w.cond.Wait()
		default:
			return 0, io.EOF
		}
	}
}

// cuts ends streams at random places, cleanly or in an error.
func cuts(seed uint64) func() (int, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	return func() (int, error) {
		err := io.EOF
		if r.IntN(2) == 0 {
			err = io.ErrUnexpectedEOF
		}
		return 2500 + r.IntN(2500), err // more than what is read again
	}
}

// heard collects lines as HOST TEXT.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) take(l Line) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l.Name()+" "+l.Text)
	return nil
}

func (h *heard) of(host string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, l := range h.lines {
		if name, text, _ := strings.Cut(l, " "); name == host {
			out = append(out, text)
		}
	}
	return out
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}
