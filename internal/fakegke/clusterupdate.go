package fakegke

import (
	"context"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func (s *service) UpdateCluster(ctx context.Context, r *containerpb.UpdateClusterRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	u := r.Update
	if u.GetDesiredNodeVersion() != "" || u.GetDesiredImageType() != "" || u.GetDesiredNodePoolAutoscaling() != nil {
		return s.updatePoolOfCluster(ctx, path, u)
	}
	t := containerpb.Operation_UPDATE_CLUSTER
	if u.GetDesiredMasterVersion() != "" {
		t = containerpb.Operation_UPGRADE_MASTER
	}
	return s.change(path, t, func(st state, c *containerpb.Cluster) error {
		if v := u.GetDesiredMasterVersion(); v != "" {
			if err := checkSkew(st, path, c, v); err != nil {
				return err
			}
		}
		if err := updateCluster(c, u); err != nil {
			return err
		}
		if err := s.checkPodRanges(c); err != nil {
			return err
		}
		return checkCluster(c)
	})
}

// updateCluster applies the one change of an update to c, which is a copy.
func updateCluster(c *containerpb.Cluster, u *containerpb.ClusterUpdate) error {
	if u.GetEtag() != "" && u.Etag != c.Etag {
		return apiError(codes.Aborted, "The etag "+u.Etag+" does not match the cluster's current etag.")
	}
	set, err := oneChange(u)
	if err != nil {
		return err
	}
	for _, f := range set {
		if err := applyField(c, u, f); err != nil {
			return err
		}
	}
	settle(c)
	return nil
}

// together are the only fields of an update that may come with others: what
// describes the nodes of one pool, and the two services of the old API.
var updatedTogether = map[protoreflect.Name]string{
	"desired_node_version": "nodes", "desired_image_type": "nodes", "desired_image": "nodes", "desired_image_project": "nodes",
	"desired_node_pool_autoscaling": "node pool autoscaling",
	"desired_logging_service":       "services", "desired_monitoring_service": "services",
}

// oneChange lists the fields of an update, which must be those of one change:
// "Exactly one update can be applied to a cluster with each request, so at
// most one field can be provided" (ClusterUpdate in cluster_service.proto).
func oneChange(u *containerpb.ClusterUpdate) ([]protoreflect.FieldDescriptor, error) {
	var set []protoreflect.FieldDescriptor
	changes := map[string]bool{}
	u.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		switch name := f.Name(); {
		case name == "etag" || name == "desired_node_pool_id":
		case updatedTogether[name] != "":
			changes[updatedTogether[name]] = true
			set = append(set, f)
		default:
			changes[string(name)] = true
			set = append(set, f)
		}
		return true
	})
	switch {
	case len(changes) == 0: // hashicorp/terraform-provider-google issue 23462
		return nil, invalid("Must specify a field to update.")
	case len(changes) > 1:
		return nil, invalid("Exactly one update can be applied to a cluster with each request, got %d.", len(changes))
	}
	return set, nil
}

// applyField makes one field of an update true. Most fields replace the one of
// the same name and type in the cluster, its network or its IP allocation; the
// others are in fieldUpdates.
func applyField(c *containerpb.Cluster, u *containerpb.ClusterUpdate, f protoreflect.FieldDescriptor) error {
	name := string(f.Name())
	if update, ok := fieldUpdates[name]; ok {
		return update(c, u)
	}
	if strings.HasPrefix(name, "desired_autopilot_") && !c.Autopilot.GetEnabled() {
		return invalid("%s can be set only for Autopilot clusters.", name)
	}
	for _, in := range []proto.Message{c, ensure(&c.NetworkConfig), ensure(&c.IpAllocationPolicy)} {
		to := in.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(strings.TrimPrefix(name, "desired_")))
		if to != nil && to.Kind() == f.Kind() && to.Cardinality() == f.Cardinality() && to.Message() == f.Message() && to.Enum() == f.Enum() {
			in.ProtoReflect().Set(to, u.ProtoReflect().Get(f))
			return nil
		}
	}
	return apiError(codes.Unimplemented, "Updating "+name+" is not implemented.")
}

// updatePoolOfCluster is the older spelling of a node pool's update.
func (s *service) updatePoolOfCluster(ctx context.Context, path string, u *containerpb.ClusterUpdate) (*containerpb.Operation, error) {
	if _, err := parseCluster(path); err != nil {
		return nil, err
	}
	if _, err := oneChange(u); err != nil {
		return nil, err
	}
	st := s.view()
	c := st.clusters[path]
	if c == nil {
		return nil, notFound(path)
	}
	if u.Etag != "" && u.Etag != c.Etag {
		return nil, apiError(codes.Aborted, "The etag "+u.Etag+" does not match the cluster's current etag.")
	}
	pool := path + "/nodePools/" + u.DesiredNodePoolId
	if u.DesiredNodePoolId == "" {
		pools := st.poolsOf(path)
		if len(pools) != 1 {
			return nil, invalid("Desired_node_pool_id must be specified: cluster %q has %d node pools.", c.Name, len(pools))
		}
		pool = pools[0]
	}
	if u.DesiredNodePoolAutoscaling != nil {
		return s.SetNodePoolAutoscaling(ctx, &containerpb.SetNodePoolAutoscalingRequest{Name: pool, Autoscaling: u.DesiredNodePoolAutoscaling})
	}
	return s.UpdateNodePool(ctx, &containerpb.UpdateNodePoolRequest{
		Name: pool, NodeVersion: u.DesiredNodeVersion, ImageType: u.DesiredImageType,
	})
}
