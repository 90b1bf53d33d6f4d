// Package gke is the Container API as this project uses it: clusters, node
// pools, operations and ownership. It knows GKE, never Terraform or cobra.
package gke

import (
	"fmt"
	"regexp"
	"strings"
)

// ClusterName is the resource path of a GKE cluster. Location is a zone
// (us-west4-a) or a region (us-west4).
type ClusterName struct {
	Project, Location, Cluster string
}

// clusterPath accepts domain-scoped projects (example.com:project) too.
var clusterPath = regexp.MustCompile(`^projects/([^/]+)/(?:locations|zones|regions)/([^/]+)/clusters/([^/]+)$`)

// ParseClusterName reads "projects/P/locations/L/clusters/C".
func ParseClusterName(s string) (ClusterName, error) {
	m := clusterPath.FindStringSubmatch(s)
	if m == nil {
		return ClusterName{}, fmt.Errorf("%q is not a cluster path: want projects/PROJECT/locations/LOCATION/clusters/CLUSTER, which is the id of a tpu_training_cluster", s)
	}
	return ClusterName{Project: m[1], Location: m[2], Cluster: m[3]}, nil
}

// String returns "projects/P/locations/L/clusters/C".
func (n ClusterName) String() string {
	return n.Parent() + "/clusters/" + n.Cluster
}

// Parent returns "projects/P/locations/L".
func (n ClusterName) Parent() string {
	return "projects/" + n.Project + "/locations/" + n.Location
}

// NodePool returns the path of a node pool of this cluster.
func (n ClusterName) NodePool(pool string) string {
	return n.String() + "/nodePools/" + pool
}

// Region returns the region of Location: us-west4 for us-west4-a.
func (n ClusterName) Region() string {
	if parts := strings.Split(n.Location, "-"); len(parts) == 3 {
		return parts[0] + "-" + parts[1]
	}
	return n.Location
}

// ParseNodePoolName reads "projects/P/locations/L/clusters/C/nodePools/NAME".
func ParseNodePoolName(s string) (ClusterName, string, error) {
	path, pool, ok := strings.Cut(s, "/nodePools/")
	n, err := ParseClusterName(path)
	if err != nil || !ok || pool == "" || strings.Contains(pool, "/") {
		return ClusterName{}, "", fmt.Errorf("%q is not a node pool path: want projects/PROJECT/locations/LOCATION/clusters/CLUSTER/nodePools/NAME", s)
	}
	return n, pool, nil
}

// Zonal tells whether the cluster's location is a zone.
func (n ClusterName) Zonal() bool { return n.Region() != n.Location }
