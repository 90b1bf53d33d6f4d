package gke

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

func poolTarget(verb string, cluster ClusterName, pool string, zones []string) target {
	t := target{verb: verb + " node pool", object: cluster.NodePool(pool), zone: cluster.Location}
	if len(zones) == 1 {
		t.zone = zones[0]
	}
	return t
}

// How old a list of node pools may be, from when it was asked for.
const (
	// listForRefresh: one list for all slice pools that Terraform refreshes
	// before it plans, however long their number makes that.
	listForRefresh = time.Minute
	// listNow: for what is to be as it is now, asked by many at the same time.
	listNow = 2 * time.Second
)

// ListNodePools lists the node pools of a cluster. The list is shared by all
// who ask within seconds, and must not be changed; it is never one from before
// a write of this client.
func (c *Client) ListNodePools(ctx context.Context, cluster ClusterName) ([]*containerpb.NodePool, error) {
	return c.listNodePools(ctx, cluster, listNow)
}

// listNodePools lists the node pools of a cluster as they were at most age ago.
func (c *Client) listNodePools(ctx context.Context, cluster ClusterName, age time.Duration) ([]*containerpb.NodePool, error) {
	t := target{verb: "listing node pools of", object: cluster.String(), zone: cluster.Location}
	list, err := c.nodePools.Get(ctx, cluster.String(), age, func(ctx context.Context) ([]*containerpb.NodePool, error) {
		r, err := call(ctx, c, t, func(ctx context.Context) (*containerpb.ListNodePoolsResponse, error) {
			return c.api.ListNodePools(ctx, &containerpb.ListNodePoolsRequest{Parent: cluster.String()})
		})
		return r.GetNodePools(), err
	})
	var ours *Error
	if err != nil && !errors.As(err, &ours) { // ctx ended first
		err = &Error{Verb: t.verb, Object: t.object, Zone: t.zone, Cause: causeOfContext(ctx), Err: err}
	}
	return list, err
}

// write is operate for whatever changes a cluster's node pools: lists from
// before the request, before its acceptance or before its end are not shared
// any more.
func (c *Client) write(ctx context.Context, cluster ClusterName, t target, start func(context.Context) (*containerpb.Operation, error)) error {
	defer c.nodePools.Forget(cluster.String())
	return c.operate(ctx, cluster, t, nil, func(ctx context.Context) (*containerpb.Operation, error) {
		c.nodePools.Forget(cluster.String())
		defer c.nodePools.Forget(cluster.String())
		return start(ctx)
	})
}

// CreateNodePool creates a node pool and waits until GKE has made its nodes.
// sent, if not nil, is called before the first request that may take effect.
func (c *Client) CreateNodePool(ctx context.Context, cluster ClusterName, np *containerpb.NodePool, sent func()) error {
	return c.write(ctx, cluster, poolTarget("creating", cluster, np.GetName(), np.GetLocations()), func(ctx context.Context) (*containerpb.Operation, error) {
		if sent != nil {
			sent()
		}
		return c.api.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: cluster.String(), NodePool: np})
	})
}

// DeleteNodePool deletes a node pool and waits until it is gone; one that is
// gone already is no error.
func (c *Client) DeleteNodePool(ctx context.Context, cluster ClusterName, pool string) error {
	err := c.write(ctx, cluster, poolTarget("deleting", cluster, pool, nil), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: cluster.NodePool(pool)})
	})
	if errors.Is(err, NotFound) {
		return nil
	}
	return err
}

// UpdateNodePool sends one update, which GKE allows to change one facet, and
// waits for it.
func (c *Client) UpdateNodePool(ctx context.Context, cluster ClusterName, pool string, req *containerpb.UpdateNodePoolRequest) error {
	req.Name = cluster.NodePool(pool)
	return c.write(ctx, cluster, poolTarget("updating", cluster, pool, nil), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.UpdateNodePool(ctx, req)
	})
}

// ResizeNodePool sets the number of nodes per zone and waits for it.
func (c *Client) ResizeNodePool(ctx context.Context, cluster ClusterName, pool string, nodes int32) error {
	return c.write(ctx, cluster, poolTarget("resizing", cluster, pool, nil), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.SetNodePoolSize(ctx, &containerpb.SetNodePoolSizeRequest{Name: cluster.NodePool(pool), NodeCount: nodes})
	})
}
