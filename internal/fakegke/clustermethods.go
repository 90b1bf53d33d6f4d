package fakegke

import (
	"context"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// The methods that change one thing of a cluster, older than UpdateCluster or
// beside it. The operations of all but UpdateMaster are UPDATE_CLUSTER: the
// types SET_LABELS and the like are unused (Operation.Type in
// cluster_service.proto).

func (s *service) SetLabels(_ context.Context, r *containerpb.SetLabelsRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	return s.change(path, containerpb.Operation_UPDATE_CLUSTER, func(_ state, c *containerpb.Cluster) error {
		if r.LabelFingerprint != c.LabelFingerprint { // hashicorp/terraform-provider-google issue 5608
			return precondition("Labels could not be set due to fingerprint mismatch; try again with the proper fingerprint: incorrect fingerprint supplied was %q, the expected one is %q.",
				r.LabelFingerprint, c.LabelFingerprint)
		}
		if err := checkLabels(r.ResourceLabels); err != nil {
			return err
		}
		c.ResourceLabels = r.ResourceLabels
		c.LabelFingerprint = fingerprint(c.ResourceLabels)
		return nil
	})
}

func (s *service) SetMaintenancePolicy(_ context.Context, r *containerpb.SetMaintenancePolicyRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	return s.change(path, containerpb.Operation_UPDATE_CLUSTER, func(_ state, c *containerpb.Cluster) error {
		if r.MaintenancePolicy == nil {
			return invalid("Maintenance policy is required.")
		}
		if got, want := r.MaintenancePolicy.ResourceVersion, c.MaintenancePolicy.GetResourceVersion(); got != want {
			return precondition("Maintenance policy could not be set due to resource version mismatch; try again with the proper resource version: the one supplied was %q, the expected one is %q.", got, want)
		}
		c.MaintenancePolicy = proto.CloneOf(r.MaintenancePolicy)
		fillMaintenance(c)
		return checkMaintenance(c)
	})
}

func (s *service) UpdateMaster(ctx context.Context, r *containerpb.UpdateMasterRequest) (*containerpb.Operation, error) {
	if r.MasterVersion == "" {
		return nil, invalid("Master version is required.")
	}
	return s.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{
		Name:   orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId),
		Update: &containerpb.ClusterUpdate{DesiredMasterVersion: r.MasterVersion},
	})
}

func (s *service) SetLocations(ctx context.Context, r *containerpb.SetLocationsRequest) (*containerpb.Operation, error) {
	if len(r.Locations) == 0 {
		return nil, invalid("Locations must be specified.")
	}
	return s.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{
		Name:   orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId),
		Update: &containerpb.ClusterUpdate{DesiredLocations: r.Locations},
	})
}

func (s *service) SetAddonsConfig(ctx context.Context, r *containerpb.SetAddonsConfigRequest) (*containerpb.Operation, error) {
	return s.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{
		Name:   orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId),
		Update: &containerpb.ClusterUpdate{DesiredAddonsConfig: r.AddonsConfig},
	})
}

func (s *service) SetLoggingService(ctx context.Context, r *containerpb.SetLoggingServiceRequest) (*containerpb.Operation, error) {
	return s.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{
		Name:   orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId),
		Update: &containerpb.ClusterUpdate{DesiredLoggingService: r.LoggingService},
	})
}

func (s *service) SetMonitoringService(ctx context.Context, r *containerpb.SetMonitoringServiceRequest) (*containerpb.Operation, error) {
	return s.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{
		Name:   orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId),
		Update: &containerpb.ClusterUpdate{DesiredMonitoringService: r.MonitoringService},
	})
}

func (s *service) SetNetworkPolicy(_ context.Context, r *containerpb.SetNetworkPolicyRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	return s.change(path, containerpb.Operation_UPDATE_CLUSTER, func(_ state, c *containerpb.Cluster) error {
		if r.NetworkPolicy == nil {
			return invalid("Network policy is required.")
		}
		c.NetworkPolicy = proto.CloneOf(r.NetworkPolicy)
		return checkCluster(c)
	})
}
