package conn

import (
	"context"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Occupancy tells which TPU slices of a cluster run which jobs, by node pool,
// as it was at most age ago. Nodes and pods are listed once for all who ask
// within that time, and the answer must not be changed.
func (d *Data) Occupancy(ctx context.Context, cluster string, age time.Duration) (map[string]training.PoolUse, error) {
	k, err := d.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return d.uses.Get(ctx, cluster, age, func(ctx context.Context) (map[string]training.PoolUse, error) {
		return training.Occupancy(ctx, k)
	})
}
