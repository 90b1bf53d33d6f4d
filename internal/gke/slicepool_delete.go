package gke

import (
	"context"
	"errors"
	"sync"
)

// DeleteSlicePool removes all of a pool's node pools, in parallel, and waits
// until they are gone. It returns what is left when ctx ended or GKE refused.
func (c *Client) DeleteSlicePool(ctx context.Context, r SlicePoolRef) (Slices, error) {
	mine, _, err := c.slicesOf(ctx, r, listNow)
	if errors.Is(err, NotFound) {
		return nil, nil // the cluster went, and its node pools with it
	}
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	left, errs := Slices{}, []error{}
	var tasks sync.WaitGroup
	for i, np := range mine {
		tasks.Go(func() {
			if err := c.DeleteNodePool(ctx, r.Cluster, np.GetName()); err != nil {
				mu.Lock()
				defer mu.Unlock()
				left[i], errs = sliceOf(np), append(errs, err)
			}
		})
	}
	tasks.Wait()
	return left, errors.Join(errs...)
}
