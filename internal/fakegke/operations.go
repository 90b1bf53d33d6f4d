package fakegke

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

type opType = containerpb.Operation_Type

// How long operations take at GKE, about.
const (
	pendingTime  = 2 * time.Second
	stockoutTime = 35*time.Minute + 4*time.Second
)

func duration(op *operation) time.Duration {
	switch op.pb.OperationType {
	case containerpb.Operation_CREATE_CLUSTER:
		return 6 * time.Minute
	case containerpb.Operation_DELETE_CLUSTER:
		return 3 * time.Minute
	case containerpb.Operation_CREATE_NODE_POOL:
		return 150 * time.Second
	case containerpb.Operation_DELETE_NODE_POOL:
		return 2 * time.Minute
	case containerpb.Operation_UPGRADE_MASTER, containerpb.Operation_UPGRADE_NODES:
		return 8 * time.Minute
	case containerpb.Operation_SET_LABELS, containerpb.Operation_SET_NODE_POOL_MANAGEMENT:
		return 20 * time.Second
	}
	return 90 * time.Second
}

// doing is what GKE says that an operation does.
var doing = map[opType]string{
	containerpb.Operation_CREATE_CLUSTER:           "creating",
	containerpb.Operation_DELETE_CLUSTER:           "deleting",
	containerpb.Operation_UPDATE_CLUSTER:           "updating",
	containerpb.Operation_UPGRADE_MASTER:           "upgrading",
	containerpb.Operation_SET_LABELS:               "updating the labels of",
	containerpb.Operation_CREATE_NODE_POOL:         "creating a node pool for",
	containerpb.Operation_DELETE_NODE_POOL:         "deleting a node pool for",
	containerpb.Operation_UPGRADE_NODES:            "upgrading nodes of",
	containerpb.Operation_SET_NODE_POOL_SIZE:       "resizing a node pool for",
	containerpb.Operation_SET_NODE_POOL_MANAGEMENT: "updating a node pool for",
}

// admit refuses an operation that GKE would not start now: any two operations
// of which one is the cluster's own exclude each other, so do two on one pool,
// and a cluster has a quota.
func (s *Server) admit(st state, cluster, pool string) error {
	running := st.running(cluster)
	name := cluster[strings.LastIndex(cluster, "/")+1:]
	for _, op := range running {
		switch {
		case op.pool == "":
			return incompatible("Cluster is running incompatible operation %s.", op.pb.Name)
		case pool == "" || op.pool == pool:
			verb := doing[op.pb.OperationType]
			if verb == "" {
				verb = "updating a node pool for"
			}
			return incompatible("Operation %s is currently %s cluster %s. Please wait and try again once it is done.", op.pb.Name, verb, name)
		}
	}
	if len(running) >= s.opts.quota {
		return quotaExceeded(name, s.opts.quota)
	}
	return nil
}

// incompatible is a refusal because of what is running
// (kubernetes-sigs/cluster-api-provider-gcp issue 1363).
func incompatible(format string, args ...any) error {
	return apiError(codes.FailedPrecondition, fmt.Sprintf(format, args...),
		&errdetails.ErrorInfo{Reason: "CLUSTER_ALREADY_HAS_OPERATION", Domain: "container.googleapis.com"})
}

// begin adds an operation to next, in PENDING; afterwards the caller launches
// it. pool is "" for an operation on the cluster.
func (s *Server) begin(next state, t opType, cluster, pool string, afterCluster *containerpb.Cluster, afterPool *containerpb.NodePool) (string, error) {
	if err := s.admit(next, cluster, pool); err != nil {
		return "", err
	}
	at, _, err := parse(cluster, "clusters")
	if err != nil {
		return "", err
	}
	now := time.Now()
	var id [16]byte
	_, _ = rand.Read(id[:])
	name := fmt.Sprintf("operation-%d-%x-%x-%x-%x-%x", now.UnixMilli(), id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	path := at.String() + "/operations/" + name
	target := pool
	if target == "" {
		target = cluster
	}
	// Links of operations carry the project's number, not its id.
	byNumber := func(path string) string {
		_, rest, _ := strings.Cut(shown(path), at.project)
		return fmt.Sprintf("https://container.googleapis.com/v1/projects/%d%s", projectNumber(at.project), rest)
	}
	next.operations[path] = &operation{
		pb: &containerpb.Operation{
			Name: name, OperationType: t, Status: containerpb.Operation_PENDING,
			Zone: at.location, Location: at.location,
			SelfLink: byNumber(path), TargetLink: byNumber(target),
			StartTime: now.UTC().Format(time.RFC3339Nano),
		},
		cluster: cluster, pool: pool, afterCluster: afterCluster, afterPool: afterPool,
	}
	return path, nil
}

// launch runs an operation to its end, in the background.
func (s *Server) launch(path string) {
	ctx, abort := context.WithCancelCause(s.ctx)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		abort(nil)
		return
	}
	s.aborts[path] = abort
	s.work.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.work.Done()
		defer func() {
			s.mu.Lock()
			delete(s.aborts, path)
			s.mu.Unlock()
			abort(nil)
		}()
		s.run(ctx, path)
	}()
}

// errAborted is the end of an operation that CancelOperation stopped.
var errAborted = errors.New("Operation was aborted.") //nolint:staticcheck // GKE's text

// run carries an operation out. When the server closes it returns with the
// operation still unfinished: the next server goes on.
func (s *Server) run(ctx context.Context, path string) {
	op := s.view().operations[path]
	started, _ := time.Parse(time.RFC3339Nano, op.pb.StartTime)
	if err := s.wait(ctx, started, pendingTime); err == nil {
		s.setStatus(path, containerpb.Operation_RUNNING)
	}
	end, err := s.perform(ctx, op, started)
	if s.ctx.Err() != nil {
		return
	}
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errAborted) {
		err = errAborted
	}
	s.opts.log.Info("operation ends", "operation", op.pb.Name, "type", op.pb.OperationType, "cluster", op.cluster, "pool", op.pool, "error", err)
	s.settle(func(next state) {
		finish(next, path, end, err)
		delete(s.placed, op.pool) // what is up counts by itself
	})
}

// wait until d of GKE's time has passed since started.
func (s *Server) wait(ctx context.Context, started time.Time, d time.Duration) error {
	left := time.Until(started.Add(time.Duration(float64(d) * s.opts.scale)))
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		held := s.held.Load()
		if held == nil {
			return nil
		}
		select {
		case <-*held:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Hold keeps every operation from ending until it is released, once: whoever
// looks meanwhile sees them under way.
func (s *Server) Hold() (release func()) {
	held := make(chan struct{})
	s.held.Store(&held)
	return sync.OnceFunc(func() {
		s.held.CompareAndSwap(&held, nil)
		close(held)
	})
}

// perform does what the operation does to the world and takes its time. The
// endpoint is that of a cluster which was created.
func (s *Server) perform(ctx context.Context, op *operation, started time.Time) (Endpoint, error) {
	switch op.pb.OperationType {
	case containerpb.Operation_CREATE_CLUSTER:
		return s.performCreate(ctx, op, started)
	case containerpb.Operation_DELETE_CLUSTER:
		if err := s.wait(ctx, started, duration(op)); err != nil {
			return Endpoint{}, err
		}
		if s.opts.planes != nil {
			if err := s.opts.planes.Stop(ctx, op.cluster); err != nil {
				return Endpoint{}, fmt.Errorf("stop the control plane: %w", err)
			}
		}
		return Endpoint{}, nil
	case containerpb.Operation_CREATE_NODE_POOL:
		if err := s.tryForCapacity(op, started); err != nil {
			return Endpoint{}, err
		}
	}
	if err := s.wait(ctx, started, duration(op)); err != nil || op.pool == "" {
		return Endpoint{}, err
	}
	return Endpoint{}, s.setNodes(ctx, op.pool, op.afterPool)
}

// performCreate starts a cluster's control plane while the time passes.
func (s *Server) performCreate(ctx context.Context, op *operation, started time.Time) (Endpoint, error) {
	end := nowhere(op.afterCluster.Id)
	if s.opts.planes != nil {
		var err error
		if end, err = s.opts.planes.Start(ctx, op.cluster); err != nil {
			return Endpoint{}, fmt.Errorf("start the control plane: %w", err)
		}
	}
	if err := s.wait(ctx, started, duration(op)); err != nil {
		return Endpoint{}, err
	}
	st := s.view()
	for _, pool := range st.poolsOf(op.cluster) {
		if err := s.setNodes(ctx, pool, st.pools[pool]); err != nil {
			return Endpoint{}, err
		}
	}
	return end, nil
}

// setNodes makes a pool's nodes what p says; nil removes them.
func (s *Server) setNodes(ctx context.Context, path string, p *containerpb.NodePool) error {
	if s.opts.planes == nil {
		return nil
	}
	cluster := clusterOf(path)
	name := path[strings.LastIndex(path, "/")+1:]
	var err error
	if p == nil {
		err = s.opts.planes.SetNodes(ctx, cluster, name, nil)
	} else {
		err = s.opts.planes.SetNodes(ctx, cluster, name, s.view().nodesOf(cluster, p))
	}
	if err != nil {
		return fmt.Errorf("set the nodes of %s: %w", name, err)
	}
	return nil
}

func (s *Server) setStatus(path string, status containerpb.Operation_Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op := s.st.operations[path]; op != nil && op.pb.Status != containerpb.Operation_DONE {
		next := s.st.clone() // not written: after a restart it is PENDING again, for a moment
		changed := *op
		changed.pb = proto.CloneOf(op.pb)
		changed.pb.Status = status
		next.operations[path] = &changed
		s.st = next
	}
}
