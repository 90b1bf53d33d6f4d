package faults

import "slices"

// Call is one request.
type Call struct {
	Method  string // "CreateNodePool", "compute.resourcePolicies.insert", "kube PATCH jobsets"
	Path    string // of the URL; for a cluster's API server, after the cluster's own path
	Mutates bool   // it is no read

	N        int // this is the Nth call of all, from 1
	OfMethod int // ... of this method
	Nth      int // ... of this method on this path
}

// Stage is a moment in the life of a call.
type Stage string

// The stages, in their order.
const (
	Before  Stage = "before"  // nothing has happened yet
	After   Stage = "after"   // it was carried out; the caller has no answer
	Replied Stage = "replied" // the answer is on its way
)

// Hook is told of every call at every stage, and holds it up while it thinks.
// With cut the connection is reset at once. Calls come concurrently.
type Hook func(c Call, at Stage) (cut bool)

// OnCall has h told of every call until it is removed.
func (s *Set) OnCall(h Hook) (remove func()) {
	_ = s.change(func() { s.hooks = append(s.hooks, &h) })
	return func() {
		_ = s.change(func() { s.hooks = slices.DeleteFunc(s.hooks, func(g *Hook) bool { return g == &h }) })
	}
}

// tell asks the hooks, and tells whether one of them cuts the call off.
func (s *Set) tell(c Call, at Stage) (cut bool) {
	s.mu.Lock()
	hooks := slices.Clone(s.hooks)
	s.mu.Unlock()
	for _, h := range hooks {
		cut = (*h)(c, at) || cut
	}
	return cut
}

func (s *Set) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hooks) > 0
}
