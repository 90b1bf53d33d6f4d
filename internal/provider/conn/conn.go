// Package conn is what the provider's configuration becomes: the clients and
// defaults that every resource gets. It decides nothing and knows no resource.
package conn

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"golang.org/x/sync/singleflight"

	"github.com/tpu-training/terraform-provider-tpu/internal/compute"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/share"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Reacher finds how to reach a GKE cluster's API server.
type Reacher interface {
	Access(ctx context.Context, n gke.ClusterName) (kube.Access, error)
}

// Data is handed to every resource and data source at Configure. One Data
// lives as long as one provider process; its caches never outlive it.
type Data struct {
	GKE           *gke.Client
	Compute       *compute.Client
	Project       string // default project, or ""
	Location      string // default zone or region, or ""
	Owner         string // name of this configuration, or ""
	DefaultLabels map[string]string
	Clusters      Reacher
	// Partial: some of the provider's configuration is not known yet (it comes
	// from a resource that this apply creates), so what is empty here may not be
	// empty in the end. Only while planning.
	Partial bool
	Names   Names // of slice pools, by id
	Coming  Coming
	Shares  Shares // of slice pools, in queues

	asking  singleflight.Group                         // by cluster path
	uses    share.Answers[map[string]training.PoolUse] // by cluster path
	mu      sync.Mutex
	clients map[gke.ClusterName]*kube.Client
}

// Topology asks Compute Engine for that of a cluster's workload policies.
func (d *Data) Topology(cluster gke.ClusterName) gke.PolicyTopology {
	return func(ctx context.Context, policy string) (string, error) {
		return d.Compute.Topology(ctx, compute.Policy{Project: cluster.Project, Region: cluster.Region(), Name: policy})
	}
}

// Cluster returns a client of the cluster at path
// (projects/P/locations/L/clusters/C), one per cluster and run.
func (d *Data) Cluster(ctx context.Context, path string) (*kube.Client, error) {
	name, err := gke.ParseClusterName(path)
	if err != nil {
		return nil, err
	}
	if c := d.client(name); c != nil {
		return c, nil
	}
	// One question to GKE for everybody who asks at the same time; another
	// cluster's answer is not waited for.
	found, err, _ := d.asking.Do(name.String(), func() (any, error) {
		if c := d.client(name); c != nil { // an answer that came since
			return c, nil
		}
		access, err := d.Clusters.Access(ctx, name)
		if err != nil {
			return nil, err
		}
		c, err := kube.Connect(access)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.clients == nil {
			d.clients = map[gke.ClusterName]*kube.Client{}
		}
		d.clients[name] = c
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(*kube.Client), nil
}

// Forget drops the client of a cluster that was deleted or made anew: the next
// one of the same name has another address and other certificates.
func (d *Data) Forget(name gke.ClusterName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clients, name)
}

func (d *Data) client(name gke.ClusterName) *kube.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clients[name]
}

// From unpacks what the framework passes to Configure. It returns nil before
// the provider is configured (validation, say), which is no error.
func From(providerData any, diags *diag.Diagnostics) *Data {
	if providerData == nil {
		return nil
	}
	d, ok := providerData.(*Data)
	if !ok {
		diags.AddError("Internal error", fmt.Sprintf("the provider passed a %T where a *conn.Data belongs; please report this", providerData))
		return nil
	}
	return d
}
