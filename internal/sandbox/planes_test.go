package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

type fakePlane struct {
	endpoint string
	stopErr  error
	stopped  atomic.Int32
	nodes    map[string]int
}

func (f *fakePlane) Endpoint() string { return f.endpoint }
func (f *fakePlane) CA() []byte       { return []byte("CA of " + f.endpoint) }
func (f *fakePlane) Stop(ctx context.Context) error {
	f.stopped.Add(1)
	return errors.Join(f.stopErr, ctx.Err())
}
func (f *fakePlane) Nodes(_ context.Context, pool string, nodes []*corev1.Node) error {
	f.nodes[pool] = len(nodes)
	return nil
}

func newPlanes(t *testing.T) (*planes, map[string]*fakePlane) {
	t.Helper()
	dir := t.TempDir()
	made := map[string]*fakePlane{}
	return &planes{
		dir: filepath.Join(dir, "clusters"), kubeconfig: filepath.Join(dir, "kubeconfig"), token: "t0k3n",
		running: map[string]plane{},
		start: func(_ context.Context, cfg controlplane.Config) (plane, error) {
			if strings.HasSuffix(cfg.Name, "/broken") {
				return nil, errors.New("etcd ended")
			}
			if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
				return nil, err
			}
			f := &fakePlane{endpoint: "127.0.0.1:2000" + string(rune('0'+len(made))), nodes: map[string]int{}}
			made[cfg.Name] = f
			return f, nil
		},
	}, made
}

const (
	alpha = "projects/p/locations/z/clusters/alpha"
	beta  = "projects/p/locations/z/clusters/beta"
)

func TestPlanesStartOncePerCluster(t *testing.T) {
	p, made := newPlanes(t)
	for range 2 {
		for _, c := range []string{alpha, beta} {
			end, err := p.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if end.Host != made[c].endpoint || string(end.CA) != "CA of "+end.Host {
				t.Errorf("%s: %+v", c, end)
			}
		}
	}
	if len(made) != 2 || p.folderOf(alpha) == p.folderOf(beta) {
		t.Errorf("%d started in %s and %s", len(made), p.folderOf(alpha), p.folderOf(beta))
	}
	if _, err := p.Start(t.Context(), "projects/p/locations/z/clusters/broken"); err == nil {
		t.Error("a control plane that does not start is no error")
	}
}

func TestKubeconfigFollowsTheClusters(t *testing.T) {
	p, made := newPlanes(t)
	for _, c := range []string{beta, alpha} {
		if _, err := p.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.CurrentContext != "gke_p_z_alpha" || len(cfg.Contexts) != 2 {
		t.Errorf("current context %q of %d", cfg.CurrentContext, len(cfg.Contexts))
	}
	if got, want := cfg.Clusters["gke_p_z_beta"].Server, "https://"+made[beta].endpoint; got != want {
		t.Errorf("server %s, want %s", got, want)
	}
	if fi, err := os.Stat(p.kubeconfig); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600: it holds the token", fi.Mode(), err)
	}
	for _, c := range []string{alpha, beta} {
		if err := p.Stop(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		gone(t, p.folderOf(c))
	}
	gone(t, p.kubeconfig)
}

func TestAStopIsFinishedAlthoughTheCallerHungUp(t *testing.T) {
	p, made := newPlanes(t)
	if _, err := p.Start(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx, alpha); err != nil {
		t.Error(err)
	}
	if made[alpha].stopped.Load() != 1 {
		t.Error("it was not stopped")
	}
}

func TestAStopThatFailsKeepsTheFolderAndCanBeRepeated(t *testing.T) {
	p, made := newPlanes(t)
	if _, err := p.Start(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	made[alpha].stopErr = errors.New("still runs")
	if err := p.Stop(t.Context(), alpha); err == nil {
		t.Error("a failed stop is no error")
	}
	if _, err := os.Stat(p.folderOf(alpha)); err != nil {
		t.Error(err)
	}
	made[alpha].stopErr = nil
	if err := p.Stop(t.Context(), alpha); err != nil {
		t.Error(err)
	}
	gone(t, p.folderOf(alpha))
}

func TestNodesGoToTheirCluster(t *testing.T) {
	p, made := newPlanes(t)
	if err := p.SetNodes(t.Context(), alpha, "pool", []*corev1.Node{{}}); err == nil {
		t.Error("nodes of a cluster that does not run: no error")
	}
	if err := p.SetNodes(t.Context(), alpha, "pool", nil); err != nil {
		t.Errorf("no nodes of a cluster that does not run: %v", err)
	}
	if _, err := p.Start(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	if err := p.SetNodes(t.Context(), alpha, "pool", []*corev1.Node{{}, {}}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]int{"pool": 2}, made[alpha].nodes); diff != "" {
		t.Error(diff)
	}
}

func TestStopAllKeepsTheFolders(t *testing.T) {
	p, made := newPlanes(t)
	for _, c := range []string{alpha, beta} {
		if _, err := p.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	made[alpha].stopErr = errors.New("still runs")
	if err := p.stopAll(t.Context()); err == nil {
		t.Error("a failed stop is no error")
	}
	for _, c := range []string{alpha, beta} {
		if made[c].stopped.Load() != 1 {
			t.Errorf("%s was not stopped", c)
		}
		if _, err := os.Stat(p.folderOf(c)); err != nil {
			t.Error(err)
		}
	}
	gone(t, p.kubeconfig)
}
