package gke

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/googleapis/gax-go/v2"
)

func clusterTarget(verb string, n ClusterName) target {
	return target{verb: verb + " cluster", object: n.String(), zone: n.Location}
}

// GetCluster reads one cluster.
func (c *Client) GetCluster(ctx context.Context, n ClusterName) (*containerpb.Cluster, error) {
	return call(ctx, c, clusterTarget("reading", n), func(ctx context.Context) (*containerpb.Cluster, error) {
		return c.api.GetCluster(ctx, &containerpb.GetClusterRequest{Name: n.String()})
	})
}

// ListClusters lists the clusters of a location; "-" is every location. silent
// are zones and regions that did not answer GKE: of what they have the list may
// lack all.
func (c *Client) ListClusters(ctx context.Context, project, location string) (clusters []*containerpb.Cluster, silent []string, err error) {
	parent := "projects/" + project + "/locations/" + location
	r, err := call(ctx, c, target{verb: "listing clusters of", object: parent}, func(ctx context.Context) (*containerpb.ListClustersResponse, error) {
		return c.api.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: parent})
	})
	return r.GetClusters(), r.GetMissingZones(), err
}

// CreateCluster creates a cluster and waits until it runs. sent, if not nil, is
// called before the first request that may take effect.
func (c *Client) CreateCluster(ctx context.Context, n ClusterName, cluster *containerpb.Cluster, sent func()) error {
	return c.write(ctx, n, clusterTarget("creating", n), func(ctx context.Context) (*containerpb.Operation, error) {
		if sent != nil {
			sent()
		}
		return c.api.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: n.Parent(), Cluster: cluster})
	})
}

// DeleteCluster deletes a cluster with its node pools and waits until it is
// gone; one that is gone already is no error.
func (c *Client) DeleteCluster(ctx context.Context, n ClusterName) error {
	err := c.write(ctx, n, clusterTarget("deleting", n), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: n.String()})
	})
	if errors.Is(err, NotFound) {
		return nil
	}
	return err
}

// UpdateCluster sends one update, which GKE allows to change one facet, and
// waits for it.
func (c *Client) UpdateCluster(ctx context.Context, n ClusterName, u *containerpb.ClusterUpdate) error {
	return c.write(ctx, n, clusterTarget("updating", n), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{Name: n.String(), Update: u})
	})
}

// SetClusterLabels replaces the cluster's resource labels. The fingerprint is
// of the labels that were read; other labels meanwhile are a refusal.
func (c *Client) SetClusterLabels(ctx context.Context, n ClusterName, labels map[string]string, fingerprint string) error {
	return c.write(ctx, n, clusterTarget("labelling", n), func(ctx context.Context) (*containerpb.Operation, error) {
		return c.api.SetLabels(ctx, &containerpb.SetLabelsRequest{Name: n.String(), ResourceLabels: labels, LabelFingerprint: fingerprint})
	})
}

// SettleCluster waits while the cluster is being created, and returns it.
func (c *Client) SettleCluster(ctx context.Context, n ClusterName) (*containerpb.Cluster, error) {
	return c.clusterWhen(ctx, n, func(cluster *containerpb.Cluster, err error, _ time.Duration) bool {
		return err != nil || cluster.GetStatus() != containerpb.Cluster_PROVISIONING
	})
}

// createdCluster reads a cluster that is there, as GKE has said: reads may be
// behind that for a minute.
func (c *Client) createdCluster(ctx context.Context, n ClusterName) (*containerpb.Cluster, error) {
	return c.clusterWhen(ctx, n, func(_ *containerpb.Cluster, err error, waited time.Duration) bool {
		return !errors.Is(err, NotFound) || waited >= appears*c.cfg.PollInterval
	})
}

// clusterWhen reads a cluster, ever more seldom, until enough says so.
func (c *Client) clusterWhen(ctx context.Context, n ClusterName, enough func(cluster *containerpb.Cluster, err error, waited time.Duration) bool) (*containerpb.Cluster, error) {
	began := time.Now()
	for {
		waited := time.Since(began)
		cluster, err := c.GetCluster(ctx, n)
		if enough(cluster, err, waited) {
			return cluster, err
		}
		if err := gax.Sleep(ctx, c.slow(waited)); err != nil {
			return cluster, &Error{Verb: "waiting for cluster", Object: n.String(), Zone: n.Location, Cause: causeOfContext(ctx), Err: err}
		}
	}
}

// CA is the public certificate (PEM) that signs the cluster's API server.
func CA(cluster *containerpb.Cluster) ([]byte, error) {
	ca, err := base64.StdEncoding.DecodeString(cluster.GetMasterAuth().GetClusterCaCertificate())
	if err != nil {
		return nil, fmt.Errorf("its CA certificate is not base64: %w", err)
	}
	return ca, nil
}
