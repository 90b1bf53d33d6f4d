package fakegke

import (
	"context"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// parsePool reads a node pool's path.
func parsePool(path string) (cluster string, err error) {
	if _, _, err := parse(path, "clusters", "nodePools"); err != nil {
		return "", err
	}
	return clusterOf(path), nil
}

func (s *service) ListNodePools(_ context.Context, r *containerpb.ListNodePoolsRequest) (*containerpb.ListNodePoolsResponse, error) {
	cluster := orLegacy(r.Parent, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	if _, err := parseCluster(cluster); err != nil {
		return nil, err
	}
	st := s.view()
	if st.clusters[cluster] == nil {
		return nil, notFound(cluster)
	}
	res := &containerpb.ListNodePoolsResponse{}
	for _, path := range st.poolsOf(cluster) {
		res.NodePools = append(res.NodePools, st.pools[path])
	}
	return res, nil
}

func (s *service) GetNodePool(_ context.Context, r *containerpb.GetNodePoolRequest) (*containerpb.NodePool, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId, "nodePools", r.NodePoolId)
	cluster, err := parsePool(path)
	if err != nil {
		return nil, err
	}
	st := s.view()
	if st.clusters[cluster] == nil {
		return nil, notFound(cluster)
	}
	if st.pools[path] == nil || s.readTooEarly(path) {
		return nil, notFound(path)
	}
	return st.pools[path], nil
}

// readTooEarly counts down the reads of a new pool that must not see it.
func (s *Server) readTooEarly(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late[path] == 0 {
		return false
	}
	s.late[path]--
	return true
}

func (s *service) CreateNodePool(_ context.Context, r *containerpb.CreateNodePoolRequest) (*containerpb.Operation, error) {
	cluster := orLegacy(r.Parent, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	if _, err := parseCluster(cluster); err != nil {
		return nil, err
	}
	if r.NodePool == nil {
		return nil, invalid("Node pool is required.")
	}
	path := cluster + "/nodePools/" + r.NodePool.Name
	op, err := s.start(func(next state) (string, error) {
		c := next.clusters[cluster]
		if c == nil {
			return "", notFound(cluster)
		}
		if err := ready(c); err != nil {
			return "", err
		}
		if err := addPool(next, c, cluster, r.NodePool); err != nil {
			return "", err
		}
		if err := s.checkPolicy(next, path, next.pools[path]); err != nil {
			return "", err
		}
		if err := s.checkScarcity(next, path); err != nil {
			return "", err
		}
		return s.begin(next, containerpb.Operation_CREATE_NODE_POOL, cluster, path, nil, next.pools[path])
	})
	if err == nil && s.opts.lateReads > 0 {
		s.mu.Lock()
		s.late[path] = s.opts.lateReads
		s.mu.Unlock()
	}
	return op, err
}

// addPool checks a new pool and puts it into next, in PROVISIONING.
func addPool(next state, c *containerpb.Cluster, cluster string, in *containerpb.NodePool) error {
	path := cluster + "/nodePools/" + in.Name
	if c.Autopilot.GetEnabled() {
		return invalid("Autopilot node pools cannot be accessed or modified.")
	}
	p := fillPool(in, c, path)
	version, err := versionOfNodes(c, p.Version)
	if err != nil {
		return err
	}
	p.Version = version
	if err := checkPool(p); err != nil {
		return err
	}
	if err := checkUpgrades(c, p.Management); err != nil {
		return err
	}
	if next.pools[path] != nil {
		return alreadyExists(path)
	}
	at, err := parseCluster(cluster)
	if err != nil {
		return err
	}
	for _, zone := range p.Locations {
		if z := (place{location: zone}); !z.zonal() || z.region() != at.region() {
			return invalid("Node pool location %q is not a zone of region %q.", zone, at.region())
		}
	}
	nodes := poolSize(p) * int32(len(p.Locations))
	for _, other := range next.poolsOf(cluster) {
		nodes += next.pools[other].InitialNodeCount * int32(len(next.pools[other].Locations))
	}
	if nodes > maxNodesPerCluster {
		return precondition("Cluster %q would have %d nodes, the limit is %d.", c.Name, nodes, maxNodesPerCluster)
	}
	next.pools[path] = p
	return nil
}

// checkUpgrades: a release channel upgrades its nodes.
func checkUpgrades(c *containerpb.Cluster, m *containerpb.NodeManagement) error {
	if ch := c.ReleaseChannel.GetChannel(); ch != containerpb.ReleaseChannel_UNSPECIFIED && !m.AutoUpgrade {
		return invalid("Auto_upgrade must be true when release_channel %s is set.", ch)
	}
	return nil
}

// changePool starts an operation that makes a pool what edit says; without
// edit it deletes it.
func (s *service) changePool(path string, t opType, edit func(c *containerpb.Cluster, p *containerpb.NodePool) error) (*containerpb.Operation, error) {
	cluster, err := parsePool(path)
	if err != nil {
		return nil, err
	}
	return s.start(func(next state) (string, error) {
		c := next.clusters[cluster]
		if c == nil {
			return "", notFound(cluster)
		}
		now, after := proto.CloneOf(next.pools[path]), proto.CloneOf(next.pools[path])
		if now == nil {
			return "", notFound(path)
		}
		now.Status = containerpb.NodePool_STOPPING
		if edit == nil {
			after = nil
		} else {
			// What is running is said before what is wrong with the request.
			if err := s.admit(next, cluster, path); err != nil {
				return "", err
			}
			if now.Status = containerpb.NodePool_RECONCILING; next.pools[path].Status == containerpb.NodePool_ERROR {
				return "", precondition("Node pool %q is in status ERROR: %s", now.Name, now.StatusMessage)
			}
			if err := edit(c, after); err != nil {
				return "", err
			}
		}
		op, err := s.begin(next, t, cluster, path, nil, after)
		if err != nil {
			return "", err
		}
		next.pools[path] = now
		return op, nil
	})
}

func (s *service) DeleteNodePool(_ context.Context, r *containerpb.DeleteNodePoolRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId, "nodePools", r.NodePoolId)
	return s.changePool(path, containerpb.Operation_DELETE_NODE_POOL, nil)
}

func (s *service) SetNodePoolSize(_ context.Context, r *containerpb.SetNodePoolSizeRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId, "nodePools", r.NodePoolId)
	return s.changePool(path, containerpb.Operation_SET_NODE_POOL_SIZE, func(_ *containerpb.Cluster, p *containerpb.NodePool) error {
		if sl, ok := sliceOf(p); ok && r.NodeCount != 0 && int(r.NodeCount) != sl.Hosts {
			return invalid("Requested invalid target size '%d' for a Managed Instance Group in the gang mode of size '%d'", r.NodeCount, sl.Hosts)
		}
		if r.NodeCount < 0 || r.NodeCount > maxNodesPerZone {
			return invalid("Node count %d is not between 0 and %d.", r.NodeCount, maxNodesPerZone)
		}
		p.InitialNodeCount = r.NodeCount
		return nil
	})
}

func (s *service) SetNodePoolManagement(_ context.Context, r *containerpb.SetNodePoolManagementRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId, "nodePools", r.NodePoolId)
	return s.changePool(path, containerpb.Operation_SET_NODE_POOL_MANAGEMENT, func(c *containerpb.Cluster, p *containerpb.NodePool) error {
		if r.Management == nil {
			return invalid("Node pool management is required.")
		}
		if err := checkUpgrades(c, r.Management); err != nil {
			return err
		}
		p.Management = r.Management
		return checkPool(p)
	})
}

func (s *service) SetNodePoolAutoscaling(_ context.Context, r *containerpb.SetNodePoolAutoscalingRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId, "nodePools", r.NodePoolId)
	return s.changePool(path, containerpb.Operation_UPDATE_CLUSTER, func(_ *containerpb.Cluster, p *containerpb.NodePool) error {
		p.Autoscaling = r.Autoscaling
		return checkPool(p)
	})
}
