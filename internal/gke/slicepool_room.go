package gke

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"golang.org/x/sync/singleflight"
)

// GKE's limits on nodes (https://cloud.google.com/kubernetes-engine/quotas);
// each is raised on request, up to MaxNodes of a cluster.
const (
	usualNodes        = 15000 // of a cluster
	usualNodesPerPool = 1000  // of a node pool, per zone
)

// reservedAddresses of a subnetwork's primary range are Google's.
const reservedAddresses = 4

// CheckRoom asks whether the cluster has room for the pool: addresses for hosts
// and their pods, and nodes within GKE's limits. What is certain is the error;
// what may have been raised, or is known only about, is a warning. A cluster
// that is not there yet, or does not answer, has room.
func (c *Client) CheckRoom(ctx context.Context, p SlicePool) (warnings []string, err error) {
	np, err := p.NodePool(0, time.Unix(0, 0))
	if err != nil {
		return nil, err
	}
	cluster, err := c.looks.at(ctx, p.Cluster, c.GetCluster)
	if err != nil {
		cluster = &containerpb.Cluster{}
	}
	if err := p.allowedBy(cluster); err != nil {
		return nil, err
	}
	return p.room(cluster, np)
}

// room holds a pool of node pools like np against a cluster and what it has.
func (p SlicePool) room(cluster *containerpb.Cluster, np *containerpb.NodePool) (warnings []string, err error) {
	hosts := p.Shape.Hosts
	if hosts > usualNodesPerPool {
		warnings = append(warnings, fmt.Sprintf("A slice of %s is one node pool of %d nodes; GKE's usual limit is %d nodes per pool and zone. Ask Google whether it has been raised for this project, or choose a smaller slice.",
			p.Shape.Name, hosts, usualNodesPerPool))
	}
	there := 0
	for _, other := range p.others(cluster) {
		there += sizeOf(other)
	}
	all := there + p.Count*hosts
	switch {
	case all > MaxNodes:
		return warnings, fmt.Errorf("the cluster would have %d nodes, and a cluster has at most %d: at most %d slices fit besides what it has, so lower slice_count, or use another cluster",
			all, MaxNodes, max(0, (MaxNodes-there)/hosts))
	case all > usualNodes:
		warnings = append(warnings, fmt.Sprintf("The cluster would have %d nodes; GKE's usual limit is %d. Ask Google whether it has been raised for this project, or lower slice_count.", all, usualNodes))
	}
	if err := p.roomForNodes(cluster); err != nil {
		return warnings, err
	}
	more, err := p.roomForPods(cluster, np)
	if more != "" {
		warnings = append(warnings, more)
	}
	return warnings, err
}

// others are the cluster's node pools that are not this pool's.
func (p SlicePool) others(cluster *containerpb.Cluster) (out []*containerpb.NodePool) {
	for _, np := range cluster.GetNodePools() {
		if _, ok := SliceIndex(p.Name, np.GetName()); !ok {
			out = append(out, np)
		}
	}
	return out
}

// sizeOf is about how many nodes a node pool has: GKE tells how many it began
// with. That is exact for slices, which are never resized.
func sizeOf(np *containerpb.NodePool) int {
	return int(np.GetInitialNodeCount()) * max(1, len(np.GetLocations()))
}

func exact(np *containerpb.NodePool) bool {
	return OwnershipOf(np.GetConfig().GetResourceLabels()).Kind == KindSlice && !np.GetAutoscaling().GetEnabled()
}

// roomForNodes needs the primary range of the subnetwork, which the API tells
// only where GKE made it.
func (p SlicePool) roomForNodes(cluster *containerpb.Cluster) error {
	free, ok := addressesOf(cluster.GetIpAllocationPolicy().GetNodeIpv4CidrBlock())
	if free -= reservedAddresses; !ok || p.Count*p.Shape.Hosts <= free {
		return nil
	}
	return fmt.Errorf("%d slices of %d hosts need %d addresses for nodes, and the cluster's node range %s has %d: at most %d slices fit, or widen the range (gcloud compute networks subnets expand-ip-range)",
		p.Count, p.Shape.Hosts, p.Count*p.Shape.Hosts, cluster.GetIpAllocationPolicy().GetNodeIpv4CidrBlock(), free, free/p.Shape.Hosts)
}

// roomForPods holds the blocks that hosts take for their pods against the range
// they come from: the node pool's own, or the cluster's if that is the only one.
func (p SlicePool) roomForPods(cluster *containerpb.Cluster, np *containerpb.NodePool) (warning string, err error) {
	policy := cluster.GetIpAllocationPolicy()
	cidr, whose := np.GetNetworkConfig().GetPodIpv4CidrBlock(), "the node pools' pod range"
	var neighbours []*containerpb.NodePool
	if np.GetNetworkConfig().GetPodRange() == "" && cidr == "" {
		if len(policy.GetAdditionalPodRangesConfig().GetPodRangeNames()) > 0 {
			return "", nil // GKE chooses one that has room; the API does not tell their sizes
		}
		cidr, whose, neighbours = cmp.Or(policy.GetClusterIpv4CidrBlock(), cluster.GetClusterIpv4Cidr()), "the cluster's pod range", p.others(cluster)
	}
	total, ok := addressesOf(cidr)
	if !ok {
		return "", nil
	}
	block := podBlock(int(np.GetMaxPodsConstraint().GetMaxPodsPerNode()))
	var sure, about int
	for _, other := range neighbours {
		if r := other.GetNetworkConfig().GetPodRange(); r != "" && r != policy.GetClusterSecondaryRangeName() {
			continue // in a range of its own
		}
		taken := sizeOf(other) << (32 - cmp.Or(other.GetPodIpv4CidrSize(), cluster.GetNodeIpv4CidrSize(), 24))
		if about += taken; exact(other) {
			sure += taken
		}
	}
	slice := p.Shape.Hosts * block
	say := func(taken int) string {
		text := fmt.Sprintf("%d slices of %d hosts take %d addresses for pods, %d per host for up to %d pods, and %s %s has %d", p.Count, p.Shape.Hosts, p.Count*slice, block,
			np.GetMaxPodsConstraint().GetMaxPodsPerNode(), whose, cidr, total)
		if taken > 0 {
			text += fmt.Sprintf(", of which other node pools take %d", taken)
		}
		text += fmt.Sprintf(": at most %d slices fit", max(0, (total-taken)/slice))
		for pods := int(np.GetMaxPodsConstraint().GetMaxPodsPerNode()); pods > 8; pods /= 2 {
			if fits := max(8, pods/2); p.Count*p.Shape.Hosts*podBlock(fits) <= total-taken {
				text += fmt.Sprintf("; with node.max_pods = %d all of them do", fits)
				break
			}
		}
		return text + "; or add a pod range to the cluster (gcloud container clusters update " + p.Cluster.Cluster + " --location " + p.Cluster.Location + " --additional-pod-ipv4-ranges RANGE)"
	}
	switch need := p.Count * slice; {
	case need+sure > total:
		return "", fmt.Errorf("%s", say(sure))
	case need+about > total:
		return "Pods may not have enough addresses: " + say(about) + ".", nil
	}
	return "", nil
}

// podBlock is how many addresses a node takes for its pods: twice as many,
// rounded up to a power of two.
func podBlock(pods int) int {
	n := 1
	for n < 2*pods {
		n *= 2
	}
	return n
}

// addressesOf counts those of an IPv4 range; false if it is none, or only a
// wanted size (/14).
func addressesOf(cidr string) (int, bool) {
	r, err := netip.ParsePrefix(cidr)
	if err != nil || !r.Addr().Is4() {
		return 0, false
	}
	return 1 << (32 - r.Bits()), true
}

// looks keeps what a cluster looked like for a moment: all pools of a plan ask
// at about the same time.
type looks struct {
	asking singleflight.Group

	mu   sync.Mutex
	seen map[ClusterName]look
}

type look struct {
	when    time.Time
	cluster *containerpb.Cluster
	err     error
}

const lookLasts = 10 * time.Second

func (l *looks) at(ctx context.Context, n ClusterName, ask func(context.Context, ClusterName) (*containerpb.Cluster, error)) (*containerpb.Cluster, error) {
	found, err, _ := l.asking.Do(n.String(), func() (any, error) {
		if had, ok := l.lately(n); ok {
			return had.cluster, had.err
		}
		cluster, err := ask(ctx, n)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.seen == nil {
			l.seen = map[ClusterName]look{}
		}
		l.seen[n] = look{time.Now(), cluster, err}
		return cluster, err
	})
	if err != nil {
		return nil, err
	}
	return found.(*containerpb.Cluster), nil
}

func (l *looks) lately(n ClusterName) (look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	had, ok := l.seen[n]
	return had, ok && time.Since(had.when) < lookLasts
}
