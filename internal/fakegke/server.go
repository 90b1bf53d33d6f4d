package fakegke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
)

// Server is the fake. It is an http.Handler that needs HTTP/2 without TLS for
// gRPC callers; Serve arranges that.
type Server struct {
	opts options
	rpc  *grpc.Server
	// The REST face twice: with enum names, and with enum numbers.
	named, numbered http.Handler

	ctx  context.Context // ends at Close
	stop context.CancelFunc
	work sync.WaitGroup // running operations
	held atomic.Pointer[chan struct{}]

	mu        sync.Mutex
	st        state
	encoded   map[proto.Message]json.RawMessage
	aborts    map[string]context.CancelCauseFunc // running operations by path
	late      map[string]int                     // reads of a new pool still to be refused
	stockouts []Stockout
	placed    map[string]bool // pools under creation that found capacity
	scarcity
	faults  []*Fault
	access  access
	missing []string // locations that do not answer
	calls   map[string]int
	servers []*http.Server
	closed  bool
}

// New makes a server; with a state file, one that holds what the file says.
// Then call Resume before serving, so that operations that were under way go
// on; without control planes New has done so.
func New(opts ...Option) (*Server, error) {
	o := options{scale: defaultTimeScale, quota: defaultOperationQuota, kept: defaultKept, writeState: replaceFile, log: hclog.NewNullLogger()}
	for _, opt := range opts {
		opt(&o)
	}
	s := &Server{
		opts:      o,
		st:        newState(),
		aborts:    map[string]context.CancelCauseFunc{},
		late:      map[string]int{},
		stockouts: o.stockouts,
		placed:    map[string]bool{},
		access:    o.access,
		calls:     map[string]int{},
		scarcity:  o.scarcity,
	}
	if o.stateFile != "" {
		st, err := load(o.stateFile)
		if err != nil {
			return nil, err
		}
		s.st = st
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.rpc = grpc.NewServer(grpc.ChainUnaryInterceptor(s.intercept, s.authorize))
	containerpb.RegisterClusterManagerServer(s.rpc, &service{Server: s})
	var err error
	if s.named, err = restHandler(s.rpc, false); err != nil {
		return nil, err
	}
	if s.numbered, err = restHandler(s.rpc, true); err != nil {
		return nil, err
	}
	if o.planes == nil {
		if err := s.Resume(s.ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Serve answers on l until Close; it then returns nil.
func (s *Server) Serve(l net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	h := &http.Server{Handler: s, Protocols: &protocols, ErrorLog: s.opts.log.StandardLogger(nil)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return l.Close() // it ended before it began, as asked
	}
	s.servers = append(s.servers, h)
	s.mu.Unlock()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the fake GKE API on %s: %w", l.Addr(), err)
	}
	return nil
}

// Close stops serving and leaves operations where they are: with a state file
// the next server goes on with them. Control planes are not stopped.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	servers := s.servers
	s.mu.Unlock()
	var errs []error
	for _, h := range servers {
		errs = append(errs, h.Close())
	}
	s.stop()
	s.work.Wait()
	s.rpc.Stop()
	return errors.Join(errs...)
}

// Resume starts the control planes of the clusters that the state file holds,
// gives them their nodes, and goes on with operations that were under way. A
// control plane that does not start leaves its cluster in ERROR and is part of
// the error returned; the others are resumed all the same.
func (s *Server) Resume(ctx context.Context) error {
	st := s.view()
	errs := make([]error, 0, len(st.clusters))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for path, c := range st.clusters {
		if s.opts.planes == nil || c.Status == containerpb.Cluster_PROVISIONING || c.Status == containerpb.Cluster_STOPPING {
			continue // its operation starts or stops it
		}
		wg.Go(func() {
			if err := s.restart(ctx, st, path); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for path, op := range s.view().operations {
		if op.pb.Status != containerpb.Operation_DONE {
			s.launch(path)
		}
	}
	return errors.Join(errs...)
}

// restart starts one known cluster's control plane and restores its nodes.
func (s *Server) restart(ctx context.Context, st state, path string) error {
	end, err := s.opts.planes.Start(ctx, path)
	s.settle(func(next state) {
		c := proto.CloneOf(next.clusters[path])
		if err != nil {
			failCluster(c, err)
		} else {
			setEndpoint(c, end)
			if c.Status == containerpb.Cluster_ERROR {
				c.Status, c.StatusMessage, c.Conditions = containerpb.Cluster_RUNNING, "", nil
			}
		}
		next.clusters[path] = c
	})
	if err != nil {
		return fmt.Errorf("start the control plane of %s: %w", path, err)
	}
	for _, pool := range st.poolsOf(path) {
		if !hasNodes(st.pools[pool]) {
			continue
		}
		if err := s.opts.planes.SetNodes(ctx, path, st.pools[pool].Name, st.nodesOf(path, st.pools[pool])); err != nil {
			return fmt.Errorf("restore the nodes of %s: %w", pool, err)
		}
	}
	return nil
}

// Calls counts the calls so far, by method ("CreateNodePool"), also those that
// a Fault or the token check refused.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Clusters returns all clusters, with their node pools, by path.
func (s *Server) Clusters() []*containerpb.Cluster {
	st := s.view()
	var out []*containerpb.Cluster
	for _, path := range slices.Sorted(maps.Keys(st.clusters)) {
		out = append(out, st.cluster(path))
	}
	return out
}

// NodePools returns the node pools of a cluster (projects/P/locations/L/clusters/C) by name.
func (s *Server) NodePools(cluster string) []*containerpb.NodePool {
	st := s.view()
	var out []*containerpb.NodePool
	for _, path := range st.poolsOf(cluster) {
		out = append(out, proto.CloneOf(st.pools[path]))
	}
	return out
}

// Operations returns the operations that are remembered, oldest first.
func (s *Server) Operations() []*containerpb.Operation {
	var out []*containerpb.Operation
	for _, op := range slices.SortedFunc(maps.Values(s.view().operations), byStart) {
		out = append(out, proto.CloneOf(op.pb))
	}
	return out
}

// Nodes returns the nodes that a cluster has, as they are given to its control
// plane: those of pools that are up.
func (s *Server) Nodes(cluster string) []*corev1.Node {
	st := s.view()
	var out []*corev1.Node
	for _, path := range st.poolsOf(cluster) {
		if hasNodes(st.pools[path]) {
			out = append(out, st.nodesOf(cluster, st.pools[path])...)
		}
	}
	return out
}

// Empty reports whether no cluster, node pool or resource policy is left, and
// nothing is under way.
func (s *Server) Empty() bool {
	st := s.view()
	for _, op := range st.operations {
		if op.pb.Status != containerpb.Operation_DONE {
			return false
		}
	}
	return len(st.clusters) == 0 && len(st.pools) == 0 && len(s.Policies()) == 0
}
