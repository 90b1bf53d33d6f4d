package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// part is one process of the control plane. It is started again when it ends
// by itself once the cluster runs.
type part struct {
	spec  process.Spec
	grace time.Duration // between being asked to end and being killed

	mu    sync.Mutex
	child *process.Child
}

func (p *part) current() *process.Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

// run starts parts. Whoever waits for them notices when one ends.
func (cp *ControlPlane) run(parts ...*part) error {
	for _, p := range parts {
		p.spec.Path = cp.cfg.Binaries[p.spec.Name]
		child, err := process.Start(p.spec)
		if err != nil {
			return err
		}
		p.child = child
		cp.mu.Lock()
		cp.parts = append(cp.parts, p)
		cp.mu.Unlock()
	}
	return nil
}

const (
	firstPause  = time.Second
	longestWait = 30 * time.Second
)

// watch starts a part again when it ends. It is not for the time of Start,
// where the end of a part is an error.
func (cp *ControlPlane) watch(ctx context.Context, p *part) {
	pause := firstPause
	for {
		child, began := p.current(), time.Now()
		select {
		case <-ctx.Done():
			return
		case <-child.Done():
		}
		if time.Since(began) > time.Minute {
			pause = firstPause
		}
		cp.log.Error("a part of the control plane ended and is started again", "cluster", cp.cfg.Name, "error", child.Err(), "in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestWait)
		p.mu.Lock()
		if ctx.Err() == nil {
			if next, err := process.Start(p.spec); err == nil {
				p.child = next
			} else {
				cp.log.Error("starting a part of the control plane again", "cluster", cp.cfg.Name, "error", err)
			}
		}
		p.mu.Unlock()
	}
}

// whileAlive waits for a condition, unless a part ends first.
func (cp *ControlPlane) whileAlive(ctx context.Context, what string, ready func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		cp.mu.Lock()
		parts := cp.parts
		cp.mu.Unlock()
		for _, p := range parts {
			if ended := p.current().Err(); ended != nil {
				return fmt.Errorf("waiting for %s: %w", what, ended)
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			last := parts[len(parts)-1].current()
			return fmt.Errorf("waiting for %s: %w; last answer: %w; %s, the log of %s, ends with:\n%s",
				what, ctx.Err(), err, last.LogFile(), last.Name(), last.Tail(8))
		case <-tick.C:
		}
	}
}

func (cp *ControlPlane) apiReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return cp.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func (cp *ControlPlane) controllersWork(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := cp.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// stopParts ends everything in the opposite order: who writes before who
// stores.
func (cp *ControlPlane) stopParts() {
	if cp.stopped != nil {
		cp.stopped()
	}
	cp.work.Wait() // the kubelet's processes end here too
	cp.mu.Lock()
	parts := cp.parts
	cp.parts = nil
	cp.mu.Unlock()
	var writers sync.WaitGroup
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		if p.spec.Name == "kube-apiserver" || p.spec.Name == "etcd" {
			writers.Wait()
			p.current().Stop(p.grace)
			continue
		}
		writers.Go(func() { p.current().Stop(p.grace) })
	}
	writers.Wait()
	if cp.warden != nil {
		_ = cp.warden.server.Close()
	}
}
