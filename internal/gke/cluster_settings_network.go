package gke

import (
	"net/netip"
	"net/url"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
)

const networkIsFixed = "GKE places a cluster in its network when it makes it"

var networkSettings = []Setting{
	text("network", "",
		func(c *containerpb.Cluster) string {
			return inProject(c, "global/networks/", c.GetNetworkConfig().GetNetwork(), c.GetNetwork())
		},
		func(c *containerpb.Cluster, v string) { c.Network = v }).fixed(networkIsFixed).comparing(samePath),
	text("subnetwork", "",
		func(c *containerpb.Cluster) string {
			n, _ := ParseClusterName("projects/p/locations/" + c.GetLocation() + "/clusters/c")
			return inProject(c, "regions/"+n.Region()+"/subnetworks/", c.GetNetworkConfig().GetSubnetwork(), c.GetSubnetwork())
		},
		func(c *containerpb.Cluster, v string) { c.Subnetwork = v }).fixed(networkIsFixed).comparing(samePath),
	text("ip_ranges.pods_range", "",
		func(c *containerpb.Cluster) string { return c.GetIpAllocationPolicy().GetClusterSecondaryRangeName() },
		func(c *containerpb.Cluster, v string) { field(&c.IpAllocationPolicy).ClusterSecondaryRangeName = v }).fixed(networkIsFixed),
	text("ip_ranges.pods_cidr", "",
		func(c *containerpb.Cluster) string { return c.GetIpAllocationPolicy().GetClusterIpv4CidrBlock() },
		func(c *containerpb.Cluster, v string) { field(&c.IpAllocationPolicy).ClusterIpv4CidrBlock = v }).fixed(networkIsFixed).comparing(sameRange),
	text("ip_ranges.services_range", "",
		func(c *containerpb.Cluster) string { return c.GetIpAllocationPolicy().GetServicesSecondaryRangeName() },
		func(c *containerpb.Cluster, v string) {
			field(&c.IpAllocationPolicy).ServicesSecondaryRangeName = v
		}).fixed(networkIsFixed),
	text("ip_ranges.services_cidr", "",
		func(c *containerpb.Cluster) string { return c.GetIpAllocationPolicy().GetServicesIpv4CidrBlock() },
		func(c *containerpb.Cluster, v string) { field(&c.IpAllocationPolicy).ServicesIpv4CidrBlock = v }).fixed(networkIsFixed).comparing(sameRange),
	{Name: "max_pods_per_node", Kind: Number,
		get: func(c *containerpb.Cluster) any {
			if n := c.GetDefaultMaxPodsConstraint().GetMaxPodsPerNode(); n > 0 {
				return int(n)
			}
			return nil
		},
		set: func(c *containerpb.Cluster, v any) {
			c.DefaultMaxPodsConstraint = &containerpb.MaxPodsConstraint{MaxPodsPerNode: int64(v.(int))}
		},
		why: "the pod ranges of nodes are cut to this size when the cluster is made"},
	flag("dataplane_v2", "",
		func(c *containerpb.Cluster) bool {
			return c.GetNetworkConfig().GetDatapathProvider() == containerpb.DatapathProvider_ADVANCED_DATAPATH
		},
		func(c *containerpb.Cluster, v bool) {
			field(&c.NetworkConfig).DatapathProvider = containerpb.DatapathProvider_LEGACY_DATAPATH
			if v {
				c.NetworkConfig.DatapathProvider = containerpb.DatapathProvider_ADVANCED_DATAPATH
			}
		}).fixed("GKE chooses how packets travel when it makes a cluster"),
	set("zones", facetZones,
		func(c *containerpb.Cluster) []string { return c.GetLocations() },
		func(c *containerpb.Cluster, v []string) { c.Locations = v }),
	flag("private_nodes", facetPrivateNodes,
		func(c *containerpb.Cluster) bool { return c.GetNetworkConfig().GetDefaultEnablePrivateNodes() },
		func(c *containerpb.Cluster, v bool) { field(&c.NetworkConfig).DefaultEnablePrivateNodes = &v }),
	text("dns.provider", facetDNS,
		func(c *containerpb.Cluster) string { return named(c.GetNetworkConfig().GetDnsConfig().GetClusterDns()) },
		func(c *containerpb.Cluster, v string) {
			dnsOf(c).ClusterDns = enum[containerpb.DNSConfig_Provider](containerpb.DNSConfig_Provider_value, v)
		}),
	text("dns.scope", facetDNS,
		func(c *containerpb.Cluster) string {
			return named(c.GetNetworkConfig().GetDnsConfig().GetClusterDnsScope())
		},
		func(c *containerpb.Cluster, v string) {
			dnsOf(c).ClusterDnsScope = enum[containerpb.DNSConfig_DNSScope](containerpb.DNSConfig_DNSScope_value, v)
		}),
	text("dns.domain", facetDNS,
		func(c *containerpb.Cluster) string {
			return c.GetNetworkConfig().GetDnsConfig().GetClusterDnsDomain()
		},
		func(c *containerpb.Cluster, v string) { dnsOf(c).ClusterDnsDomain = v }),
}

func dnsOf(c *containerpb.Cluster) *containerpb.DNSConfig {
	return field(&field(&c.NetworkConfig).DnsConfig)
}

// inProject is a network or subnetwork as a configuration of the same project
// names it: by its name, or by its path where it belongs to another project.
func inProject(c *containerpb.Cluster, kind, path, name string) string {
	if path == "" {
		return name
	}
	if name, ok := strings.CutPrefix(path, "projects/"+projectHaving(c)+"/"+kind); ok {
		return name
	}
	return path
}

// projectHaving is the project of a cluster that GKE has made.
func projectHaving(c *containerpb.Cluster) string {
	p, err := url.PathUnescape(project(c.GetSelfLink()))
	if err != nil {
		return ""
	}
	return p
}

// samePath compares networks, which may be written as NAME, as a path or as a
// link; where both say a project it must be the same.
func samePath(want, have any) bool {
	a, b := want.(string), have.(string)
	return lastPart(a) == lastPart(b) && (project(a) == "" || project(b) == "" || project(a) == project(b))
}

func project(path string) string {
	_, rest, ok := strings.Cut("/"+path, "/projects/")
	if !ok {
		return ""
	}
	p, _, _ := strings.Cut(rest, "/")
	return p
}

func lastPart(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// sameRange compares CIDRs; /14 means a range of that size wherever GKE found one.
func sameRange(want, have any) bool {
	a, b := want.(string), have.(string)
	if size, ok := strings.CutPrefix(a, "/"); ok {
		return strings.HasSuffix(b, "/"+size)
	}
	p, err := netip.ParsePrefix(a)
	q, err2 := netip.ParsePrefix(b)
	return a == b || err == nil && err2 == nil && p.Masked() == q.Masked()
}
