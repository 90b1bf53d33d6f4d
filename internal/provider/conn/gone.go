package conn

import (
	"context"
	"errors"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Gone tells whether err, met while working on the cluster at path, means that
// the cluster does not exist any more or is being deleted, and so everything
// on it. A cluster that merely does not answer is not gone.
func (d *Data) Gone(ctx context.Context, path string, err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, gke.NotFound) {
		return true
	}
	// The API server of a deleted cluster does not answer, and another cluster
	// may already have its address and refuse our credentials.
	if d.GKE == nil || !(kube.Unreachable(err) || kube.Untrusted(err) || errors.Is(err, gke.Unavailable)) {
		return false
	}
	name, parseErr := gke.ParseClusterName(path)
	if parseErr != nil {
		return false
	}
	cluster, getErr := d.GKE.GetCluster(ctx, name)
	if getErr != nil {
		return errors.Is(getErr, gke.NotFound)
	}
	return cluster.GetStatus() == containerpb.Cluster_STOPPING
}
