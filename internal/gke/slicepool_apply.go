package gke

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// SlicePoolResult is what an apply came to. It is filled in whatever happened:
// partial success is not failure.
type SlicePoolResult struct {
	Slices  Slices
	Adopted []string // node pools that an earlier, killed run had made
	// Failures by slice index, each an *Error.
	Failures map[int]error
	// Surplus slices that are still there because of what runs on them.
	Surplus []Spared
	// Gone are the slices that were too many and had to go: a failure of one of
	// them is that it is still there.
	Gone map[int]bool
	// Broken slices that were not made again because of what runs on them.
	Broken []Spared
	// Outdated slices that did not get the new nodes they need because of what
	// runs on them.
	Outdated []Spared
	// Interrupted or TimedOut when the context ended first; GKE goes on with
	// what it was asked for.
	Ended Cause
	// Operations that GKE has not finished, by node pool: what the next apply
	// waits for.
	Operations map[string]string
}

// SlicePoolRun is what an apply knows from earlier ones.
type SlicePoolRun struct {
	// Known names the node pools of earlier applies; others are adopted only if
	// their labels say that this configuration made them.
	Known []string
	// Owners that the known ones may carry, see SlicePoolRef.
	Owners []string
	// Operations that an interrupted apply left running, by node pool.
	Operations map[string]string
	// Busy is asked before a slice is removed or gets new nodes. Without it
	// every slice counts as idle.
	Busy Busy
}

// ApplySlicePool makes the pool's node pools be what p says: creates what is
// missing, replaces what failed, waits for what is under way, changes settings
// in place or slice by slice, removes what is too many. Healthy slices are not touched. The error
// is for requests that had no effect at all, and for a cleanup that left
// nothing; everything else is in the result.
func (c *Client) ApplySlicePool(ctx context.Context, p SlicePool, run SlicePoolRun) (SlicePoolResult, error) {
	res := SlicePoolResult{Slices: Slices{}, Failures: map[int]error{}}
	if err := p.Check(); err != nil {
		return res, &Error{Verb: "applying slice pool", Object: p.Cluster.NodePool(p.Name), Zone: p.Zone, Cause: Invalid, Message: err.Error()}
	}
	ref := SlicePoolRef{Cluster: p.Cluster, Name: p.Name, Owner: p.Owner, Known: run.Known, Owners: run.Owners}
	mine, others, err := c.slicesOf(ctx, ref, listNow)
	if err != nil {
		return res, err
	}
	if res.Adopted, err = p.adopt(mine, others, run.Known); err != nil {
		return res, err
	}
	ref.Known = slices.Concat(run.Known, res.Adopted)

	a := &slicePoolApply{c: c, p: p, run: run, failures: res.Failures, sent: map[int]bool{}}
	var kept map[int]bool
	res.Gone, kept, res.Surplus = a.surplus(ctx, mine)
	var tasks sync.WaitGroup
	for _, i := range p.fill(mine) {
		if kept[i] { // it goes as soon as its job has ended: nothing is done for it
			continue
		}
		if res.Gone[i] {
			tasks.Go(func() { a.done(i, c.DeleteNodePool(ctx, p.Cluster, p.NodePoolName(i))) })
			continue
		}
		a.wanted = append(a.wanted, i)
		tasks.Go(func() { a.done(i, a.converge(ctx, i, mine[i])) })
	}
	tasks.Wait()
	slices.SortFunc(a.broken, func(x, y Spared) int { return strings.Compare(x.NodePool, y.NodePool) })
	res.Broken = a.broken
	res.Outdated = a.roll(ctx, ref, mine)
	if ctx.Err() != nil {
		res.Ended = causeOfContext(ctx)
	}
	a.cleanUp(ctx, mine)
	res.Slices, res.Operations = a.result(ctx, ref, mine)
	return res, a.refusal(len(mine), res.Slices)
}

// adopt moves from others to mine what is this pool's by name and labels. In a
// first apply everything found under the pool's names was made by a run that
// did not live to tell.
func (p SlicePool) adopt(mine map[int]*containerpb.NodePool, others map[string]*containerpb.NodePool, known []string) ([]string, error) {
	isKnown := map[string]bool{}
	for _, k := range known {
		isKnown[k] = true
	}
	now := time.Now()
	want := p.ownership(now)
	candidates := map[int]*containerpb.NodePool{}
	for i, np := range mine {
		if !isKnown[np.GetName()] {
			candidates[i] = np
		}
	}
	for _, i := range p.fill(mine) {
		if np, ok := others[p.NodePoolName(i)]; ok {
			candidates[i] = np
		}
	}
	var adopted []string
	for _, i := range slices.Sorted(maps.Keys(candidates)) {
		np := candidates[i]
		if why := want.Adopts(OwnershipOf(np.GetConfig().GetResourceLabels()), now); why != nil {
			return nil, &Error{Verb: "creating slice pool", Object: p.Cluster.NodePool(p.Name), Zone: p.Zone, Cause: AlreadyExists,
				Message: fmt.Sprintf("node pool %s already exists, and this configuration does not take it over: %v.\nIf it is yours, import it: terraform import ADDRESS %s\nOtherwise choose another name, or delete it: gcloud container node-pools delete %s --cluster %s --location %s --project %s",
					np.GetName(), why, p.Cluster.NodePool(p.Name), np.GetName(), p.Cluster.Cluster, p.Cluster.Location, p.Cluster.Project)}
		}
		mine[i] = np
		adopted = append(adopted, np.GetName())
	}
	return adopted, nil
}

// slicePoolApply is one run of ApplySlicePool.
type slicePoolApply struct {
	c   *Client
	p   SlicePool
	run SlicePoolRun

	wanted []int // indices that the pool should have

	mu       sync.Mutex
	failures map[int]error
	sent     map[int]bool // creates that GKE may have received
	broken   []Spared     // slices that are down, in part, and were left so
}

func (a *slicePoolApply) done(i int, err error) {
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.failures[i] = a.p.explain(err)
	}
}

// bring gets one slice to RUNNING from whatever it is now, in one try.
func (a *slicePoolApply) bring(ctx context.Context, i int, np *containerpb.NodePool) error {
	if np == nil {
		return a.create(ctx, i)
	}
	status := sliceOf(np).Status
	if status == SliceProvisioning || status == SliceStopping {
		err := a.resume(ctx, np.GetName())
		if err != nil {
			return err
		}
		if np, err = a.settle(ctx, np.GetName()); err != nil {
			return err
		}
		if np == nil {
			return a.create(ctx, i)
		}
		status = sliceOf(np).Status
	}
	if status == SliceError {
		if s := a.run.occupied(ctx, a.p.Force)(np); s != nil {
			if ctx.Err() != nil { // the question was cut short: nothing is known
				t := poolTarget("recreating", a.p.Cluster, np.GetName(), np.GetLocations())
				return &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx), Err: ctx.Err()}
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.broken = append(a.broken, *s)
			return nil
		}
		if err := a.c.DeleteNodePool(ctx, a.p.Cluster, np.GetName()); err != nil {
			return err
		}
		return a.create(ctx, i)
	}
	return a.change(ctx, np, a.p.differing(np, false))
}

// create makes slice i.
func (a *slicePoolApply) create(ctx context.Context, i int) error {
	now := time.Now()
	np, err := a.p.NodePool(i, now)
	if err != nil {
		return err
	}
	found, theirs, err := a.c.createPool(ctx, a.p.Cluster, np, a.p.ownership(now), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sent[i] = true
	})
	if theirs {
		a.mu.Lock()
		delete(a.sent, i)
		a.mu.Unlock()
	}
	if err != nil || found == nil {
		return err
	}
	if sliceOf(found).Status != SliceRunning {
		return troubleOf("creating node pool", a.p.Cluster.NodePool(np.GetName()), found)
	}
	return nil
}
