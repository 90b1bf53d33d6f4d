package fakegke

import (
	"fmt"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// A cluster says several things twice: GKE kept the older spelling when a newer
// one came. The newer one is the truth here; adopt reads the older ones of a
// new cluster into it, settle writes them from it.

// adopt takes what a new cluster says only in the older spelling.
func adopt(c *containerpb.Cluster) {
	ips := ensure(&ensure(&c.ControlPlaneEndpointsConfig).IpEndpointsConfig)
	if p := c.PrivateClusterConfig; p != nil {
		if n := ensure(&c.NetworkConfig); n.DefaultEnablePrivateNodes == nil && p.EnablePrivateNodes {
			n.DefaultEnablePrivateNodes = proto.Bool(true)
		}
		if ips.EnablePublicEndpoint == nil && p.EnablePrivateEndpoint {
			ips.EnablePublicEndpoint = proto.Bool(false)
		}
		if ips.GlobalAccess == nil && p.MasterGlobalAccessConfig != nil {
			ips.GlobalAccess = proto.Bool(p.MasterGlobalAccessConfig.Enabled)
		}
		setDefault(&ips.PrivateEndpointSubnetwork, p.PrivateEndpointSubnetwork)
	}
	if ips.AuthorizedNetworksConfig == nil {
		ips.AuthorizedNetworksConfig = c.MasterAuthorizedNetworksConfig
	}
	if c.LoggingConfig == nil {
		c.LoggingConfig = loggingOf(c.LoggingService)
	}
	if c.MonitoringConfig == nil {
		c.MonitoringConfig = monitoringOf(c.MonitoringService)
	}
}

// settle makes the older spellings and what only the service writes agree with
// the rest of the cluster.
func settle(c *containerpb.Cluster) {
	ips := ensure(&ensure(&c.ControlPlaneEndpointsConfig).IpEndpointsConfig)
	networks := ensure(&ips.AuthorizedNetworksConfig)
	if networks.Enabled && networks.GcpPublicCidrsAccessEnabled == nil {
		networks.GcpPublicCidrsAccessEnabled = proto.Bool(ips.GetEnablePublicEndpoint())
	}
	// One address serves both endpoints here; the other is of no use.
	ips.PublicEndpoint, ips.PrivateEndpoint = "", ""
	if c.Endpoint != "" && ips.GetEnabled() {
		ips.PrivateEndpoint = c.Endpoint
		if ips.GetEnablePublicEndpoint() {
			ips.PublicEndpoint, ips.PrivateEndpoint = c.Endpoint, fmt.Sprintf("10.128.%d.%d", number(c.Id)%16, 2+number(c.Name)%250)
		}
	}
	p := ensure(&c.PrivateClusterConfig)
	p.EnablePrivateNodes = c.NetworkConfig.GetDefaultEnablePrivateNodes()
	p.EnablePrivateEndpoint = !ips.GetEnablePublicEndpoint()
	p.PublicEndpoint, p.PrivateEndpoint, p.PrivateEndpointSubnetwork = ips.PublicEndpoint, ips.PrivateEndpoint, ips.PrivateEndpointSubnetwork
	p.MasterGlobalAccessConfig = nil
	if ips.GlobalAccess != nil {
		p.MasterGlobalAccessConfig = &containerpb.PrivateClusterMasterGlobalAccessConfig{Enabled: ips.GetGlobalAccess()}
	}
	c.MasterAuthorizedNetworksConfig = proto.CloneOf(networks)

	c.LoggingService, c.MonitoringService = noService, noService
	if len(c.LoggingConfig.GetComponentConfig().GetEnableComponents()) > 0 {
		c.LoggingService = loggingService
	}
	if len(c.MonitoringConfig.GetComponentConfig().GetEnableComponents()) > 0 {
		c.MonitoringService = monitoringService
	}
}

// setEndpoints changes what a request says of the control plane's endpoints;
// their addresses are the service's own.
func setEndpoints(c *containerpb.Cluster, want *containerpb.ControlPlaneEndpointsConfig) {
	have := ensure(&c.ControlPlaneEndpointsConfig)
	if dns := proto.CloneOf(want.DnsEndpointConfig); dns != nil {
		dns.Endpoint = ""
		overlay(ensure(&have.DnsEndpointConfig), dns)
	}
	if ips := proto.CloneOf(want.IpEndpointsConfig); ips != nil {
		ips.PublicEndpoint, ips.PrivateEndpoint, ips.PrivateEndpointSubnetwork = "", "", ""
		overlay(ensure(&have.IpEndpointsConfig), ips)
	}
}

const (
	noService         = "none"
	loggingService    = "logging.googleapis.com/kubernetes"
	monitoringService = "monitoring.googleapis.com/kubernetes"
)

// loggingOf is what the name of a logging service stands for; "" is the default.
func loggingOf(name string) *containerpb.LoggingConfig {
	c := &containerpb.LoggingComponentConfig{}
	if name != noService {
		c.EnableComponents = []containerpb.LoggingComponentConfig_Component{
			containerpb.LoggingComponentConfig_SYSTEM_COMPONENTS, containerpb.LoggingComponentConfig_WORKLOADS,
		}
	}
	return &containerpb.LoggingConfig{ComponentConfig: c}
}

// monitoringOf is what the name of a monitoring service stands for; "" is the
// default.
func monitoringOf(name string) *containerpb.MonitoringConfig {
	m := &containerpb.MonitoringConfig{
		ComponentConfig:                     &containerpb.MonitoringComponentConfig{},
		ManagedPrometheusConfig:             &containerpb.ManagedPrometheusConfig{Enabled: name != noService},
		AdvancedDatapathObservabilityConfig: &containerpb.AdvancedDatapathObservabilityConfig{},
	}
	if name != noService {
		m.ComponentConfig.EnableComponents = []containerpb.MonitoringComponentConfig_Component{containerpb.MonitoringComponentConfig_SYSTEM_COMPONENTS}
	}
	return m
}

// setLoggingService switches logging on or off; components that are chosen stay.
func setLoggingService(c *containerpb.Cluster, name string) error {
	if name != noService && name != loggingService {
		return invalid("Logging service %q is not supported, it must be %q or %q.", name, loggingService, noService)
	}
	if name != c.LoggingService {
		c.LoggingConfig = loggingOf(name)
	}
	return nil
}

// setMonitoringService switches monitoring on or off; components that are
// chosen, and managed Prometheus, stay.
func setMonitoringService(c *containerpb.Cluster, name string) error {
	if name != noService && name != monitoringService {
		return invalid("Monitoring service %q is not supported, it must be %q or %q.", name, monitoringService, noService)
	}
	if name != c.MonitoringService {
		ensure(&c.MonitoringConfig).ComponentConfig = monitoringOf(name).ComponentConfig
	}
	return nil
}
