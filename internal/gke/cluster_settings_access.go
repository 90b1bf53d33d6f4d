package gke

import (
	"maps"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
)

func endpoints(c *containerpb.Cluster) *containerpb.ControlPlaneEndpointsConfig_IPEndpointsConfig {
	return field(&field(&c.ControlPlaneEndpointsConfig).IpEndpointsConfig)
}

func authorized(c *containerpb.Cluster) *containerpb.MasterAuthorizedNetworksConfig {
	return c.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetAuthorizedNetworksConfig()
}

// accessSettings are how the control plane is reached. One operation changes
// them together, so that no moment exists in which no way in is left.
var accessSettings = []Setting{
	flag("control_plane.dns_endpoint", facetEndpoints,
		func(c *containerpb.Cluster) bool {
			return c.GetControlPlaneEndpointsConfig().GetDnsEndpointConfig().GetAllowExternalTraffic()
		},
		func(c *containerpb.Cluster, v bool) {
			field(&field(&c.ControlPlaneEndpointsConfig).DnsEndpointConfig).AllowExternalTraffic = &v
		}),
	flag("control_plane.ip_endpoint", facetEndpoints,
		func(c *containerpb.Cluster) bool {
			e := c.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig()
			return e.GetEnabled() || e == nil
		},
		func(c *containerpb.Cluster, v bool) { endpoints(c).Enabled = &v }),
	flag("control_plane.private_endpoint", facetEndpoints,
		func(c *containerpb.Cluster) bool {
			e := c.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig()
			return e != nil && e.EnablePublicEndpoint != nil && !e.GetEnablePublicEndpoint()
		},
		func(c *containerpb.Cluster, v bool) { public := !v; endpoints(c).EnablePublicEndpoint = &public }),
	flag("control_plane.global_access", facetEndpoints,
		func(c *containerpb.Cluster) bool {
			return c.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetGlobalAccess()
		},
		func(c *containerpb.Cluster, v bool) { endpoints(c).GlobalAccess = &v }),
	{Name: "control_plane.authorized_networks", Kind: Map, facet: facetEndpoints, Wakes: []string{"control_plane.google_cloud_access"},
		get: func(c *containerpb.Cluster) any {
			if !authorized(c).GetEnabled() {
				return nil
			}
			m := map[string]string{}
			for _, b := range authorized(c).GetCidrBlocks() {
				m[b.GetCidrBlock()] = b.GetDisplayName()
			}
			return m
		},
		set: func(c *containerpb.Cluster, v any) {
			a := field(&endpoints(c).AuthorizedNetworksConfig)
			a.Enabled, a.CidrBlocks = true, nil
			blocks := v.(map[string]string)
			for _, cidr := range slices.Sorted(maps.Keys(blocks)) {
				a.CidrBlocks = append(a.CidrBlocks, &containerpb.MasterAuthorizedNetworksConfig_CidrBlock{CidrBlock: cidr, DisplayName: blocks[cidr]})
			}
		}},
	flag("control_plane.google_cloud_access", facetEndpoints,
		func(c *containerpb.Cluster) bool { return authorized(c).GetGcpPublicCidrsAccessEnabled() },
		func(c *containerpb.Cluster, v bool) {
			if v || authorized(c).GetEnabled() { // there is nothing to shut where every network has access
				field(&endpoints(c).AuthorizedNetworksConfig).GcpPublicCidrsAccessEnabled = &v
			}
		}).alwaysWritten(),
	text("control_plane.subnetwork", "",
		func(c *containerpb.Cluster) string {
			return c.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetPrivateEndpointSubnetwork()
		},
		func(c *containerpb.Cluster, v string) { endpoints(c).PrivateEndpointSubnetwork = v }).
		fixed("the control plane's private address is given out when the cluster is made").comparing(samePath),
}
