package gke

import (
	"context"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Provides tells whether a cluster can have slices of a shape: by a node pool of
// it, whatever its size is now, or because GKE makes node pools by itself. A node
// pool whose shape cannot be read off it counts.
func (c *Client) Provides(ctx context.Context, name ClusterName, shape accelerator.Slice) (bool, error) {
	cluster, err := c.GetCluster(ctx, name)
	if err != nil {
		return false, err
	}
	if cluster.GetAutoscaling().GetEnableNodeAutoprovisioning() || cluster.GetAutopilot().GetEnabled() {
		return true, nil
	}
	for _, np := range cluster.GetNodePools() {
		if !tpuMachine(np) {
			continue
		}
		had, err := shapeOf(np)
		if err != nil || had.Name == "" || had.AcceleratorLabel == shape.AcceleratorLabel && had.Topology.String() == shape.Topology.String() {
			return true, nil
		}
	}
	return false, nil
}
