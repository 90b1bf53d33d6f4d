package fakegke

import (
	"context"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
)

// parseCluster reads a cluster's path.
func parseCluster(path string) (place, error) {
	at, _, err := parse(path, "clusters")
	return at, err
}

func (s *service) ListClusters(_ context.Context, r *containerpb.ListClustersRequest) (*containerpb.ListClustersResponse, error) {
	at, _, err := parse(orLegacy(r.Parent, r.ProjectId, r.Zone))
	if err != nil {
		return nil, err
	}
	st := s.view()
	res := &containerpb.ListClustersResponse{MissingZones: s.missingZones(at)}
	for _, path := range slices.Sorted(maps.Keys(st.clusters)) {
		if within(path, at) && !slices.Contains(res.MissingZones, st.clusters[path].Location) {
			res.Clusters = append(res.Clusters, st.cluster(path))
		}
	}
	return res, nil
}

// SetMissingZones names zones and regions that do not answer: a list of all
// locations leaves out what is there, and says which are missing.
func (s *Server) SetMissingZones(locations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = slices.Clone(locations)
}

// missingZones are those that a list of a place has to do without.
func (s *Server) missingZones(at place) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.location != "-" {
		return nil
	}
	return slices.Clone(s.missing)
}

func (s *service) GetCluster(_ context.Context, r *containerpb.GetClusterRequest) (*containerpb.Cluster, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	if _, err := parseCluster(path); err != nil {
		return nil, err
	}
	c := s.view().cluster(path)
	if c == nil {
		return nil, notFound(path)
	}
	return c, nil
}

func (s *service) CreateCluster(_ context.Context, r *containerpb.CreateClusterRequest) (*containerpb.Operation, error) {
	at, _, err := parse(orLegacy(r.Parent, r.ProjectId, r.Zone))
	if err != nil {
		return nil, err
	}
	in := r.Cluster
	if in == nil {
		return nil, invalid("Cluster is required.")
	}
	if err := checkName("cluster.name", in.Name); err != nil {
		return nil, err
	}
	path := at.String() + "/clusters/" + in.Name
	pools, err := initialPools(in)
	if err != nil {
		return nil, err
	}
	c, err := fillCluster(in, at, time.Now())
	if err != nil {
		return nil, err
	}
	return s.start(func(next state) (string, error) {
		if next.clusters[path] != nil {
			return "", alreadyExists(path)
		}
		if err := s.placeInNetwork(next, c, at); err != nil {
			return "", err
		}
		c.Etag = etag(c)
		next.clusters[path] = c
		for _, pool := range pools {
			if err := addPool(next, c, path, pool); err != nil {
				return "", err
			}
			at := path + "/nodePools/" + pool.Name
			if err := s.checkPolicy(next, at, next.pools[at]); err != nil {
				return "", err
			}
		}
		return s.begin(next, containerpb.Operation_CREATE_CLUSTER, path, "", c, nil)
	})
}

// initialPools are the pools a new cluster asks for: its list, or one named
// default-pool by the older fields.
func initialPools(in *containerpb.Cluster) ([]*containerpb.NodePool, error) {
	if in.Autopilot.GetEnabled() {
		if len(in.NodePools) > 0 {
			return nil, invalid("Node pools cannot be specified for Autopilot clusters.")
		}
		return nil, nil
	}
	if len(in.NodePools) == 0 {
		if in.InitialNodeCount <= 0 {
			return nil, invalid("Cluster.initial_node_count must be greater than zero.")
		}
		return []*containerpb.NodePool{{Name: "default-pool", Config: in.NodeConfig, InitialNodeCount: in.InitialNodeCount}}, nil
	}
	if in.InitialNodeCount != 0 || in.NodeConfig != nil {
		return nil, invalid("Cluster.node_pools can't be set together with cluster.initial_node_count or cluster.node_config.")
	}
	return in.NodePools, nil
}

func (s *service) DeleteCluster(_ context.Context, r *containerpb.DeleteClusterRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "clusters", r.ClusterId)
	if _, err := parseCluster(path); err != nil {
		return nil, err
	}
	return s.start(func(next state) (string, error) {
		c := proto.CloneOf(next.clusters[path])
		if c == nil {
			return "", notFound(path)
		}
		op, err := s.begin(next, containerpb.Operation_DELETE_CLUSTER, path, "", nil, nil)
		if err != nil {
			return "", err
		}
		c.Status = containerpb.Cluster_STOPPING
		next.clusters[path] = c
		for _, pool := range next.poolsOf(path) {
			p := proto.CloneOf(next.pools[pool])
			p.Status = containerpb.NodePool_STOPPING
			next.pools[pool] = p
		}
		return op, nil
	})
}

// change starts an operation that makes a cluster what edit says, on the
// cluster as a whole: UPDATE_CLUSTER unless t is another.
func (s *service) change(path string, t opType, edit func(st state, c *containerpb.Cluster) error) (*containerpb.Operation, error) {
	if _, err := parseCluster(path); err != nil {
		return nil, err
	}
	return s.start(func(next state) (string, error) {
		before := next.clusters[path]
		if before == nil {
			return "", notFound(path)
		}
		// What is running is said before what is wrong with the request.
		if err := s.admit(next, path, ""); err != nil {
			return "", err
		}
		if err := ready(before); err != nil {
			return "", err
		}
		after := proto.CloneOf(before)
		if err := edit(next, after); err != nil {
			return "", err
		}
		op, err := s.begin(next, t, path, "", after, nil)
		if err != nil {
			return "", err
		}
		now := proto.CloneOf(before)
		now.Status = containerpb.Cluster_RECONCILING
		next.clusters[path] = now
		return op, nil
	})
}

// ready refuses changes of a cluster that is broken. One that is busy is
// refused by its operation.
func ready(c *containerpb.Cluster) error {
	if c.Status == containerpb.Cluster_ERROR {
		return precondition("Cluster %q is in status ERROR: %s", c.Name, c.StatusMessage)
	}
	return nil
}
