package fakegke

import (
	"context"
	"slices"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// addressing fields of an UpdateNodePoolRequest say which pool, not what.
var addressing = map[protoreflect.Name]bool{
	"name": true, "project_id": true, "zone": true, "cluster_id": true, "node_pool_id": true, "etag": true,
}

// together may be changed in one request; anything else is an operation of its own.
var together = map[protoreflect.Name]string{
	"node_version": "image", "image_type": "image", "image": "image", "image_project": "image",
	"machine_type": "machine", "disk_type": "machine", "disk_size_gb": "machine", "boot_disk": "machine",
}

func (s *service) UpdateNodePool(_ context.Context, r *containerpb.UpdateNodePoolRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId, "nodePools", r.NodePoolId)
	t := containerpb.Operation_UPDATE_CLUSTER // GKE's own name for most changes of a pool
	if r.NodeVersion != "" || r.ImageType != "" || r.MachineType != "" || r.DiskType != "" || r.DiskSizeGb != 0 {
		t = containerpb.Operation_UPGRADE_NODES
	}
	return s.changePool(path, t, func(c *containerpb.Cluster, p *containerpb.NodePool) error { return updatePool(c, p, r) })
}

// updatePool applies an update to p, which is a copy.
func updatePool(c *containerpb.Cluster, p *containerpb.NodePool, r *containerpb.UpdateNodePoolRequest) error {
	if r.Etag != "" && r.Etag != p.Etag {
		return apiError(codes.Aborted, "The etag "+r.Etag+" does not match the node pool's current etag.")
	}
	facets := map[string]bool{}
	r.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if facet, ok := together[f.Name()]; ok {
			facets[facet] = true
		} else if !addressing[f.Name()] {
			facets[string(f.Name())] = true
		}
		return true
	})
	if len(facets) != 1 {
		return invalid("Exactly one kind of change of a node pool can be made at a time, got %d.", len(facets))
	}
	if err := applyUpdate(c, p, r); err != nil {
		return err
	}
	return checkPool(p)
}

func applyUpdate(c *containerpb.Cluster, p *containerpb.NodePool, r *containerpb.UpdateNodePoolRequest) error {
	if v := r.NodeVersion; v != "" {
		version, err := versionOfNodes(c, v)
		if err != nil {
			return err
		}
		p.Version = version
	}
	cfg := p.Config
	if r.MachineType != "" && r.MachineType != cfg.MachineType {
		if _, ok := sliceOf(p); ok {
			return invalid("Machine type of a multi-host TPU slice node pool can't be changed.")
		}
		cfg.MachineType = r.MachineType
	}
	for to, v := range map[*string]string{&cfg.ImageType: r.ImageType, &cfg.DiskType: r.DiskType} {
		if v != "" {
			*to = v
		}
	}
	if r.DiskSizeGb != 0 {
		cfg.DiskSizeGb = int32(r.DiskSizeGb)
	}
	if d := r.BootDisk; d != nil {
		cfg.DiskType, cfg.DiskSizeGb = d.DiskType, int32(d.SizeGb)
		cfg.BootDisk = d
	}
	ensure(&cfg.BootDisk).DiskType, cfg.BootDisk.SizeGb = cfg.DiskType, int64(cfg.DiskSizeGb)
	if len(r.Locations) > 0 {
		if p.PlacementPolicy.GetType() == compact && !slices.Equal(p.Locations, r.Locations) {
			return invalid("Locations of a node pool with compact placement policy can't be changed.")
		}
		p.Locations = r.Locations
	}
	if n := r.NodeNetworkConfig; n != nil {
		if old := p.NetworkConfig; n.PodRange != "" && n.PodRange != old.GetPodRange() || n.PodIpv4CidrBlock != "" && n.PodIpv4CidrBlock != old.GetPodIpv4CidrBlock() || n.Subnetwork != "" && n.Subnetwork != old.GetSubnetwork() {
			return invalid("Subnetwork and pod range of a node pool can't be changed.")
		}
		proto.Merge(ensure(&p.NetworkConfig), n)
	}
	replace(&p.UpgradeSettings, r.UpgradeSettings)
	replace(&p.QueuedProvisioning, r.QueuedProvisioning)
	replace(&p.NodeDrainConfig, r.NodeDrainConfig)
	replace(&p.MaintenancePolicy, r.MaintenancePolicy)
	replace(&cfg.WorkloadMetadataConfig, r.WorkloadMetadataConfig)
	replace(&cfg.LinuxNodeConfig, r.LinuxNodeConfig)
	replace(&cfg.KubeletConfig, r.KubeletConfig)
	replace(&cfg.GcfsConfig, r.GcfsConfig)
	replace(&cfg.ConfidentialNodes, r.ConfidentialNodes)
	replace(&cfg.Gvnic, r.Gvnic)
	replace(&cfg.FastSocket, r.FastSocket)
	replace(&cfg.LoggingConfig, r.LoggingConfig)
	replace(&cfg.WindowsNodeConfig, r.WindowsNodeConfig)
	replace(&cfg.ResourceManagerTags, r.ResourceManagerTags)
	replace(&cfg.ContainerdConfig, r.ContainerdConfig)
	replace(&cfg.MaxRunDuration, r.MaxRunDuration)
	replace(&cfg.ConsolidationDelay, r.ConsolidationDelay)
	replace(&cfg.FlexStart, r.FlexStart)
	if r.Tags != nil {
		cfg.Tags = r.Tags.Tags
	}
	if r.Taints != nil {
		cfg.Taints = r.Taints.Taints
	}
	if r.Labels != nil {
		cfg.Labels = r.Labels.Labels
	}
	if r.ResourceLabels != nil {
		model := cfg.ResourceLabels["goog-gke-node-pool-provisioning-model"]
		cfg.ResourceLabels = proto.CloneOf(r.ResourceLabels).Labels
		if cfg.ResourceLabels == nil {
			cfg.ResourceLabels = map[string]string{}
		}
		cfg.ResourceLabels["goog-gke-node-pool-provisioning-model"] = model // GKE's own, always there
	}
	return nil
}

// replace sets a field that the request has.
func replace[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}
