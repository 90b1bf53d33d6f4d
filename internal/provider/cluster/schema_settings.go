package cluster

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The attributes behind gke.ClusterSettings: each is optional and computed.
// What is unset keeps what GKE has; ModifyPlan sees to that.

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: description}
}

func text(description string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: description, Validators: checks}
}

func choice(description string, values ...string) schema.StringAttribute {
	return text(description, stringvalidator.OneOf(values...))
}

func set(description string, checks ...validator.Set) schema.SetAttribute {
	return schema.SetAttribute{Optional: true, Computed: true, ElementType: types.StringType, MarkdownDescription: description, Validators: checks}
}

func group(description string, attrs map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, Computed: true, MarkdownDescription: description, Attributes: attrs}
}

func networkAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"network":    text("The VPC network: its name, or `projects/PROJECT/global/networks/NAME` for one that another project shares. The default is the one named `default`. Changing it makes a new cluster."),
		"subnetwork": text("The subnetwork, in the cluster's region: its name, or `projects/PROJECT/regions/REGION/subnetworks/NAME`. Changing it makes a new cluster."),
		"ip_ranges": group("The addresses of pods and services: secondary ranges that the subnetwork has, by name, or ranges that GKE makes. Changing any of it makes a new cluster.", map[string]schema.Attribute{
			"pods_range":     text("The name of the subnetwork's secondary range for pods."),
			"pods_cidr":      text("The range for pods that GKE makes: `/14` for one of that size, or `10.0.0.0/14`. The plan holds it against the nodes that `cpu_pools` can have, in three zones for a region without `zones`."),
			"services_range": text("The name of the subnetwork's secondary range for services."),
			"services_cidr":  text("The range for services that GKE makes: `/20` for one of that size, or `10.4.0.0/20`."),
		}),
		"max_pods_per_node": schema.Int64Attribute{Optional: true, Computed: true,
			MarkdownDescription: "The most pods of one node, for pools that do not say it themselves, 8 to 256; a node takes twice as many addresses, rounded up to a power of two. The default is 110. Changing it makes a new cluster."},
		"dataplane_v2":  flag("Whether the cluster uses GKE Dataplane V2. Changing it makes a new cluster."),
		"zones":         set("The zones of the cluster's region in which CPU pools have nodes, where a pool does not say it itself. A zonal cluster's own zone is one of them. Changed in place.", setvalidator.SizeAtLeast(1)),
		"private_nodes": flag("Whether nodes have internal addresses only, where a node pool does not say it itself. Changed in place, for nodes made from then on."),
		"dns": group("The cluster's DNS. Changed in place; nodes use another provider when they are made anew.", map[string]schema.Attribute{
			"provider": choice("`PLATFORM_DEFAULT`, `KUBE_DNS` or `CLOUD_DNS`.", "PLATFORM_DEFAULT", "KUBE_DNS", "CLOUD_DNS"),
			"scope":    choice("With Cloud DNS, who can look names up: `CLUSTER_SCOPE` or `VPC_SCOPE`.", "CLUSTER_SCOPE", "VPC_SCOPE"),
			"domain":   text("With `VPC_SCOPE`, the domain of the cluster's names."),
		}),
		"control_plane": group("How the control plane is reached. Changed in place, all of it by one operation.", map[string]schema.Attribute{
			"dns_endpoint":     flag("Whether the DNS name of the control plane answers callers outside of Google Cloud; Google checks their identity first. The provider and `tpuctl` use it where there is no public address."),
			"ip_endpoint":      flag("Whether the control plane has IP addresses. The default is true; false needs `dns_endpoint = true` beside it."),
			"private_endpoint": flag("Whether the control plane answers on its internal address only. Needs `authorized_networks`."),
			"global_access":    flag("Whether the internal address answers from every region of the VPC."),
			"authorized_networks": schema.MapAttribute{Optional: true, Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Who may reach the IP endpoint: ranges of addresses, such as `\"203.0.113.0/24\" = \"office\"`. With `{}` only the cluster's own nodes may. Without it the endpoint is open to all, or stays as it is; `\"0.0.0.0/0\" = \"everyone\"` opens it again."},
			"google_cloud_access": flag("Whether addresses of Google Cloud may reach the IP endpoint besides `authorized_networks`."),
			"subnetwork":          text("The subnetwork that the control plane's internal address is of. Changing it makes a new cluster."),
		}),
	}
}

func operationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"release_channel": choice("The release channel: `RAPID`, `REGULAR`, `STABLE`, `EXTENDED`, or `UNSPECIFIED` for none. The default is GKE's. Changed in place.",
			"RAPID", "REGULAR", "STABLE", "EXTENDED", "UNSPECIFIED"),
		"maintenance": group("When GKE may upgrade the cluster by itself: a daily window, or a recurring one. Changed in place.", map[string]schema.Attribute{
			"daily_start":  text("The start of a daily window of GKE's length, `HH:MM` in UTC."),
			"window_start": text("The start of the first recurring window, such as `2026-01-03T02:00:00Z`."),
			"window_end":   text("The end of the first recurring window, at least 4 hours later."),
			"recurrence":   text("How the window recurs, as an RFC 5545 rule such as `FREQ=WEEKLY;BYDAY=SA,SU`: at least 48 hours in 32 days."),
			"exclusions": schema.MapNestedAttribute{Optional: true, Computed: true,
				MarkdownDescription: "Times without upgrades, by name: a long training run, for example. At most 20, of which 3 with the scope `NO_UPGRADES`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"start": schema.StringAttribute{Required: true, MarkdownDescription: "When it begins, such as `2026-11-20T00:00:00Z`."},
					"end":   schema.StringAttribute{Required: true, MarkdownDescription: "When it ends."},
					"scope": schema.StringAttribute{Required: true,
						MarkdownDescription: "`NO_UPGRADES`: none at all; `NO_MINOR_UPGRADES`: patches only; `NO_MINOR_OR_NODE_UPGRADES`: patches of the control plane only, so that nodes and the slices on them stay.",
						Validators:          []validator.String{stringvalidator.OneOf("NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES")}},
				}}},
		}),
		"logging": group("What goes to Cloud Logging. Changed in place.", map[string]schema.Attribute{
			"components": set("`SYSTEM_COMPONENTS`, `WORKLOADS`, `APISERVER`, `SCHEDULER`, `CONTROLLER_MANAGER` and others; `[]` for nothing.", setvalidator.ValueStringsAre(
				stringvalidator.OneOf("SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER", "KCP_SSHD", "KCP_CONNECTION", "KCP_HPA", "KCP_VPA"))),
		}),
		"monitoring": group("What goes to Cloud Monitoring. Changed in place.", map[string]schema.Attribute{
			"components": set("`SYSTEM_COMPONENTS`, `APISERVER`, `SCHEDULER`, `CONTROLLER_MANAGER`, `POD`, `JOBSET` and others; `[]` for nothing.", setvalidator.ValueStringsAre(
				stringvalidator.OneOf("SYSTEM_COMPONENTS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET", "CADVISOR", "KUBELET", "DCGM", "JOBSET"))),
			"managed_prometheus": flag("Whether Managed Service for Prometheus collects metrics."),
		}),
		"autoscaling_profile": choice("How soon the cluster autoscaler removes nodes: `BALANCED` or `OPTIMIZE_UTILIZATION`. Changed in place.", "BALANCED", "OPTIMIZE_UTILIZATION"),
		"autoprovisioning": group("Node auto-provisioning: GKE makes node pools by itself when pods need them. Those pools are never managed here. Changed in place.", map[string]schema.Attribute{
			"enabled": flag("Whether GKE makes node pools by itself."),
			"limits": schema.MapNestedAttribute{Optional: true, Computed: true,
				MarkdownDescription: "How much of it the cluster may have, nodes of all pools counted: `cpu` (cores) and `memory` (GB), both needed, and TPU chips by the name that nodes carry, such as `tpu-v5-lite-podslice`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"minimum": schema.Int64Attribute{Optional: true, Computed: true, MarkdownDescription: "The least. The default is 0.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
					"maximum": schema.Int64Attribute{Required: true, MarkdownDescription: "The most.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
				}}},
			"service_account": text("The service account of nodes that GKE makes by itself."),
			"oauth_scopes":    set("The OAuth scopes of those nodes."),
			"zones":           set("The zones in which GKE may make them."),
		}),
	}
}

func featureAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"addons": group("What GKE runs on the cluster besides the cluster itself. Changed in place.", map[string]schema.Attribute{
			"gcs_fuse_csi_driver":        flag("The Cloud Storage FUSE CSI driver: buckets as volumes."),
			"filestore_csi_driver":       flag("The Filestore CSI driver."),
			"lustre_csi_driver":          flag("The Managed Lustre CSI driver."),
			"parallelstore_csi_driver":   flag("The Parallelstore CSI driver."),
			"persistent_disk_csi_driver": flag("The Persistent Disk and Hyperdisk CSI driver."),
			"high_scale_checkpointing":   flag("High-scale checkpointing: checkpoints in the hosts' memory. Needs Workload Identity and the Cloud Storage FUSE driver."),
			"slice_controller":           flag("The slice controller, which makes slices of tpu7x blocks as jobs need them."),
			"ray_operator":               flag("The Ray operator."),
			"node_local_dns_cache":       flag("A DNS cache on every node."),
			"http_load_balancing":        flag("The controller of load balancers for Ingress."),
			"horizontal_pod_autoscaling": flag("Horizontal Pod autoscaling."),
		}),
		"workload_identity": flag("Whether pods act as Google Cloud service accounts through Workload Identity. The default is true. Changed in place."),
		"shielded_nodes":    flag("Whether nodes are Shielded Nodes. Changed in place; nodes are made anew."),
		"security_posture": group("The security posture dashboard. Changed in place.", map[string]schema.Attribute{
			"mode":               choice("`DISABLED`, `BASIC` or `ENTERPRISE`.", "DISABLED", "BASIC", "ENTERPRISE"),
			"vulnerability_mode": choice("`VULNERABILITY_DISABLED`, `VULNERABILITY_BASIC` or `VULNERABILITY_ENTERPRISE`.", "VULNERABILITY_DISABLED", "VULNERABILITY_BASIC", "VULNERABILITY_ENTERPRISE"),
		}),
	}
}
