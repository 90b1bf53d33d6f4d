package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// podRun is one pod that runs as a process, from scheduling to removal.
type podRun struct {
	k         *kubelet
	pod       *corev1.Pod // as first seen; its spec does not change
	container *corev1.Container
	dir       string // its file system and work directory
	ip        string

	replicas int // of the Deployment that it belongs to
	restarts int32
	last     *corev1.ContainerStateTerminated
	mu       sync.Mutex
	log      string // of the newest process; empty before the first

	again  chan struct{} // closed when a pod of an earlier run is ready again, at once for others
	ready  func()        // closes again
	ending chan struct{} // closed when the pod is being deleted or gone
	once   sync.Once
	delete *corev1.Pod // the pod to finalise; nil when it is gone already
}

func newPodRun(k *kubelet, p *corev1.Pod) *podRun {
	r := &podRun{
		k: k, pod: p, container: processContainer(p), ending: make(chan struct{}), again: make(chan struct{}),
		dir: filepath.Join(k.dir, fmt.Sprintf("%s_%s_%s", p.Namespace, p.Name, p.UID)),
	}
	r.ready = sync.OnceFunc(func() { close(r.again) })
	return r
}

func (r *podRun) end(p *corev1.Pod) {
	r.once.Do(func() {
		r.delete = p
		close(r.ending)
	})
}

// logFile is where the process writes, "" before the first.
func (r *podRun) logFile() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log
}

// run keeps the process running until the pod or the control plane ends.
func (r *podRun) run(ctx context.Context) {
	r.ip = r.k.address(r.pod.Status.PodIP)
	defer r.k.release(r.ip)
	if !r.resume(ctx) {
		r.ready()
	}
	defer r.ready() // or it never will be
	pause := firstPause
	for {
		began := time.Now()
		ended, err := r.runOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case ended:
			r.finalise(ctx)
			return
		}
		if time.Since(began) > time.Minute {
			pause = firstPause
		}
		r.crashed(ctx, err, pause)
		select {
		case <-ctx.Done():
			return
		case <-r.ending:
			r.finalise(ctx)
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestWait)
	}
}

// resume takes over a pod that ran before the control plane was stopped: for
// it, the machine was restarted. Until the API server knows, it would send
// webhook calls to a process that is gone.
func (r *podRun) resume(ctx context.Context) (did bool) {
	for _, s := range r.pod.Status.ContainerStatuses {
		if s.Name == r.container.Name && s.State.Running != nil {
			r.restarts = s.RestartCount + 1
			r.last = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "Error", Message: "the sandbox was stopped",
				StartedAt: s.State.Running.StartedAt, FinishedAt: metav1.Now(),
			}
			waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
			r.report(ctx, r.status(corev1.PodRunning, waiting, false))
			did = true
		}
	}
	return did
}

// runOnce runs the process once. ended says that the pod is to go; otherwise err
// is why the process did not start or why it ended.
func (r *podRun) runOnce(ctx context.Context) (ended bool, err error) {
	l, err := r.prepare(ctx)
	if err != nil {
		return false, err
	}
	child, err := process.Start(process.Spec{
		Name: r.pod.Name, Path: l.path, Args: l.args, Env: l.env, Work: l.work, Dir: r.k.cp.cfg.Dir,
	})
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	r.log = child.LogFile()
	r.mu.Unlock()
	r.k.cp.egress.Route(r.ip, l.ports)
	grace := 5 * time.Second
	defer func() {
		r.k.cp.egress.Route(r.ip, nil)
		if ctx.Err() != nil {
			grace = time.Second // the whole cluster ends
		}
		child.Stop(grace)
		l.cleanUp()
	}()
	since := metav1.Now()
	r.report(ctx, r.running(since, false))
	return r.tend(ctx, l, child, since)
}

// tend probes the process, keeps its files fresh and tells the API server.
func (r *podRun) tend(ctx context.Context, l *launch, child *process.Child, since metav1.Time) (bool, error) {
	ready, failures, renewed := false, 0, time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-r.ending:
			return true, nil
		case <-child.Done():
			return false, child.Err()
		case <-timer.C:
		}
		if err := l.syncSecrets(ctx); err != nil && ctx.Err() == nil {
			r.k.cp.log.Debug("refreshing a pod's secrets", "pod", r.pod.Name, "error", err)
		}
		if time.Since(renewed) > tokenRenew {
			if err := r.writeToken(ctx, l); err == nil {
				renewed = time.Now()
			}
		}
		if l.probe(ctx) {
			failures = 0
			if !ready {
				ready = true
				l.cleanUp()
				r.report(ctx, r.running(since, true))
				r.ready()
				r.k.cp.log.Debug("pod is ready", "pod", r.pod.Name, "after", time.Since(since.Time).Round(time.Millisecond))
			}
		} else if failures++; ready && failures >= probeFailures {
			ready = false
			r.report(ctx, r.running(since, false))
		}
		next := watchful
		if ready && failures == 0 {
			next = settled
		}
		timer.Reset(next)
	}
}

func (r *podRun) crashed(ctx context.Context, err error, pause time.Duration) {
	r.k.cp.log.Warn("a pod's process does not run", "pod", r.pod.Namespace+"/"+r.pod.Name, "error", err, "again in", pause)
	waiting := &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}
	var exit *process.ExitError
	if errors.As(err, &exit) {
		code := int32(exit.Code)
		if code < 0 {
			code = 137
		}
		now := metav1.Now()
		r.last = &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: exit.Lines, FinishedAt: now, StartedAt: now}
		r.restarts++
		waiting = &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container %s", pause, r.container.Name),
		}
	}
	phase := corev1.PodRunning
	if r.last == nil {
		phase = corev1.PodPending // it never ran
	}
	r.report(ctx, r.status(phase, corev1.ContainerState{Waiting: waiting}, false))
}

// finalise ends a pod as a kubelet does: a terminal phase, then its removal.
func (r *podRun) finalise(ctx context.Context) {
	defer os.RemoveAll(r.dir)
	if r.delete == nil {
		return
	}
	now := metav1.Now()
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed", StartedAt: now, FinishedAt: now}}
	r.report(ctx, r.status(corev1.PodSucceeded, state, false))
	var zero int64
	err := r.k.cp.client.CoreV1().Pods(r.pod.Namespace).Delete(ctx, r.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(r.pod.UID)),
	})
	if err != nil && ctx.Err() == nil {
		r.k.cp.log.Debug("removing a pod", "pod", r.pod.Name, "error", err)
	}
}
