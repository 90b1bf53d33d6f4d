package fakegke

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// state is everything the fake knows, by path. Messages in it are never
// changed, only replaced: whoever holds a state may read it without a lock.
// Clusters are kept without their node pools.
type state struct {
	clusters   map[string]*containerpb.Cluster
	pools      map[string]*containerpb.NodePool
	operations map[string]*operation
	// Compute Engine's.
	policies   map[string]*resourcePolicy
	computeOps map[string]*computeOperation
}

// operation is an operation with what it needs to end, also after a restart.
type operation struct {
	pb      *containerpb.Operation
	cluster string // path
	pool    string // path, or "" for an operation on the cluster
	// What the target is when the operation succeeds; both nil when it is gone.
	afterCluster *containerpb.Cluster
	afterPool    *containerpb.NodePool
}

func newState() state {
	return state{
		clusters:   map[string]*containerpb.Cluster{},
		pools:      map[string]*containerpb.NodePool{},
		operations: map[string]*operation{},
		policies:   map[string]*resourcePolicy{},
		computeOps: map[string]*computeOperation{},
	}
}

func (s state) clone() state {
	return state{maps.Clone(s.clusters), maps.Clone(s.pools), maps.Clone(s.operations), maps.Clone(s.policies), maps.Clone(s.computeOps)}
}

// poolsOf lists the paths of a cluster's pools by name.
func (s state) poolsOf(cluster string) []string {
	var out []string
	for path := range s.pools {
		if clusterOf(path) == cluster {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// running lists the unfinished operations of a cluster, oldest first.
func (s state) running(cluster string) []*operation {
	var out []*operation
	for _, op := range s.operations {
		if op.cluster == cluster && op.pb.Status != containerpb.Operation_DONE {
			out = append(out, op)
		}
	}
	slices.SortFunc(out, byStart)
	return out
}

func byStart(a, b *operation) int {
	return cmp.Or(strings.Compare(a.pb.StartTime, b.pb.StartTime), strings.Compare(a.pb.Name, b.pb.Name))
}

// forget drops the oldest finished operations beyond kept.
func (s state) forget(kept int) {
	if len(s.operations) <= kept {
		return
	}
	var done []*operation
	paths := map[*operation]string{}
	for path, op := range s.operations {
		if op.pb.Status == containerpb.Operation_DONE {
			done, paths[op] = append(done, op), path
		}
	}
	slices.SortFunc(done, byStart)
	for i := 0; i < len(done)-kept; i++ {
		delete(s.operations, paths[done[i]])
	}
}

// update changes the state in one step that either happens wholly, on disk
// too, or not at all. An error of change is returned as it is; an error of
// the file becomes INTERNAL.
func (s *Server) update(change func(next state) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.st.clone()
	if err := change(next); err != nil {
		return err
	}
	if err := s.save(next); err != nil {
		s.opts.log.Error("the state file was not written, the change is refused", "file", s.opts.stateFile, "error", err)
		return internal("An internal error has occurred: the change was not stored: %v", err)
	}
	s.st = next
	return nil
}

// settle is update for what has already happened (an operation's end): the
// change stays even when the file cannot be written, and the next successful
// write contains it.
func (s *Server) settle(change func(next state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.st.clone()
	change(next)
	next.forget(s.opts.kept)
	if err := s.save(next); err != nil {
		s.opts.log.Error("the state file was not written, it is behind until the next change", "file", s.opts.stateFile, "error", err)
	}
	s.st = next
}

// view is the current state.
func (s *Server) view() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st
}

// stateVersion is bumped when stateJSON changes meaning.
const stateVersion = 1

type stateJSON struct {
	Version    int                        `json:"version"`
	Clusters   map[string]json.RawMessage `json:"clusters"`
	NodePools  map[string]json.RawMessage `json:"nodePools"`
	Operations map[string]operationJSON   `json:"operations"`

	Policies          map[string]*resourcePolicy   `json:"resourcePolicies,omitempty"`
	ComputeOperations map[string]*computeOperation `json:"computeOperations,omitempty"`
}

type operationJSON struct {
	Operation    json.RawMessage `json:"operation"`
	Cluster      string          `json:"cluster"`
	NodePool     string          `json:"nodePool,omitempty"`
	AfterCluster json.RawMessage `json:"afterCluster,omitempty"`
	AfterPool    json.RawMessage `json:"afterNodePool,omitempty"`
}

// save writes st. Encoded messages are kept for the next call: messages are
// immutable, and most do not change between two writes. Caller holds mu.
func (s *Server) save(st state) error {
	if s.opts.stateFile == "" {
		return nil
	}
	fresh := map[proto.Message]json.RawMessage{}
	var failed error
	encode := func(m proto.Message) json.RawMessage {
		raw, ok := s.encoded[m]
		if !ok {
			var err error
			if raw, err = protojson.Marshal(m); err != nil {
				failed = errors.Join(failed, err)
			}
		}
		fresh[m] = raw
		return raw
	}
	out := stateJSON{
		Version: stateVersion, Clusters: map[string]json.RawMessage{}, NodePools: map[string]json.RawMessage{}, Operations: map[string]operationJSON{},
		Policies: st.policies, ComputeOperations: st.computeOps,
	}
	for path, c := range st.clusters {
		out.Clusters[path] = encode(c)
	}
	for path, p := range st.pools {
		out.NodePools[path] = encode(p)
	}
	for path, op := range st.operations {
		o := operationJSON{Operation: encode(op.pb), Cluster: op.cluster, NodePool: op.pool}
		if op.afterCluster != nil {
			o.AfterCluster = encode(op.afterCluster)
		}
		if op.afterPool != nil {
			o.AfterPool = encode(op.afterPool)
		}
		out.Operations[path] = o
	}
	data, err := json.Marshal(out)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	if err := s.opts.writeState(s.opts.stateFile, data); err != nil {
		return err
	}
	s.encoded = fresh
	return nil
}

// load reads the state file; a file that is not there is an empty state.
func load(path string) (state, error) {
	st := newState()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, fmt.Errorf("read the fake GKE's state: %w", err)
	}
	var in stateJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return st, fmt.Errorf("read the fake GKE's state in %s: %w; remove the file to start from nothing", path, err)
	}
	if in.Version != stateVersion {
		return st, fmt.Errorf("read the fake GKE's state in %s: version %d, want %d; remove the file to start from nothing", path, in.Version, stateVersion)
	}
	var failed error
	decode := func(raw json.RawMessage, m proto.Message) {
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, m); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	for path, raw := range in.Clusters {
		st.clusters[path] = &containerpb.Cluster{}
		decode(raw, st.clusters[path])
	}
	for path, raw := range in.NodePools {
		st.pools[path] = &containerpb.NodePool{}
		decode(raw, st.pools[path])
	}
	for path, o := range in.Operations {
		op := &operation{pb: &containerpb.Operation{}, cluster: o.Cluster, pool: o.NodePool}
		decode(o.Operation, op.pb)
		if o.AfterCluster != nil {
			op.afterCluster = &containerpb.Cluster{}
			decode(o.AfterCluster, op.afterCluster)
		}
		if o.AfterPool != nil {
			op.afterPool = &containerpb.NodePool{}
			decode(o.AfterPool, op.afterPool)
		}
		st.operations[path] = op
	}
	maps.Copy(st.policies, in.Policies)
	maps.Copy(st.computeOps, in.ComputeOperations)
	if failed != nil {
		return st, fmt.Errorf("read the fake GKE's state in %s: %w; remove the file to start from nothing", path, failed)
	}
	return st, nil
}
