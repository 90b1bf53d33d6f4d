package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

// apply and its kin are the commands of every cell.
var (
	apply = []string{"apply", "-auto-approve", "-no-color"}
	plan  = []string{"plan", "-detailed-exitcode", "-no-color"}
)

// end is how a command is ended in the middle of a call.
type end string

// The ends.
const (
	killProvider end = "kill -9 of the provider"
	killAll      end = "kill -9 of the command line and the provider"
	killCLI      end = "kill -9 of the command line alone"
	interrupt    end = "interrupt"
)

// start is a scenario's world before its apply, made once.
type start struct {
	scenario
	gke     []byte // the fake's state
	tfstate []byte
	calls   []string // the methods of an undisturbed apply, in their order
}

// prepare makes what the scenario begins with, and counts the calls of its
// apply by letting it run once.
func prepare(t testing.TB, all *benches, s scenario) start {
	t.Helper()
	out := start{scenario: s}
	if s.before != nil {
		w := newWorld(t, nil)
		b := all.take(t, nil)
		b.write(t, w.Config(owner, s.before.hcl()))
		if text, err := b.run(t, apply...); err != nil {
			t.Fatalf("making what %q begins with: %v\n%s", s.name, err, text)
		}
		out.gke, out.tfstate = w.snapshot(t), b.tfstate(t)
	}
	w := newWorld(t, out.gke)
	b := all.take(t, out.tfstate)
	b.write(t, w.Config(owner, hcl(s.after)))
	var mu sync.Mutex
	remove := w.faults.OnCall(func(c faults.Call, at faults.Stage) bool {
		mu.Lock()
		defer mu.Unlock()
		if at == faults.Before {
			out.calls = append(out.calls, c.Method)
		}
		return false
	})
	text, err := b.run(t, append(slices.Clone(apply), s.args...)...)
	remove()
	if err != nil {
		t.Fatalf("%s, undisturbed: %v\n%s", s.name, err, text)
	}
	if v := out.check(t, w, b); !v.ok() {
		t.Fatalf("%s, undisturbed:\n%s\n%s", s.name, v, text)
	}
	return out
}

// check plans once more, which must find nothing to do, and judges the world.
func (s start) check(t testing.TB, w *world, b *bench) verdict {
	t.Helper()
	var failures []string
	if text, err := b.run(t, plan...); err != nil {
		failures = append(failures, fmt.Sprintf("the next plan is not empty: %v\n%s", err, text))
	}
	known, err := readState(b.stateFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range known.tainted {
		failures = append(failures, r+" is tainted")
	}
	if s.after == nil && known.count > 0 {
		failures = append(failures, fmt.Sprintf("%d resources are left in state", known.count))
	}
	v := s.model().judge(w.facts(), known)
	v.failures = failures
	return v
}

// cell is one way to end a scenario's apply.
type cell struct {
	n    int // at the nth call
	at   faults.Stage
	by   end
	held bool // GKE's operations stay under way until the next apply has begun
}

func (c cell) String() string {
	held := ""
	if c.held {
		held = ", operations under way"
	}
	return fmt.Sprintf("call %d, %s, %s%s", c.n, c.at, c.by, held)
}

// outcome is what a cell came to.
type outcome struct {
	verdict
	method string        // of the call at which the end came; "" when the apply was over before
	took   time.Duration // from the end to the command's return
}

// run ends the scenario's apply at a call, applies again, and judges.
func (s start) run(t testing.TB, all *benches, c cell) (out outcome) {
	t.Helper()
	w := newWorld(t, s.gke)
	b := all.take(t, s.tfstate)
	b.write(t, w.Config(owner, hcl(s.after)))
	release := func() {}
	out, first := b.ended(t, w.faults, "", c, s.args, func() {
		if c.held {
			release = w.Hold()
		}
	})
	defer func() { release() }()
	if out.method == "" {
		release() // too late to hold anything
	}
	if c.held && out.method != "" {
		// Let go once the next apply has seen what is under way.
		watch := w.faults.OnCall(func(call faults.Call, at faults.Stage) bool {
			if at == faults.Replied && (call.Method == "ListOperations" || call.Method == "GetNodePool" || call.Method == "GetCluster" && call.OfMethod > 3 || call.Mutates) {
				release()
			}
			return false
		})
		defer watch()
		timer := time.AfterFunc(3*time.Second, release) // an apply that waits for nothing
		defer timer.Stop()
	}
	if text, err := b.run(t, apply...); err != nil {
		out.failures = append(out.failures, fmt.Sprintf("the apply after it: %v\n%s\nthe first apply said:\n%s", err, text, first))
	}
	release()
	v := s.check(t, w, b)
	v.failures = append(out.failures, v.failures...)
	out.verdict = v
	return out
}

// ended applies, with further arguments, and ends the apply at the cell's call: the nth of those with
// object in their path. It also returns what the apply printed. An apply that
// has fewer calls is whole, and the outcome has no method.
func (b *bench) ended(t testing.TB, set *faults.Set, object string, c cell, args []string, before func()) (out outcome, text string) {
	t.Helper()
	var first *command
	var mu sync.Mutex
	var at time.Time // of the end
	count, number := 0, map[int]int{}
	started := make(chan struct{})
	remove := set.OnCall(func(call faults.Call, stage faults.Stage) (cut bool) {
		<-started
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(call.Path, object) {
			return false
		}
		if stage == faults.Before {
			count++
			number[call.N] = count
		}
		if !at.IsZero() {
			return c.by.silences() // nothing of the dead arrives
		}
		if number[call.N] != c.n || stage != c.at {
			return false
		}
		before()
		err := first.end(c.by)
		if stage == faults.Replied && (errors.Is(err, errOver) || errors.Is(err, syscall.ESRCH)) {
			return false // the last answer was all it waited for: too late
		}
		if err != nil {
			t.Errorf("%s: %v", c, err)
		}
		out.method, at = call.Method, time.Now()
		return c.by.silences()
	})
	first = b.start(t, append(slices.Clone(apply), args...)...)
	close(started)
	_ = first.wait() // how it ends is its own affair; what it leaves behind is ours
	if first.widow != 0 {
		t.Cleanup(func() { first.buried(t) })
	}
	remove()
	if !at.IsZero() {
		out.took = first.ended.Sub(at)
	}
	text = first.out.String()
	if strings.Contains(text, "panic:") || c.by == interrupt && strings.Contains(text, "Plugin did not respond") {
		out.failures = append(out.failures, "the first apply crashed:\n"+text)
	}
	return out, text
}

// silences tells whether the provider makes no call after such an end.
func (by end) silences() bool { return by == killProvider || by == killAll }

func (c *command) end(by end) error {
	switch by {
	case killCLI:
		return c.killCLI()
	case killProvider:
		return c.killProvider()
	case killAll:
		return c.killAll()
	}
	return c.interrupt()
}
