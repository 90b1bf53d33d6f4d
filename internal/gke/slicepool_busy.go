package gke

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Busy tells what runs on which slice: the names of jobs with pods on the hosts
// of a node pool, by node pool. Node pools that it does not name are idle.
type Busy func(ctx context.Context) (map[string][]string, error)

// Spared is a slice that was left as it is because a job runs on it, or because
// the cluster could not say whether one does.
type Spared struct {
	NodePool string
	Jobs     []string
	Unknown  error // why the cluster could not say
}

func (s Spared) String() string {
	if s.Unknown != nil {
		return s.NodePool + " (what runs there is not known)"
	}
	return s.NodePool + " runs " + strings.Join(s.Jobs, ", ")
}

// spares asks whether a slice may not be disturbed; nil if it may.
func (r SlicePoolRun) spares(ctx context.Context, force bool) func(nodePool string) *Spared {
	if force || r.Busy == nil {
		return func(string) *Spared { return nil }
	}
	jobs, err := r.Busy(ctx)
	return func(nodePool string) *Spared {
		if err == nil && len(jobs[nodePool]) == 0 {
			return nil
		}
		return &Spared{NodePool: nodePool, Jobs: jobs[nodePool], Unknown: err}
	}
}

// occupied is spares for slices in whatever status. One that is up in part
// (RUNNING_WITH_ERROR) may run a job on the hosts that it has. One that is not
// up at all has none, unless the cluster names a job: that nothing is known is
// no reason to keep it.
func (r SlicePoolRun) occupied(ctx context.Context, force bool) func(np *containerpb.NodePool) *Spared {
	spares := r.spares(ctx, force)
	return func(np *containerpb.NodePool) *Spared {
		s := spares(np.GetName())
		switch np.GetStatus() {
		case containerpb.NodePool_RUNNING, containerpb.NodePool_RECONCILING, containerpb.NodePool_RUNNING_WITH_ERROR:
			return s
		case containerpb.NodePool_STOPPING: // it goes already
			return nil
		}
		if s != nil && s.Unknown != nil {
			return nil
		}
		return s
	}
}

// fill lists the indices that the pool should have: those that are there, and
// the lowest that are free. After shrinking, indices need not be contiguous.
func (p SlicePool) fill(mine map[int]*containerpb.NodePool) []int {
	want := slices.Sorted(maps.Keys(mine))
	for i := 0; len(want) < p.Count; i++ {
		if mine[i] == nil {
			want = append(want, i)
		}
	}
	return want
}

// surplus chooses which slices go when there are too many: those that are not
// up, then idle ones, each with the highest index first. One with a running
// job goes last, and only by force: it is kept otherwise.
func (a *slicePoolApply) surplus(ctx context.Context, mine map[int]*containerpb.NodePool) (gone, kept map[int]bool, spared []Spared) {
	gone, kept = map[int]bool{}, map[int]bool{}
	excess := len(mine) - a.p.Count
	if excess <= 0 {
		return gone, kept, nil
	}
	occupied := a.run.occupied(ctx, a.p.Force)
	prefer := occupied
	if a.p.Force { // idle ones first all the same, as far as is known
		prefer = a.run.occupied(ctx, false)
	}
	rank := func(i int) int {
		up := sliceOf(mine[i]).Status == SliceRunning
		switch s := prefer(mine[i]); {
		case s != nil && (s.Unknown == nil || !a.p.Force):
			return 2
		case up:
			return 1
		}
		return 0
	}
	order := slices.SortedFunc(maps.Keys(mine), func(i, j int) int {
		if d := rank(i) - rank(j); d != 0 {
			return d
		}
		return j - i
	})
	for _, i := range order[:excess] {
		if s := occupied(mine[i]); s != nil {
			kept[i], spared = true, append(spared, *s)
			continue
		}
		gone[i] = true
	}
	return gone, kept, spared
}

// ListSpared joins slices for a message.
func ListSpared(spared []Spared) string {
	lines := make([]string, 0, len(spared))
	for _, s := range spared {
		lines = append(lines, s.String())
	}
	text := strings.Join(lines, "\n")
	if len(spared) > 0 && spared[0].Unknown != nil {
		text += fmt.Sprintf("\nAsking the cluster failed: %v", spared[0].Unknown)
	}
	return text
}
