package gke

import (
	"context"
	"slices"
	"sync"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// roll gives new nodes to the slices that need them to become as p wants them:
// at most MaxUnavailable at a time, those that are down counted, idle ones
// first. One that runs a job is last, and only by force. It stops when a slice
// does not come back: no more capacity is put at risk.
func (a *slicePoolApply) roll(ctx context.Context, ref SlicePoolRef, before map[int]*containerpb.NodePool) []Spared {
	need := func(pools map[int]*containerpb.NodePool) (todo []int, down int) {
		for _, i := range a.wanted {
			switch np := pools[i]; {
			case np == nil || sliceOf(np).Status != SliceRunning:
				down++
			case len(a.p.differing(np, true)) > 0:
				todo = append(todo, i)
			}
		}
		return todo, down
	}
	// One that was not up when the apply began may be of earlier settings too.
	old := func(i int) bool { return before[i] != nil && len(a.p.differing(before[i], true)) > 0 }
	if ctx.Err() != nil || !slices.ContainsFunc(a.wanted, old) {
		return nil
	}
	now, _, err := a.c.slicesOf(ctx, ref, listNow)
	if err != nil {
		return nil // the next refresh finds what is left to do
	}
	todo, down := need(now)
	width := max(1, a.p.MaxUnavailable) - down
	for len(todo) > 0 && width > 0 && ctx.Err() == nil {
		// Ask each time: a job may have started meanwhile.
		busy := a.run.spares(ctx, false)
		slices.SortStableFunc(todo, func(i, j int) int { return rank(busy(now[i].GetName())) - rank(busy(now[j].GetName())) })
		batch := todo[:min(width, len(todo))]
		if !a.p.Force {
			batch = slices.DeleteFunc(slices.Clone(batch), func(i int) bool { return busy(now[i].GetName()) != nil })
		}
		if len(batch) == 0 { // only busy ones are left
			var spared []Spared
			for _, i := range todo {
				spared = append(spared, *busy(now[i].GetName()))
			}
			return spared
		}
		if a.renewAll(ctx, batch, now) > 0 {
			return nil
		}
		todo = slices.DeleteFunc(todo, func(i int) bool { return slices.Contains(batch, i) })
	}
	return nil
}

// rank puts busy slices last.
func rank(s *Spared) int {
	if s != nil {
		return 1
	}
	return 0
}

// renewAll renews several slices at a time and returns how many failed.
func (a *slicePoolApply) renewAll(ctx context.Context, batch []int, now map[int]*containerpb.NodePool) (failed int) {
	var tasks sync.WaitGroup
	for _, i := range batch {
		tasks.Go(func() { a.done(i, a.renew(ctx, i, now[i])) })
	}
	tasks.Wait()
	for _, i := range batch {
		if a.failures[i] != nil {
			failed++
		}
	}
	return failed
}

// renew gives one slice new nodes: by GKE's own update where it has one, which
// keeps the machines' reservation, and as another node pool where it has none.
func (a *slicePoolApply) renew(ctx context.Context, i int, np *containerpb.NodePool) error {
	list := a.p.differing(np, true)
	if !slices.ContainsFunc(list, facet.again) {
		return a.change(ctx, np, list)
	}
	if err := a.c.DeleteNodePool(ctx, a.p.Cluster, np.GetName()); err != nil {
		return err
	}
	return a.converge(ctx, i, nil)
}
