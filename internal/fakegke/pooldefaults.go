package fakegke

import (
	"fmt"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

var defaultScopes = []string{
	"https://www.googleapis.com/auth/devstorage.read_only",
	"https://www.googleapis.com/auth/logging.write",
	"https://www.googleapis.com/auth/monitoring",
	"https://www.googleapis.com/auth/service.management.readonly",
	"https://www.googleapis.com/auth/servicecontrol",
	"https://www.googleapis.com/auth/trace.append",
}

// fillPool makes a request's node pool the object that GKE stores: what only
// the service sets is dropped, what was left out gets GKE's default.
func fillPool(in *containerpb.NodePool, cluster *containerpb.Cluster, path string) *containerpb.NodePool {
	p := proto.CloneOf(in)
	p.SelfLink, p.InstanceGroupUrls, p.StatusMessage, p.Conditions, p.UpdateInfo = "", nil, "", nil, nil
	p.Status = containerpb.NodePool_PROVISIONING
	if len(p.Locations) == 0 {
		p.Locations = cluster.Locations
	}
	if p.Version == "" || p.Version == "-" {
		p.Version = cluster.CurrentMasterVersion
	}
	if p.Config == nil {
		p.Config = &containerpb.NodeConfig{}
	}
	fillConfig(p.Config)
	if p.Management == nil {
		p.Management = &containerpb.NodeManagement{AutoRepair: true, AutoUpgrade: true}
	}
	if p.UpgradeSettings == nil {
		p.UpgradeSettings = &containerpb.NodePool_UpgradeSettings{MaxSurge: 1}
	}
	if p.UpgradeSettings.Strategy == nil {
		p.UpgradeSettings.Strategy = containerpb.NodePoolUpdateStrategy_SURGE.Enum()
	}
	if p.MaxPodsConstraint.GetMaxPodsPerNode() == 0 {
		p.MaxPodsConstraint = proto.CloneOf(cluster.DefaultMaxPodsConstraint)
	}
	if a := p.Autoscaling; a.GetEnabled() && a.LocationPolicy == containerpb.NodePoolAutoscaling_LOCATION_POLICY_UNSPECIFIED {
		a.LocationPolicy = containerpb.NodePoolAutoscaling_BALANCED
		if p.Config.Spot {
			a.LocationPolicy = containerpb.NodePoolAutoscaling_ANY
		}
	}
	p.PodIpv4CidrSize = podRange(p.MaxPodsConstraint.MaxPodsPerNode)
	if p.NetworkConfig == nil {
		p.NetworkConfig = &containerpb.NodeNetworkConfig{}
	}
	n := p.NetworkConfig
	if n.PodRange == "" {
		n.PodRange = cluster.IpAllocationPolicy.GetClusterSecondaryRangeName()
		n.PodIpv4CidrBlock = cluster.ClusterIpv4Cidr
	}
	if n.EnablePrivateNodes == nil {
		n.EnablePrivateNodes = proto.Bool(false)
	}
	if n.Subnetwork == "" {
		n.Subnetwork = cluster.NetworkConfig.GetSubnetwork()
	}
	p.SelfLink = "https://container.googleapis.com/v1/" + shown(path)
	project, _, _ := parse(clusterOf(path), "clusters")
	for _, zone := range p.Locations {
		p.InstanceGroupUrls = append(p.InstanceGroupUrls, fmt.Sprintf("https://www.googleapis.com/compute/v1/projects/%s/zones/%s/instanceGroupManagers/%s-grp",
			project.project, zone, groupName(path, zone)))
	}
	p.Etag = etag(p)
	return p
}

func fillConfig(c *containerpb.NodeConfig) {
	setDefault(&c.MachineType, "e2-medium")
	setDefault(&c.ImageType, "COS_CONTAINERD")
	setDefault(&c.ServiceAccount, "default")
	if c.BootDisk != nil { // the newer spelling of disk_type and disk_size_gb
		setDefault(&c.DiskType, c.BootDisk.DiskType)
		if c.DiskSizeGb == 0 {
			c.DiskSizeGb = int32(c.BootDisk.SizeGb)
		}
	}
	disk := "pd-balanced"
	if m, ok := machineOf(c.MachineType); ok && m.hyperdiskOnly() {
		disk = m.tpu.BootDisks[0]
	}
	setDefault(&c.DiskType, disk)
	if c.DiskSizeGb == 0 {
		c.DiskSizeGb = 100
	}
	if c.BootDisk == nil {
		c.BootDisk = &containerpb.BootDisk{}
	}
	c.BootDisk.DiskType, c.BootDisk.SizeGb = c.DiskType, int64(c.DiskSizeGb)
	if len(c.OauthScopes) == 0 {
		c.OauthScopes = defaultScopes
	}
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	if _, ok := c.Metadata["disable-legacy-endpoints"]; !ok {
		c.Metadata["disable-legacy-endpoints"] = "true"
	}
	if c.ShieldedInstanceConfig == nil {
		c.ShieldedInstanceConfig = &containerpb.ShieldedInstanceConfig{EnableIntegrityMonitoring: true}
	}
	if c.KubeletConfig == nil {
		c.KubeletConfig = &containerpb.NodeKubeletConfig{InsecureKubeletReadonlyPortEnabled: proto.Bool(false)}
	}
	if c.ResourceLabels == nil {
		c.ResourceLabels = map[string]string{}
	}
	if _, ok := c.ResourceLabels["goog-gke-node-pool-provisioning-model"]; !ok {
		model := "on-demand"
		switch {
		case c.Spot:
			model = "spot"
		case c.GetFlexStart():
			model = "flex-start"
		case c.ReservationAffinity.GetConsumeReservationType() == specificReservation:
			model = "reservation"
		}
		c.ResourceLabels["goog-gke-node-pool-provisioning-model"] = model
	}
	c.EffectiveCgroupMode = containerpb.NodeConfig_EFFECTIVE_CGROUP_MODE_V2
}

// podRange is the prefix length of a node's pod range: twice the pods, rounded
// up to a power of two.
func podRange(pods int64) int32 {
	bits := int32(0)
	for n := int64(1); n < 2*pods; n *= 2 {
		bits++
	}
	return 32 - bits
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// etag changes with every change of the object.
func etag(m proto.Message) string {
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return digest(16, string(b))
}
