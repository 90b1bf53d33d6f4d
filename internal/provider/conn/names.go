package conn

import (
	"context"
	"sync"
)

// Names keeps apart what the objects of one run do under one name. Terraform
// knows its objects by their addresses, and tells a provider neither the address
// nor that two of them mean the same thing in the cloud: two blocks with one
// name, or the old and the new object of a replacement with
// create_before_destroy. The zero value is ready; a plan and an apply each have
// one of their own, as they have their own Data.
type Names struct {
	mu      sync.Mutex
	planned map[string]Planned
	made    map[string]bool
	turns   map[string]chan struct{} // holds one token while somebody makes or removes
}

// Planned is what a run plans for a name.
type Planned int

// What may be planned.
const (
	PlannedNothing Planned = iota
	PlannedKept            // an object that is in the state
	PlannedNew             // an object that is to be created
)

// Plan notes what one object plans for a name, and returns what another one of
// this run has planned for it before.
func (n *Names) Plan(name string, what Planned) (before Planned) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.planned == nil {
		n.planned = map[string]Planned{}
	}
	before = n.planned[name]
	n.planned[name] = max(before, what)
	return before
}

// Make claims a name for an object that is to be created, when whoever makes or
// removes something of that name is done. ok is false when another object of
// this run has made it. end must be called with whether the object stays.
func (n *Names) Make(ctx context.Context, name string) (end func(made bool), ok bool, err error) {
	free, err := n.turn(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if n.isMade(name) {
		free()
		return nil, false, nil
	}
	return func(made bool) {
		if made {
			n.mu.Lock()
			if n.made == nil {
				n.made = map[string]bool{}
			}
			n.made[name] = true
			n.mu.Unlock()
		}
		free()
	}, true, nil
}

// Remove is Make for an object that is to be deleted: ok is false when another
// object of this run has made what the name stands for, so that it must stay.
func (n *Names) Remove(ctx context.Context, name string) (end func(), ok bool, err error) {
	free, err := n.turn(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if n.isMade(name) {
		free()
		return nil, false, nil
	}
	return free, true, nil
}

func (n *Names) isMade(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.made[name]
}

// turn waits until nobody else makes or removes something of that name.
func (n *Names) turn(ctx context.Context, name string) (free func(), err error) {
	n.mu.Lock()
	turn := n.turns[name]
	if turn == nil {
		if n.turns == nil {
			n.turns = map[string]chan struct{}{}
		}
		turn = make(chan struct{}, 1)
		n.turns[name] = turn
	}
	n.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
