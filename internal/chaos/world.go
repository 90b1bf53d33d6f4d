package chaos

import (
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
)

// owner names the configuration under test: adoption goes by it.
const owner = "chaos"

// world is a fake GKE of one cell's own, with fault rules before it.
type world struct {
	*acctest.GKE
	ledger
	faults *faults.Set
	file   string // the fake's state
}

// newWorld starts a fake that goes on from a snapshot; nil is an empty one.
func newWorld(t testing.TB, snapshot []byte, opts ...fakegke.Option) *world {
	t.Helper()
	w := &world{faults: &faults.Set{}, file: filepath.Join(t.TempDir(), "gke.json")}
	if snapshot != nil {
		if err := os.WriteFile(w.file, snapshot, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.GKE = acctest.NewGKE(t, append([]fakegke.Option{fakegke.WithStateFile(w.file)}, opts...)...)
	if err := w.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.ledger = newLedger(w.GKE.Server, w.Project)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: w.faults.GKE(w.GKE.Server)}
	go func() { _ = front.Serve(l) }()
	t.Cleanup(func() { _ = front.Close() })
	w.Endpoint = "http://" + l.Addr().String()
	return w
}

// snapshot is what the next world goes on from.
func (w *world) snapshot(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ledger is what a fake GKE has and did of one project's.
type ledger struct {
	fake    *fakegke.Server
	project string
	began   map[string]bool
}

func newLedger(fake *fakegke.Server, project string) ledger {
	l := ledger{fake: fake, project: "/projects/" + project + "/", began: map[string]bool{}}
	l.mark()
	return l
}

// mark lets facts count what GKE did from now on.
func (l ledger) mark() {
	for _, op := range l.fake.Operations() {
		l.began[op.Name] = true
	}
}

// facts is what GKE has and did, as far as the model speaks of it.
type facts struct {
	pools    map[string]*containerpb.NodePool // by name
	clusters []string
	policies []string
	created  map[string]int // accepted creates since the world began, by name
	deleted  map[string]int
}

func (l ledger) facts() facts {
	f := facts{pools: map[string]*containerpb.NodePool{}, created: map[string]int{}, deleted: map[string]int{}}
	for _, c := range l.fake.Clusters() {
		if !strings.Contains(c.SelfLink, l.project) {
			continue
		}
		f.clusters = append(f.clusters, c.Name)
		for _, p := range c.NodePools {
			f.pools[p.Name] = p
		}
	}
	for _, p := range l.fake.Policies() {
		if strings.Contains("/"+p, l.project) {
			f.policies = append(f.policies, p[strings.LastIndex(p, "/")+1:])
		}
	}
	for _, op := range l.fake.Operations() {
		if l.began[op.Name] || !strings.Contains(op.TargetLink, l.project) {
			continue
		}
		name := op.TargetLink[strings.LastIndex(op.TargetLink, "/")+1:]
		switch op.OperationType {
		case containerpb.Operation_CREATE_NODE_POOL, containerpb.Operation_CREATE_CLUSTER:
			f.created[name]++
		case containerpb.Operation_DELETE_NODE_POOL, containerpb.Operation_DELETE_CLUSTER:
			f.deleted[name]++
		}
	}
	return f
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
