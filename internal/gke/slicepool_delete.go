package gke

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// DeleteSlicePool removes a pool's node pools, in parallel, and waits until
// they are gone. left is what remains when ctx ended or GKE refused. taken names
// the node pools that say that another object holds them, which stay: a run
// that did not finish may have made that object, and this is its predecessor.
func (c *Client) DeleteSlicePool(ctx context.Context, r SlicePoolRef) (left Slices, taken []string, err error) {
	mine, _, err := c.slicesOf(ctx, r, listNow)
	if errors.Is(err, NotFound) {
		return nil, nil, nil // the cluster went, and its node pools with it
	}
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	var errs []error
	left = Slices{}
	var tasks sync.WaitGroup
	for i, np := range mine {
		if o := OwnershipOf(np.GetConfig().GetResourceLabels()); o.Object != "" && o.Object != r.Object {
			taken = append(taken, np.GetName())
			continue
		}
		tasks.Go(func() {
			if err := c.DeleteNodePool(ctx, r.Cluster, np.GetName()); err != nil {
				mu.Lock()
				defer mu.Unlock()
				left[i], errs = sliceOf(np), append(errs, err)
			}
		})
	}
	tasks.Wait()
	slices.Sort(taken)
	return left, taken, errors.Join(errs...)
}
