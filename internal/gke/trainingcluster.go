package gke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// TrainingCluster is the specification of a GKE cluster fit for TPU training:
// VPC-native, with Workload Identity unless its settings say otherwise, and
// with CPU pools for everything that needs no TPU.
type TrainingCluster struct {
	Name           ClusterName
	Owner          string // name of the configuration, or ""
	Object         string // which of the configuration's objects this is, or "": the cluster says whose it is
	MinVersion     string // of the control plane; "" is the channel's default
	ResourceLabels map[string]string
	Settings       Settings
	CPUPools       map[string]CPUPool
	Overrides      string // JSON of the API's cluster, merged into what the rest makes; or ""
	// Unknown names settings that have values which are not known yet: what needs
	// them is not checked. Only while planning.
	Unknown []string
}

// Hash digests what cannot change without another cluster.
func (t TrainingCluster) Hash() string {
	fixed := t.Settings.immutable()
	network, _ := fixed["network"].(string)
	subnetwork, _ := fixed["subnetwork"].(string)
	delete(fixed, "network")
	delete(fixed, "subnetwork")
	return SpecHash(struct {
		Network, Subnetwork string
		Fixed               map[string]any `json:",omitempty"`
	}{network, subnetwork, fixed})
}

func (t TrainingCluster) ownership(created time.Time) Ownership {
	return Ownership{Kind: KindCluster, Owner: t.Owner, Spec: t.Hash(), Object: t.Object, Created: created}
}

// WorkloadPool is the project's one Workload Identity pool.
func (n ClusterName) WorkloadPool() string {
	// A domain-scoped project (example.com:p) writes its pool as p.example.com.
	if domain, id, ok := strings.Cut(n.Project, ":"); ok {
		return id + "." + domain + ".svc.id.goog"
	}
	return n.Project + ".svc.id.goog"
}

// Request is the cluster to create. It fails only for overrides that are no
// part of a cluster.
func (t TrainingCluster) Request(now time.Time) (*containerpb.Cluster, error) {
	c := &containerpb.Cluster{
		Name:                   t.Name.Cluster,
		InitialClusterVersion:  t.MinVersion,
		IpAllocationPolicy:     &containerpb.IPAllocationPolicy{UseIpAliases: true},
		WorkloadIdentityConfig: &containerpb.WorkloadIdentityConfig{WorkloadPool: t.Name.WorkloadPool()},
		ResourceLabels:         t.ownership(now).Labels(t.ResourceLabels),
	}
	for _, s := range clusterSettings {
		if v, ok := t.Settings[s.Name]; ok {
			s.set(c, v)
		}
	}
	if c.GetWorkloadIdentityConfig().GetWorkloadPool() == "" {
		c.WorkloadIdentityConfig = nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.CPUPools)) {
		c.NodePools = append(c.NodePools, t.cpuPool(name, t.CPUPools[name], t.ownershipOfPool("", now)))
	}
	return t.withOverrides(c)
}

func channel(name string) containerpb.ReleaseChannel_Channel {
	return containerpb.ReleaseChannel_Channel(containerpb.ReleaseChannel_Channel_value[name])
}

// CreateTrainingCluster creates the cluster and waits until it runs. A cluster
// of this name that an earlier, killed run of this configuration made is
// adopted. The cluster is returned, if there is one, also with an error.
func (c *Client) CreateTrainingCluster(ctx context.Context, t TrainingCluster) (cluster *containerpb.Cluster, adopted bool, err error) {
	now, sent := time.Now(), false
	request, err := t.Request(now)
	if err != nil {
		return nil, false, err
	}
	err = c.CreateCluster(ctx, t.Name, request, func() { sent = true })
	switch {
	case errors.Is(err, AlreadyExists):
		found, getErr := c.createdCluster(ctx, t.Name)
		if getErr != nil {
			return nil, false, getErr
		}
		if why := t.ownership(now).Adopts(OwnershipOf(found.GetResourceLabels()), now); why != nil {
			return nil, false, amend(err, func(e *Error) {
				e.Message = fmt.Sprintf("cluster %s already exists, and this configuration does not take it over: %v.\nIf it is yours, import it: terraform import ADDRESS %s\nOtherwise choose another name", t.Name.Cluster, why, t.Name)
			})
		}
		if found, err = c.SettleCluster(ctx, t.Name); err == nil {
			err = usable(t.Name, found)
		}
		return found, t.takes(found), err
	case err != nil && !sent:
		return nil, false, err
	}
	if err == nil {
		cluster, err = c.createdCluster(ctx, t.Name)
		return cluster, false, err
	}
	// It failed or we stopped waiting: whatever GKE has by now is the caller's to keep.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)
	defer cancel()
	cluster, getErr := c.GetCluster(last, t.Name)
	if getErr != nil {
		return nil, false, err
	}
	if why := t.ownership(now).Adopts(OwnershipOf(cluster.GetResourceLabels()), now); why != nil {
		return nil, false, err
	}
	return cluster, t.takes(cluster), err
}

// takes tells whether t takes over a cluster that was another's. The reply to
// t's own request may have been lost: then the cluster is nobody else's.
func (t TrainingCluster) takes(c *containerpb.Cluster) bool {
	own := OwnershipOf(c.GetResourceLabels()).Object
	return own == "" || own != t.Object
}

// usable is the error of a cluster that came up in a state that does not work.
func usable(n ClusterName, cluster *containerpb.Cluster) error {
	if cluster.GetStatus() != containerpb.Cluster_ERROR {
		return nil
	}
	return operationError("creating cluster", n.String(), n.Location, 0, cluster.GetStatusMessage())
}

// UpdateTrainingCluster brings a running cluster from what GKE has to t, one
// operation per facet, in an order that is safe: first the control plane, then
// the CPU pools, new ones before old ones go. owned names the CPU pools that
// this configuration had so far: of those, and of no others, the ones that it
// made are deleted when t does not want them any more. It goes by what GKE has,
// so that after an interrupted run the next one goes on.
func (c *Client) UpdateTrainingCluster(ctx context.Context, t TrainingCluster, owned []string) error {
	cluster, err := c.SettleCluster(ctx, t.Name)
	if err != nil {
		return err
	}
	if err := usable(t.Name, cluster); err != nil {
		return err
	}
	if err := c.change(ctx, t, cluster); err != nil {
		return err
	}
	if _, says := t.Settings["workload_identity"]; !says { // new pools go by what the cluster has
		settings := Settings{"workload_identity": cluster.GetWorkloadIdentityConfig().GetWorkloadPool() != ""}
		maps.Copy(settings, t.Settings)
		t.Settings = settings
	}
	return c.updateCPUPools(ctx, t, owned)
}
