package conn

import "sync"

// Coming are the clusters, by path, that a plan has said this run makes or
// finishes. A plan and an apply each have one of their own, as they have their
// own Data. The zero value is ready.
type Coming struct {
	mu    sync.Mutex
	paths map[string]bool
}

// Add notes that a cluster will be there later in this run.
func (c *Coming) Add(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paths == nil {
		c.paths = map[string]bool{}
	}
	c.paths[path] = true
}

// Done ends what Add began: whether the cluster is there, GKE knows from now on.
func (c *Coming) Done(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.paths, path)
}

// Has tells whether a cluster is to be waited for.
func (c *Coming) Has(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[path]
}
