package gke

import "cloud.google.com/go/container/apiv1/containerpb"

func addon(name string, get func(*containerpb.AddonsConfig) bool, set func(*containerpb.AddonsConfig, bool)) Setting {
	return flag("addons."+name, facetAddons,
		func(c *containerpb.Cluster) bool { return get(c.GetAddonsConfig()) },
		func(c *containerpb.Cluster, v bool) { set(field(&c.AddonsConfig), v) })
}

// addonSettings are what GKE runs on the cluster besides the cluster itself.
var addonSettings = []Setting{
	addon("gcs_fuse_csi_driver",
		func(a *containerpb.AddonsConfig) bool { return a.GetGcsFuseCsiDriverConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.GcsFuseCsiDriverConfig).Enabled = v }),
	addon("filestore_csi_driver",
		func(a *containerpb.AddonsConfig) bool { return a.GetGcpFilestoreCsiDriverConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.GcpFilestoreCsiDriverConfig).Enabled = v }),
	addon("lustre_csi_driver",
		func(a *containerpb.AddonsConfig) bool { return a.GetLustreCsiDriverConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.LustreCsiDriverConfig).Enabled = v }),
	addon("parallelstore_csi_driver",
		func(a *containerpb.AddonsConfig) bool { return a.GetParallelstoreCsiDriverConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.ParallelstoreCsiDriverConfig).Enabled = v }),
	addon("persistent_disk_csi_driver",
		func(a *containerpb.AddonsConfig) bool { return a.GetGcePersistentDiskCsiDriverConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.GcePersistentDiskCsiDriverConfig).Enabled = v }),
	addon("high_scale_checkpointing",
		func(a *containerpb.AddonsConfig) bool { return a.GetHighScaleCheckpointingConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.HighScaleCheckpointingConfig).Enabled = v }),
	addon("slice_controller",
		func(a *containerpb.AddonsConfig) bool { return a.GetSliceControllerConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.SliceControllerConfig).Enabled = v }),
	addon("ray_operator",
		func(a *containerpb.AddonsConfig) bool { return a.GetRayOperatorConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.RayOperatorConfig).Enabled = v }),
	addon("node_local_dns_cache",
		func(a *containerpb.AddonsConfig) bool { return a.GetDnsCacheConfig().GetEnabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.DnsCacheConfig).Enabled = v }),
	addon("http_load_balancing",
		func(a *containerpb.AddonsConfig) bool { return !a.GetHttpLoadBalancing().GetDisabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.HttpLoadBalancing).Disabled = !v }),
	addon("horizontal_pod_autoscaling",
		func(a *containerpb.AddonsConfig) bool { return !a.GetHorizontalPodAutoscaling().GetDisabled() },
		func(a *containerpb.AddonsConfig, v bool) { field(&a.HorizontalPodAutoscaling).Disabled = !v }),
}

// securitySettings are about identities and trust.
var securitySettings = []Setting{
	flag("workload_identity", facetIdentity,
		func(c *containerpb.Cluster) bool { return c.GetWorkloadIdentityConfig().GetWorkloadPool() != "" },
		func(c *containerpb.Cluster, v bool) {
			id := field(&c.WorkloadIdentityConfig)
			switch {
			case !v:
				id.WorkloadPool = ""
			case id.WorkloadPool == "":
				id.WorkloadPool = ClusterName{Project: projectHaving(c)}.WorkloadPool()
			}
		}),
	flag("shielded_nodes", facetShielded,
		func(c *containerpb.Cluster) bool { return c.GetShieldedNodes().GetEnabled() },
		func(c *containerpb.Cluster, v bool) { c.ShieldedNodes = &containerpb.ShieldedNodes{Enabled: v} }),
	text("security_posture.mode", facetPosture,
		func(c *containerpb.Cluster) string { return named(c.GetSecurityPostureConfig().GetMode()) },
		func(c *containerpb.Cluster, v string) {
			field(&c.SecurityPostureConfig).Mode = enum[containerpb.SecurityPostureConfig_Mode](containerpb.SecurityPostureConfig_Mode_value, v).Enum()
		}),
	text("security_posture.vulnerability_mode", facetPosture,
		func(c *containerpb.Cluster) string { return named(c.GetSecurityPostureConfig().GetVulnerabilityMode()) },
		func(c *containerpb.Cluster, v string) {
			field(&c.SecurityPostureConfig).VulnerabilityMode = enum[containerpb.SecurityPostureConfig_VulnerabilityMode](containerpb.SecurityPostureConfig_VulnerabilityMode_value, v).Enum()
		}),
}
