package fakegke

import (
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldUpdates are the fields of an update whose effect is other than to
// replace the cluster's field of the same name.
var fieldUpdates = map[string]func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error{
	"desired_master_version": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		return upgradeMaster(c, u.DesiredMasterVersion)
	},
	"desired_release_channel": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		c.ReleaseChannel = u.DesiredReleaseChannel
		return nil
	},
	"desired_datapath_provider": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		if have := c.NetworkConfig.GetDatapathProvider(); have != u.DesiredDatapathProvider {
			return invalid("Updating the datapath provider of a cluster is not supported: it is %s.", have)
		}
		return nil
	},
	"desired_locations": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		return setLocations(c, u.DesiredLocations)
	},
	"desired_workload_identity_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		c.WorkloadIdentityConfig = u.DesiredWorkloadIdentityConfig
		return nil
	},

	// The control plane's endpoints, in three generations of the API.
	"desired_control_plane_endpoints_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		setEndpoints(c, u.DesiredControlPlaneEndpointsConfig)
		return nil
	},
	"desired_private_cluster_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ips := ensure(&ensure(&c.ControlPlaneEndpointsConfig).IpEndpointsConfig)
		if access := u.DesiredPrivateClusterConfig.MasterGlobalAccessConfig; access != nil {
			ips.GlobalAccess = proto.Bool(access.Enabled)
		}
		return nil
	},
	"desired_master_authorized_networks_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&ensure(&c.ControlPlaneEndpointsConfig).IpEndpointsConfig).AuthorizedNetworksConfig = u.DesiredMasterAuthorizedNetworksConfig
		return nil
	},
	"desired_enable_private_endpoint": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&ensure(&c.ControlPlaneEndpointsConfig).IpEndpointsConfig).EnablePublicEndpoint = proto.Bool(!u.GetDesiredEnablePrivateEndpoint())
		return nil
	},

	// What is merged: parts that the request leaves out stay as they are.
	"desired_addons_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		overlay(ensure(&c.AddonsConfig), u.DesiredAddonsConfig)
		return nil
	},
	"desired_logging_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		overlay(ensure(&c.LoggingConfig), u.DesiredLoggingConfig)
		return nil
	},
	"desired_monitoring_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		overlay(ensure(&c.MonitoringConfig), u.DesiredMonitoringConfig)
		return nil
	},
	"desired_security_posture_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		overlay(ensure(&c.SecurityPostureConfig), u.DesiredSecurityPostureConfig)
		return nil
	},
	"desired_cluster_autoscaling": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		profile := c.Autoscaling.GetAutoscalingProfile()
		c.Autoscaling = proto.CloneOf(u.DesiredClusterAutoscaling)
		if c.Autoscaling.AutoscalingProfile == containerpb.ClusterAutoscaling_PROFILE_UNSPECIFIED {
			c.Autoscaling.AutoscalingProfile = profile
		}
		return nil
	},
	"desired_logging_service": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		return setLoggingService(c, u.DesiredLoggingService)
	},
	"desired_monitoring_service": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		return setMonitoringService(c, u.DesiredMonitoringService)
	},
	"desired_database_encryption": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		c.DatabaseEncryption = proto.CloneOf(u.DesiredDatabaseEncryption)
		fillEncryption(c)
		return nil
	},

	// What is spelled otherwise in the cluster.
	"desired_intra_node_visibility_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.NetworkConfig).EnableIntraNodeVisibility = u.DesiredIntraNodeVisibilityConfig.Enabled
		return nil
	},
	"desired_l4ilb_subsetting_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.NetworkConfig).EnableL4IlbSubsetting = u.DesiredL4IlbSubsettingConfig.Enabled
		return nil
	},
	"desired_k8s_beta_apis": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		c.EnableK8SBetaApis = u.DesiredK8SBetaApis
		return nil
	},
	"desired_enterprise_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		e := ensure(&c.EnterpriseConfig)
		e.DesiredTier, e.ClusterTier = u.DesiredEnterpriseConfig.DesiredTier, u.DesiredEnterpriseConfig.DesiredTier
		return nil
	},
	"desired_gcfs_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		nodeDefaults(c).GcfsConfig = u.DesiredGcfsConfig
		return nil
	},
	"desired_node_pool_logging_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		nodeDefaults(c).LoggingConfig = u.DesiredNodePoolLoggingConfig
		return nil
	},
	"desired_containerd_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		nodeDefaults(c).ContainerdConfig = u.DesiredContainerdConfig
		return nil
	},
	"desired_node_kubelet_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		nodeDefaults(c).NodeKubeletConfig = u.DesiredNodeKubeletConfig
		return nil
	},
	"desired_node_pool_auto_config_network_tags": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.NodePoolAutoConfig).NetworkTags = u.DesiredNodePoolAutoConfigNetworkTags
		return nil
	},
	"desired_node_pool_auto_config_resource_manager_tags": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.NodePoolAutoConfig).ResourceManagerTags = u.DesiredNodePoolAutoConfigResourceManagerTags
		return nil
	},
	"desired_node_pool_auto_config_kubelet_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.NodePoolAutoConfig).NodeKubeletConfig = u.DesiredNodePoolAutoConfigKubeletConfig
		return nil
	},
	"desired_node_pool_auto_config_linux_node_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.NodePoolAutoConfig).LinuxNodeConfig = u.DesiredNodePoolAutoConfigLinuxNodeConfig
		return nil
	},

	// Further ranges for pods.
	"desired_additional_ip_ranges_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		ensure(&c.IpAllocationPolicy).AdditionalIpRangesConfigs = u.DesiredAdditionalIpRangesConfig.AdditionalIpRangesConfigs
		return nil
	},
	"additional_pod_ranges_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		more := ensure(&ensure(&c.IpAllocationPolicy).AdditionalPodRangesConfig)
		for _, name := range u.AdditionalPodRangesConfig.PodRangeNames {
			if name == c.IpAllocationPolicy.ClusterSecondaryRangeName || slices.Contains(more.PodRangeNames, name) {
				return invalid("Pod range %q is used by the cluster already.", name)
			}
			more.PodRangeNames = append(more.PodRangeNames, name)
		}
		return nil
	},
	"removed_additional_pod_ranges_config": func(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
		more := ensure(&ensure(&c.IpAllocationPolicy).AdditionalPodRangesConfig)
		for _, name := range u.RemovedAdditionalPodRangesConfig.PodRangeNames {
			if !slices.Contains(more.PodRangeNames, name) {
				return invalid("Pod range %q is no additional pod range of the cluster.", name)
			}
			more.PodRangeNames = slices.DeleteFunc(more.PodRangeNames, func(have string) bool { return have == name })
		}
		return nil
	},
}

func nodeDefaults(c *containerpb.Cluster) *containerpb.NodeConfigDefaults {
	return ensure(&ensure(&c.NodePoolDefaults).NodeConfigDefaults)
}

// overlay sets the fields of to that from has, and leaves the others.
func overlay(to, from proto.Message) {
	into := to.ProtoReflect()
	proto.CloneOf(from).ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		into.Set(f, v)
		return true
	})
}

// setLocations makes zones the default zones of new node pools. The zones of
// pools that exist stay.
func setLocations(c *containerpb.Cluster, zones []string) error {
	at := place{location: c.Location}
	if len(zones) == 0 {
		return invalid("Locations must be specified.")
	}
	if at.zonal() && !slices.Contains(zones, c.Location) {
		return invalid("Locations must contain the cluster's zone %q.", c.Location)
	}
	if err := checkZones(at, zones); err != nil {
		return err
	}
	c.Locations = slices.Sorted(slices.Values(zones))
	return nil
}

func checkZones(at place, zones []string) error {
	for _, zone := range zones {
		if z := (place{location: zone}); !z.zonal() || z.region() != at.region() {
			return invalid("Location %q is not a zone of region %q.", zone, at.region())
		}
	}
	return nil
}
