package fakegke

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// checkCluster refuses what GKE refuses of a cluster that is complete, be it
// new or updated. It looks at nothing but the cluster.
func checkCluster(c *containerpb.Cluster) error {
	for _, check := range []func(*containerpb.Cluster) error{checkEndpoints, checkIdentity, checkAutoprovisioning, checkObservability, checkNetworkFeatures, checkAutopilot} {
		if err := check(c); err != nil {
			return err
		}
	}
	return checkLabels(c.ResourceLabels)
}

// maxAuthorizedNetworks is GKE's limit for public endpoints.
const maxAuthorizedNetworks = 100

func checkEndpoints(c *containerpb.Cluster) error {
	ends := c.ControlPlaneEndpointsConfig
	ips, networks := ends.GetIpEndpointsConfig(), ends.GetIpEndpointsConfig().GetAuthorizedNetworksConfig()
	private := !ips.GetEnablePublicEndpoint()
	if !ips.GetEnabled() && !ends.GetDnsEndpointConfig().GetAllowExternalTraffic() {
		return invalid("The IP-based endpoints can be disabled only if the DNS-based endpoint allows external traffic.")
	}
	if private && ips.GetEnabled() && !networks.GetEnabled() { // GoogleCloudPlatform/magic-modules pull request 8338
		return invalid("Master authorized networks must be enabled if private endpoint is enabled.")
	}
	if cidr := c.PrivateClusterConfig.GetMasterIpv4CidrBlock(); cidr != "" {
		if ips.GetPrivateEndpointSubnetwork() != "" { // terraform-google-modules/terraform-google-kubernetes-engine issue 2119
			return invalid("When masterIpv4Cidr is set, privateEndpointSubnetwork must be unset.")
		}
		if p, err := netip.ParsePrefix(cidr); err != nil || p.Bits() != 28 || p.Masked() != p {
			return invalid("Invalid master_ipv4_cidr_block %q: it must be a /28 range.", cidr)
		}
	}
	if !networks.GetEnabled() && len(networks.GetCidrBlocks()) > 0 {
		return invalid("Master authorized networks must be enabled to specify CIDR blocks.")
	}
	if n := len(networks.GetCidrBlocks()); n > maxAuthorizedNetworks {
		return invalid("Invalid master authorized networks: %d CIDR blocks, the limit is %d.", n, maxAuthorizedNetworks)
	}
	for _, block := range networks.GetCidrBlocks() {
		p, err := netip.ParsePrefix(block.CidrBlock)
		if err != nil || p.Masked() != p {
			return invalid("Invalid master authorized networks: network %q is not a CIDR block.", block.CidrBlock)
		}
		if private && ips.GetEnabled() && !isReserved(p) { // terraform-google-modules/terraform-google-kubernetes-engine issue 153
			return invalid("Invalid master authorized networks: network %q is not a reserved network, which is required for private endpoints", block.CidrBlock)
		}
	}
	return nil
}

// reservedRanges are the private ranges that GKE accepts (VPC's valid ranges
// for subnetworks that are not public).
var reservedRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
}

func isReserved(p netip.Prefix) bool {
	return slices.ContainsFunc(reservedRanges, func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Contains(p.Addr()) })
}

func checkIdentity(c *containerpb.Cluster) error {
	pool := c.WorkloadIdentityConfig.GetWorkloadPool()
	_, path, _ := strings.Cut(c.SelfLink, "/projects/")
	project, _, _ := strings.Cut(path, "/")
	if domain, id, ok := strings.Cut(project, ":"); ok { // domain-scoped projects
		project = id + "." + domain
	}
	if want := project + ".svc.id.goog"; pool != "" && pool != want {
		return invalid("Currently, the only supported Workload Pool is %q, got %q.", want, pool)
	}
	return nil
}

func checkAutoprovisioning(c *containerpb.Cluster) error {
	a := c.Autoscaling
	limits := map[string]bool{}
	for _, l := range a.GetResourceLimits() {
		if l.ResourceType == "" {
			return invalid("Resource type of a resource limit must be specified.")
		}
		if limits[l.ResourceType] {
			return invalid("Resource limit for %s is specified more than once.", l.ResourceType)
		}
		limits[l.ResourceType] = true
		if l.Minimum < 0 || l.Maximum < l.Minimum {
			return invalid("Resource limit for %s is invalid: minimum %d, maximum %d.", l.ResourceType, l.Minimum, l.Maximum)
		}
	}
	if a.GetEnableNodeAutoprovisioning() && !c.Autopilot.GetEnabled() && (!limits["cpu"] || !limits["memory"]) {
		// hashicorp/terraform-provider-google issue 24232
		return invalid("Resource limits for cpu, memory must be specified when enabling node autoprovisioning.")
	}
	if !a.GetEnableNodeAutoprovisioning() && len(limits) > 0 {
		return invalid("Resource limits can be specified only when node autoprovisioning is enabled.")
	}
	return checkZones(place{location: c.Location}, a.GetAutoprovisioningLocations())
}

func checkObservability(c *containerpb.Cluster) error {
	log := c.LoggingConfig.GetComponentConfig().GetEnableComponents()
	if len(log) > 0 && !slices.Contains(log, containerpb.LoggingComponentConfig_SYSTEM_COMPONENTS) {
		return invalid("SYSTEM_COMPONENTS must be enabled when other logging components are enabled.")
	}
	mon := c.MonitoringConfig.GetComponentConfig().GetEnableComponents()
	if len(mon) > 0 && !slices.Contains(mon, containerpb.MonitoringComponentConfig_SYSTEM_COMPONENTS) {
		return invalid("SYSTEM_COMPONENTS must be enabled when other monitoring components are enabled.")
	}
	return nil
}

func checkNetworkFeatures(c *containerpb.Cluster) error {
	advanced := c.NetworkConfig.GetDatapathProvider() == containerpb.DatapathProvider_ADVANCED_DATAPATH
	if advanced && c.NetworkPolicy.GetEnabled() {
		return invalid("Enabling NetworkPolicy for clusters with DatapathProvider=ADVANCED_DATAPATH is not allowed.")
	}
	if !advanced && c.NetworkConfig.GetEnableFqdnNetworkPolicy() {
		return invalid("FQDN network policy needs DatapathProvider=ADVANCED_DATAPATH.")
	}
	if !advanced && c.NetworkConfig.GetEnableMultiNetworking() {
		return invalid("Multi-networking needs DatapathProvider=ADVANCED_DATAPATH.")
	}
	if d := c.NetworkConfig.GetDnsConfig(); d.GetClusterDns() != containerpb.DNSConfig_CLOUD_DNS {
		if d.GetClusterDnsScope() == containerpb.DNSConfig_VPC_SCOPE || d.GetAdditiveVpcScopeDnsDomain() != "" {
			return invalid("VPC scope needs Cloud DNS as the cluster's DNS provider.")
		}
	}
	return nil
}

func checkAutopilot(c *containerpb.Cluster) error {
	if !c.Autopilot.GetEnabled() {
		return nil
	}
	if (place{location: c.Location}).zonal() {
		return invalid("Autopilot clusters must be regional clusters.")
	}
	if len(c.Autoscaling.GetResourceLimits()) > 0 {
		return invalid("Resource limits cannot be specified for Autopilot clusters.")
	}
	return nil
}

var (
	labelKey   = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]*$`)
	labelValue = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]*$`)
)

// Google Cloud's limits: labels per resource, and characters of a key or value.
// The patterns do not count them: 63 copies of these classes take megabytes.
const (
	maxLabels    = 64
	maxLabelText = 63
)

// checkLabels holds resource labels to Google Cloud's rules for labels.
func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid("Resource has %d labels, the limit is %d.", len(labels), maxLabels)
	}
	for key, value := range labels {
		if !labelKey.MatchString(key) || utf8.RuneCountInString(key) > maxLabelText {
			return invalid("Invalid value for field \"cluster.resource_labels\": key %q. Keys must start with a lowercase letter and contain at most 63 lowercase letters, numbers, underscores and hyphens.", key)
		}
		if !labelValue.MatchString(value) || utf8.RuneCountInString(value) > maxLabelText {
			return invalid("Invalid value for field \"cluster.resource_labels\": value %q of %q. Values contain at most 63 lowercase letters, numbers, underscores and hyphens.", value, key)
		}
	}
	return nil
}
