package fakegke

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// Subnetwork is a subnetwork of a VPC network that clusters can be put into.
type Subnetwork struct {
	Project, Region, Network, Name string
	Range                          string            // of nodes: 10.0.0.0/20
	Secondary                      map[string]string // ranges for pods and services, by name
}

// WithSubnetworks registers subnetworks. In a project that has some, a cluster
// must use one of them, or the network named default, and only ranges that
// exist. In other projects whatever subnetwork and range a cluster names is
// taken to exist.
func WithSubnetworks(s ...Subnetwork) Option {
	return func(o *options) { o.subnetworks = append(o.subnetworks, s...) }
}

const (
	defaultNetwork  = "default"
	defaultPodBits  = 14 // of the range for pods that GKE makes
	defaultServices = "34.118.224.0/20"
	maxServiceBits  = 27
	minPods         = 8 // per node
	maxPods         = 256
)

var (
	privateSpace = netip.MustParsePrefix("10.0.0.0/8")
	// autoSubnetworks is where networks in auto mode, such as default, have
	// their subnetworks.
	autoSubnetworks = netip.MustParsePrefix("10.128.0.0/9")
)

// vpc is where a cluster's nodes are.
type vpc struct {
	project, network, subnetwork string
	known                        *Subnetwork // nil for one that is taken to exist
}

// link is how Google writes the network in messages.
func (v vpc) link() string {
	return fmt.Sprintf("https://www.googleapis.com/compute/v1/projects/%s/global/networks/%s", v.project, v.network)
}

// findVPC resolves the network and subnetwork that a cluster names, by name or
// by path. A path may be of another project, whose network is shared.
func (s *Server) findVPC(c *containerpb.Cluster, at place) (vpc, error) {
	v := vpc{project: at.project, network: defaultNetwork, subnetwork: defaultNetwork}
	for _, given := range []struct {
		value string
		name  *string
	}{{c.Network, &v.network}, {c.Subnetwork, &v.subnetwork}} {
		if given.value == "" {
			continue
		}
		parts := strings.Split(given.value, "/")
		*given.name = parts[len(parts)-1]
		for i, part := range parts {
			if part == "projects" && i+1 < len(parts) {
				v.project = parts[i+1]
			}
		}
	}
	registered := false
	for i, sub := range s.opts.subnetworks {
		if sub.Project != v.project {
			continue
		}
		registered = true
		if sub.Region == at.region() && sub.Name == v.subnetwork {
			v.known = &s.opts.subnetworks[i]
		}
	}
	switch {
	case v.known != nil && v.known.Network != v.network:
		return v, invalid("Subnetwork %q is not in network %q, it is in %q.", v.subnetwork, v.network, v.known.Network)
	case v.known == nil && v.network == defaultNetwork && v.subnetwork == defaultNetwork:
		v.known = &Subnetwork{Project: v.project, Region: at.region(), Network: defaultNetwork, Name: defaultNetwork}
	case v.known == nil && registered:
		return v, invalid("Google Compute Engine: The resource 'projects/%s/regions/%s/subnetworks/%s' was not found.", v.project, at.region(), v.subnetwork)
	}
	return v, nil
}

// placeInNetwork gives a new cluster its ranges of addresses, or refuses those
// it asks for. It looks at the ranges of the clusters in st.
func (s *Server) placeInNetwork(st state, c *containerpb.Cluster, at place) error {
	v, err := s.findVPC(c, at)
	if err != nil {
		return err
	}
	c.Network, c.Subnetwork = v.network, v.subnetwork
	n := ensure(&c.NetworkConfig)
	n.Network = fmt.Sprintf("projects/%s/global/networks/%s", v.project, v.network)
	n.Subnetwork = fmt.Sprintf("projects/%s/regions/%s/subnetworks/%s", v.project, at.region(), v.subnetwork)
	ip := ensure(&c.IpAllocationPolicy)
	if ip.UseRoutes {
		return invalid("Routes-based clusters are not available here: set use_ip_aliases.")
	}
	if name := ip.ClusterSecondaryRangeName; name != "" && name == ip.ServicesSecondaryRangeName { // gruntwork-io/terraform-google-gke issue 118
		return invalid("Pod secondary range name (%s) should not be the same as service secondary range name.", name)
	}
	if pods := c.DefaultMaxPodsConstraint.GetMaxPodsPerNode(); pods < minPods || pods > maxPods {
		return invalid("Default max pods per node must be between %d and %d, got %d.", minPods, maxPods, pods)
	}
	used := s.usedRanges(st, c, v)
	pods, err := v.choose("Pod", "pods", &ip.ClusterSecondaryRangeName, cmp.Or(ip.ClusterIpv4CidrBlock, c.ClusterIpv4Cidr), c, used)
	if err != nil {
		return err
	}
	// A node's pods need a range of their own, and GKE wants room for eight
	// nodes at least (rancher/rancher issue 36254).
	if most := int(c.NodeIpv4CidrSize) - 3; pods.Bits() > most {
		return invalid("Cluster CIDR range is greater than maximum (%d > %d).", pods.Bits(), most)
	}
	services := netip.MustParsePrefix(defaultServices) // GKE's own, the same for all clusters
	if asked := cmp.Or(ip.ServicesIpv4CidrBlock, c.ServicesIpv4Cidr); asked != "" || ip.ServicesSecondaryRangeName != "" {
		if services, err = v.choose("Services", "services", &ip.ServicesSecondaryRangeName, asked, c, append(used, pods)); err != nil {
			return err
		}
	}
	if services.Bits() > maxServiceBits {
		return invalid("Services CIDR range is greater than maximum (%d > %d).", services.Bits(), maxServiceBits)
	}
	ip.UseIpAliases = true
	ip.ClusterIpv4CidrBlock, ip.ClusterIpv4Cidr, c.ClusterIpv4Cidr = pods.String(), pods.String(), pods.String()
	ip.ServicesIpv4CidrBlock, ip.ServicesIpv4Cidr, c.ServicesIpv4Cidr = services.String(), services.String(), services.String()
	return s.checkPodRanges(c)
}

// choose is the range for pods or for services: one that exists in the
// subnetwork by name, one that is asked for, or the first that is free.
func (v vpc) choose(title, what string, name *string, asked string, c *containerpb.Cluster, used []netip.Prefix) (netip.Prefix, error) {
	if *name != "" {
		if asked != "" {
			return netip.Prefix{}, invalid("%s CIDR block cannot be specified together with secondary range %q.", title, *name)
		}
		if v.known != nil {
			p, err := netip.ParsePrefix(v.known.Secondary[*name])
			if err != nil { // fabianlee/gcp-gke-clusters-ingress issue 2
				return p, invalid("%s secondary range %q not found in network %q, subnetwork %q.", title, *name, v.link(), v.subnetwork)
			}
			return p, nil
		}
		bits := defaultPodBits
		if what == "services" {
			bits = 20
		}
		return v.free(what, bits, c, used)
	}
	*name = fmt.Sprintf("gke-%s-%s-%s", c.Name, what, digest(8, c.SelfLink))
	if bits, ok := strings.CutPrefix(cmp.Or(asked, fmt.Sprintf("/%d", defaultPodBits)), "/"); ok {
		p, err := netip.ParsePrefix("10.0.0.0/" + bits)
		if err != nil || p.Bits() < privateSpace.Bits() {
			return p, invalid("Invalid CIDR %q for %s.", asked, what)
		}
		return v.free(what, p.Bits(), c, used)
	}
	p, err := netip.ParsePrefix(asked)
	if err != nil || !p.Addr().Is4() || p.Masked() != p {
		return p, invalid("Invalid CIDR %q for %s.", asked, what)
	}
	for _, other := range used {
		if p.Overlaps(other) {
			return p, invalid("Requested CIDR %s for %s is not available in network %q for cluster.", p, what, v.network)
		}
	}
	return p, nil
}

// free is the first range of a size that nothing else uses.
func (v vpc) free(what string, bits int, c *containerpb.Cluster, used []netip.Prefix) (netip.Prefix, error) {
	p := netip.PrefixFrom(privateSpace.Addr(), bits)
	for privateSpace.Contains(p.Addr()) {
		clear := true
		for _, other := range used {
			clear = clear && !p.Overlaps(other)
		}
		if clear {
			return p, nil
		}
		p = netip.PrefixFrom(after(p), bits)
	}
	return p, invalid("The network %q does not have available private IP space in %s to reserve a /%d block for %s for cluster %s.", v.network, privateSpace, bits, what, c.Name)
}

// after is the first address beyond an IPv4 range.
func after(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	n := uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
	n += 1 << (32 - p.Bits())
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// usedRanges are those that a new range in c's network must not overlap.
func (s *Server) usedRanges(st state, c *containerpb.Cluster, v vpc) []netip.Prefix {
	used := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/14")} // where people put nodes
	if v.network == defaultNetwork {
		used = append(used, autoSubnetworks)
	}
	add := func(cidr string) {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			used = append(used, p)
		}
	}
	for _, sub := range s.opts.subnetworks {
		if sub.Project != v.project || sub.Network != v.network {
			continue
		}
		add(sub.Range)
		for _, cidr := range sub.Secondary {
			add(cidr)
		}
	}
	for _, other := range st.clusters {
		if other.NetworkConfig.GetNetwork() == c.NetworkConfig.GetNetwork() {
			add(other.ClusterIpv4Cidr)
			add(other.ServicesIpv4Cidr)
		}
	}
	return used
}

// checkPodRanges refuses further ranges for pods that the subnetwork lacks.
func (s *Server) checkPodRanges(c *containerpb.Cluster) error {
	at := place{location: c.Location}
	for _, sub := range s.opts.subnetworks {
		if fmt.Sprintf("projects/%s/regions/%s/subnetworks/%s", sub.Project, at.region(), sub.Name) != c.NetworkConfig.GetSubnetwork() || sub.Region != at.region() {
			continue
		}
		for _, name := range c.IpAllocationPolicy.GetAdditionalPodRangesConfig().GetPodRangeNames() {
			if sub.Secondary[name] == "" {
				v := vpc{project: sub.Project, network: sub.Network}
				return invalid("Pod secondary range %q not found in network %q, subnetwork %q.", name, v.link(), sub.Name)
			}
		}
	}
	return nil
}

// fillNetwork completes what a new cluster says of its network, but for ranges.
func fillNetwork(c *containerpb.Cluster, at place) {
	n := ensure(&c.NetworkConfig)
	if n.DatapathProvider == containerpb.DatapathProvider_DATAPATH_PROVIDER_UNSPECIFIED {
		n.DatapathProvider = containerpb.DatapathProvider_LEGACY_DATAPATH
	}
	ensure(&n.ServiceExternalIpsConfig)
	if n.DefaultEnablePrivateNodes == nil {
		n.DefaultEnablePrivateNodes = proto.Bool(false)
	}
	if ip := ensure(&c.IpAllocationPolicy); ip.StackType == containerpb.StackType_STACK_TYPE_UNSPECIFIED {
		ip.StackType = containerpb.StackType_IPV4
	}
	if c.DefaultMaxPodsConstraint.GetMaxPodsPerNode() == 0 {
		c.DefaultMaxPodsConstraint = &containerpb.MaxPodsConstraint{MaxPodsPerNode: 110}
	}
	c.NodeIpv4CidrSize = podRange(c.DefaultMaxPodsConstraint.MaxPodsPerNode)
	ends := ensure(&c.ControlPlaneEndpointsConfig)
	dns := ensure(&ends.DnsEndpointConfig)
	dns.Endpoint = fmt.Sprintf("gke-%s-%d.%s.gke.goog", digest(40, c.Id), projectNumber(at.project), at.location)
	if dns.AllowExternalTraffic == nil {
		dns.AllowExternalTraffic = proto.Bool(false)
	}
	ips := ensure(&ends.IpEndpointsConfig)
	if ips.Enabled == nil {
		ips.Enabled = proto.Bool(true)
	}
	if ips.EnablePublicEndpoint == nil {
		ips.EnablePublicEndpoint = proto.Bool(true)
	}
}
