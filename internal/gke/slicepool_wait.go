package gke

import (
	"context"
	"errors"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/googleapis/gax-go/v2"
)

// noCapacity tells whether a slice failed for want of machines, which may come
// free again.
func noCapacity(err error) bool { return errors.Is(err, Stockout) || errors.Is(err, Reservation) }

// converge brings one slice to RUNNING, and deals with a zone that has no
// capacity as the pool's policy says.
func (a *slicePoolApply) converge(ctx context.Context, i int, np *containerpb.NodePool) error {
	err := a.bring(ctx, i, np)
	if a.p.OnStockout != StockoutWait && a.p.OnStockout != "" {
		return err
	}
	// GKE itself looks for capacity for 35 minutes; a reservation that is too
	// small is refused at once.
	pace := gax.Backoff{Initial: 6 * a.c.cfg.PollInterval, Max: 60 * a.c.cfg.PollInterval, Multiplier: 2}
	for noCapacity(err) {
		last := err
		a.c.log(ctx, "no capacity, asking again", map[string]any{"object": a.p.Cluster.NodePool(a.p.NodePoolName(i)), "zone": a.p.Zone})
		if gax.Sleep(ctx, pace.Pause()) != nil {
			return last
		}
		if np, err = a.settle(ctx, a.p.NodePoolName(i)); err == nil {
			err = a.bring(ctx, i, np)
		}
		if err != nil && ctx.Err() != nil { // say why, not only that the time was up
			return amend(err, func(e *Error) { e.Message = "the try before ended so: " + last.Error() })
		}
	}
	return err
}

// resume waits for the operation that an interrupted apply left on a node
// pool. One that GKE has forgotten is over.
func (a *slicePoolApply) resume(ctx context.Context, name string) error {
	op := a.run.Operations[name]
	if op == "" {
		return nil
	}
	t := poolTarget("creating", a.p.Cluster, name, []string{a.p.Zone})
	err := a.c.await(ctx, a.p.Cluster.Parent(), t, &containerpb.Operation{Name: op})
	a.c.nodePools.Forget(a.p.Cluster.String())
	if errors.Is(err, NotFound) {
		return nil
	}
	return err
}

// settle waits until a node pool is neither being made nor being removed; nil
// when it is gone.
func (a *slicePoolApply) settle(ctx context.Context, name string) (*containerpb.NodePool, error) {
	return a.c.settledPool(ctx, a.p.Cluster, name, []string{a.p.Zone})
}

// cleanupTime is how long removing what did not come up may take when the time
// of the apply is up already.
const cleanupTime = 15 * time.Minute

// cleanUp removes the slices that did not come up, if that is the policy. One
// that runs stays whatever was not done to it: its job is none of a stockout's.
// An interrupt leaves all as they are: Terraform expects an answer soon.
func (a *slicePoolApply) cleanUp(ctx context.Context, before map[int]*containerpb.NodePool) {
	if a.p.OnStockout != StockoutCleanup || ctx.Err() != nil && causeOfContext(ctx) == Interrupted {
		return
	}
	var remove []int
	for i, why := range a.failures {
		// A refused request made nothing, and what is not ours stays.
		if (a.sent[i] || neverUp(before[i])) && (noCapacity(why) || errors.Is(why, TimedOut)) {
			remove = append(remove, i)
		}
	}
	if len(remove) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	var tasks sync.WaitGroup
	for _, i := range remove {
		tasks.Go(func() {
			name := a.p.NodePoolName(i)
			// It may have come up since. When no list says, it is the next apply's.
			np, err := a.c.findPool(ctx, a.p.Cluster, name, listNow)
			if err != nil || np != nil && !neverUp(np) {
				return
			}
			if a.c.DeleteNodePool(ctx, a.p.Cluster, name) == nil {
				a.mu.Lock()
				defer a.mu.Unlock()
				delete(a.sent, i)
			}
		})
	}
	tasks.Wait()
}

// neverUp tells whether a node pool is one whose creation goes on or has failed.
func neverUp(np *containerpb.NodePool) bool {
	return np.GetStatus() == containerpb.NodePool_PROVISIONING || np.GetStatus() == containerpb.NodePool_ERROR
}
