package gke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/googleapis/gax-go/v2"
)

// createPool creates a node pool and waits until GKE has made its nodes. A reply
// that was lost shows as "already exists", perhaps before lists show what it
// made: if own adopts that, it is returned as soon as it is settled. theirs
// tells that the name is somebody else's.
func (c *Client) createPool(ctx context.Context, n ClusterName, np *containerpb.NodePool, own Ownership, sent func()) (found *containerpb.NodePool, theirs bool, err error) {
	err = c.CreateNodePool(ctx, n, np, sent)
	if !errors.Is(err, AlreadyExists) {
		return nil, false, err
	}
	found, getErr := c.createdPool(ctx, n, np.GetName(), np.GetLocations())
	if getErr != nil {
		return nil, false, getErr
	}
	if found == nil {
		return nil, false, amend(err, func(e *Error) {
			e.Message += "; yet GKE lists no such node pool: if it was removed meanwhile, apply again"
		})
	}
	if why := own.Adopts(OwnershipOf(found.GetConfig().GetResourceLabels()), time.Now()); why != nil {
		return nil, true, amend(err, func(e *Error) { e.Message = fmt.Sprintf("%s (%v)", e.Message, why) })
	}
	return found, false, nil
}

// changing tells whether a node pool is being made or removed.
func changing(np *containerpb.NodePool) bool {
	return np.GetStatus() == containerpb.NodePool_PROVISIONING || np.GetStatus() == containerpb.NodePool_STOPPING
}

// settledPool waits until a node pool is neither being made nor being removed;
// nil when it is gone.
func (c *Client) settledPool(ctx context.Context, n ClusterName, pool string, zones []string) (*containerpb.NodePool, error) {
	return c.poolWhen(ctx, n, pool, zones, func(np *containerpb.NodePool, _ time.Duration) bool { return !changing(np) })
}

// appears is how many poll intervals GKE's lists may be behind what it has
// said: a minute.
const appears = 60

// createdPool is settledPool for a node pool that is there, as GKE has said. nil
// when no list shows it in time.
func (c *Client) createdPool(ctx context.Context, n ClusterName, pool string, zones []string) (*containerpb.NodePool, error) {
	np, err := c.poolWhen(ctx, n, pool, zones, func(np *containerpb.NodePool, waited time.Duration) bool {
		return np != nil || waited >= appears*c.cfg.PollInterval
	})
	if err != nil || np == nil {
		return nil, err
	}
	return c.settledPool(ctx, n, pool, zones)
}

// poolWhen looks at a node pool, nil where a list does not show it, until enough
// says so: ever more seldom, and all who wait look at the same lists.
func (c *Client) poolWhen(ctx context.Context, n ClusterName, pool string, zones []string, enough func(np *containerpb.NodePool, waited time.Duration) bool) (*containerpb.NodePool, error) {
	began := time.Now()
	for {
		waited := time.Since(began)
		np, err := c.findPool(ctx, n, pool, c.slow(waited))
		if err != nil || enough(np, waited) {
			return np, err
		}
		if gax.Sleep(ctx, c.slow(waited)) != nil {
			t := poolTarget("waiting for", n, pool, zones)
			return nil, &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx), Err: ctx.Err()}
		}
	}
}

// findPool finds a node pool in a list not older than age; nil when it is not there.
func (c *Client) findPool(ctx context.Context, n ClusterName, pool string, age time.Duration) (*containerpb.NodePool, error) {
	all, err := c.listNodePools(ctx, n, age)
	if err != nil && !errors.Is(err, NotFound) {
		return nil, err
	}
	for _, np := range all {
		if np.GetName() == pool {
			return np, nil
		}
	}
	return nil, nil
}
