package fakegke

import (
	"context"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// service is the API itself. Methods it does not define are UNIMPLEMENTED.
type service struct {
	containerpb.UnimplementedClusterManagerServer
	*Server
}

// start is what every change goes through: it checks and stores an operation
// and its immediate effect in one step, and then lets the operation run.
func (s *service) start(change func(next state) (operationPath string, err error)) (*containerpb.Operation, error) {
	var path string
	if err := s.update(func(next state) (err error) {
		path, err = change(next)
		return err
	}); err != nil {
		return nil, err
	}
	op := s.view().operations[path].pb
	s.launch(path)
	return op, nil
}

// cluster is a cluster as the API shows it, with its pools; nil if there is none.
func (s state) cluster(path string) *containerpb.Cluster {
	c := proto.CloneOf(s.clusters[path])
	if c == nil {
		return nil
	}
	for _, pool := range s.poolsOf(path) {
		p := s.pools[pool]
		c.NodePools = append(c.NodePools, p)
		c.InstanceGroupUrls = append(c.InstanceGroupUrls, p.InstanceGroupUrls...)
		if hasNodes(p) {
			c.CurrentNodeCount += p.InitialNodeCount * int32(len(p.Locations))
		}
	}
	c.CurrentNodeVersion = nodeVersion(c.NodePools, c.CurrentNodeVersion)
	if len(c.NodePools) > 0 { // the deprecated fields describe the first pool
		c.NodeConfig, c.InitialNodeCount = c.NodePools[0].Config, c.NodePools[0].InitialNodeCount
	}
	return c
}

// within reports whether the resource at path is in the place, whose location
// may be "-" for all of them.
func within(path string, at place) bool {
	parts := strings.SplitN(path, "/", 5)
	return parts[1] == at.project && (at.location == "-" || parts[3] == at.location)
}

func (s *service) GetOperation(_ context.Context, r *containerpb.GetOperationRequest) (*containerpb.Operation, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "operations", r.OperationId)
	if _, _, err := parse(path, "operations"); err != nil {
		return nil, err
	}
	op := s.view().operations[path]
	if op == nil {
		return nil, notFound(path)
	}
	return s.withProgress(op, time.Now()), nil
}

func (s *service) ListOperations(_ context.Context, r *containerpb.ListOperationsRequest) (*containerpb.ListOperationsResponse, error) {
	at, _, err := parse(orLegacy(r.Parent, r.ProjectId, r.Zone))
	if err != nil {
		return nil, err
	}
	res := &containerpb.ListOperationsResponse{MissingZones: s.missingZones(at)}
	var ops []*operation
	for path, op := range s.view().operations {
		if within(path, at) && !slices.Contains(res.MissingZones, op.pb.Location) {
			ops = append(ops, op)
		}
	}
	slices.SortFunc(ops, byStart)
	now := time.Now()
	for _, op := range ops {
		res.Operations = append(res.Operations, s.withProgress(op, now))
	}
	return res, nil
}

// CancelOperation stops the creation or upgrade of a node pool; nothing else
// can be cancelled.
func (s *service) CancelOperation(_ context.Context, r *containerpb.CancelOperationRequest) (*emptypb.Empty, error) {
	path := orLegacy(r.Name, r.ProjectId, r.Zone, "operations", r.OperationId)
	if _, _, err := parse(path, "operations"); err != nil {
		return nil, err
	}
	op := s.view().operations[path]
	if op == nil {
		return nil, notFound(path)
	}
	if op.pb.Status == containerpb.Operation_DONE {
		return nil, precondition("Operation %s is already done.", op.pb.Name)
	}
	if t := op.pb.OperationType; t != containerpb.Operation_CREATE_NODE_POOL && t != containerpb.Operation_UPGRADE_NODES {
		return nil, invalid("Operation %s of type %s cannot be cancelled.", op.pb.Name, t)
	}
	s.setStatus(path, containerpb.Operation_ABORTING)
	s.mu.Lock()
	abort := s.aborts[path]
	s.mu.Unlock()
	if abort != nil {
		abort(errAborted)
	}
	return &emptypb.Empty{}, nil
}

func (s *service) GetServerConfig(_ context.Context, r *containerpb.GetServerConfigRequest) (*containerpb.ServerConfig, error) {
	if _, _, err := parse(orLegacy(r.Name, r.ProjectId, r.Zone)); err != nil {
		return nil, err
	}
	return serverConfig(), nil
}
