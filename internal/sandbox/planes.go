package sandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// plane is what is needed of a running control plane.
type plane interface {
	Endpoint() string
	CA() []byte
	Nodes(ctx context.Context, pool string, nodes []*corev1.Node) error
	Stop(ctx context.Context) error
}

// planes gives each of the fake's clusters a control plane of its own, in a
// folder of its own. It is the fake's fakegke.ControlPlanes.
type planes struct {
	dir         string // holds one folder a cluster
	kubeconfig  string
	token       string
	binaries    map[string]string
	jobDuration time.Duration
	log         hclog.Logger
	start       func(context.Context, controlplane.Config) (plane, error)

	faults *faults.Set // in the path to the API servers

	mu      sync.Mutex
	running map[string]plane // by the cluster's path
	proxies map[string]*faults.Proxy
}

var _ fakegke.ControlPlanes = (*planes)(nil)

// OlderControllers is the program of a jobset or kueue image of a version from
// which clusters are upgraded, built when a pod first needs it; "" for any other
// version.
func OlderControllers(ctx context.Context, name, tag string) (string, error) {
	if tag == "" || binaries.OlderImages[name] != tag {
		return "", nil
	}
	paths, err := binaries.OlderControllers(ctx, nil)
	return paths[name], err
}

func startControlPlane(ctx context.Context, cfg controlplane.Config) (plane, error) {
	cp, err := controlplane.Start(ctx, cfg)
	if err != nil {
		return nil, err // not cp: a nil *ControlPlane would be a plane that is not nil
	}
	return cp, nil
}

// folderOf is where a cluster (projects/P/locations/L/clusters/C) lives. GKE's
// names have no underscore, so two clusters never share one.
func (p *planes) folderOf(cluster string) string {
	f := strings.Split(cluster, "/")
	if len(f) != 6 {
		return filepath.Join(p.dir, strings.ReplaceAll(cluster, "/", "_"))
	}
	return filepath.Join(p.dir, f[1]+"_"+f[3]+"_"+f[5])
}

func (p *planes) get(cluster string) plane {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[cluster]
}

// set notes what runs for a cluster, and writes the kubeconfig to match.
func (p *planes) set(cluster string, cp plane) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cp == nil {
		delete(p.running, cluster)
	} else {
		p.running[cluster] = cp
	}
	return writeKubeconfig(p.kubeconfig, p.token, p.running)
}

// Start runs a cluster's control plane, from what its folder holds if it ran
// before. One that runs is left running.
func (p *planes) Start(ctx context.Context, cluster string) (fakegke.Endpoint, error) {
	cp := p.get(cluster)
	if cp == nil {
		var err error
		cp, err = p.start(ctx, controlplane.Config{
			Name: cluster, Dir: p.folderOf(cluster), Binaries: p.binaries,
			Older: OlderControllers, Token: p.token, JobDuration: p.jobDuration, Logger: p.log,
		})
		if err != nil {
			return fakegke.Endpoint{}, err
		}
		if err := p.set(cluster, cp); err != nil {
			return fakegke.Endpoint{}, errors.Join(err, p.end(ctx, cluster, cp))
		}
	}
	host, err := p.proxy(cluster, cp)
	if err != nil {
		return fakegke.Endpoint{}, err
	}
	return fakegke.Endpoint{Host: host, CA: cp.CA()}, nil
}

// certified is a plane that lets somebody else answer in its API server's name.
type certified interface {
	Certificate() (tls.Certificate, error)
}

// proxy puts the fault rules before a cluster's API server and returns where to
// reach it now.
func (p *planes) proxy(cluster string, cp plane) (host string, err error) {
	server, ok := cp.(certified)
	if !ok {
		return cp.Endpoint(), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.proxies[cluster]; before != nil {
		return before.Endpoint(), nil
	}
	pair, err := server.Certificate()
	if err != nil {
		return "", err
	}
	proxy, err := faults.NewProxy(p.faults, cluster, cp.Endpoint(), cp.CA(), pair)
	if err != nil {
		return "", err
	}
	p.proxies[cluster] = proxy
	return proxy.Endpoint(), nil
}

// unproxy ends what proxy made.
func (p *planes) unproxy(cluster string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	proxy := p.proxies[cluster]
	if proxy == nil {
		return nil
	}
	delete(p.proxies, cluster)
	return proxy.Close()
}

// Stop ends a cluster's control plane and removes its folder; also that of a
// cluster that does not run.
func (p *planes) Stop(ctx context.Context, cluster string) error {
	if cp := p.get(cluster); cp != nil {
		if err := p.end(ctx, cluster, cp); err != nil {
			return err
		}
	}
	dir := p.folderOf(cluster)
	if err := process.CleanUp(dir); err != nil {
		return fmt.Errorf("stopping what is left of %s: %w", cluster, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the files of %s: %w", cluster, err)
	}
	return nil
}

func (p *planes) end(ctx context.Context, cluster string, cp plane) error {
	// Whoever asked may have hung up; half-stopped is worse than late.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := errors.Join(p.unproxy(cluster), cp.Stop(ctx)); err != nil {
		return err
	}
	return p.set(cluster, nil)
}

// SetNodes makes the nodes of one pool of a running cluster be exactly these.
func (p *planes) SetNodes(ctx context.Context, cluster, pool string, nodes []*corev1.Node) error {
	cp := p.get(cluster)
	if cp == nil {
		if len(nodes) == 0 {
			return nil // nothing runs, so nothing is there
		}
		return fmt.Errorf("setting the nodes of pool %s: the control plane of %s does not run", pool, cluster)
	}
	return cp.Nodes(ctx, pool, nodes)
}

// stopAll ends every control plane at once and keeps their folders.
func (p *planes) stopAll(ctx context.Context) error {
	p.mu.Lock()
	running := make([]plane, 0, len(p.running))
	for _, cp := range p.running {
		running = append(running, cp)
	}
	clear(p.running)
	unusable := writeKubeconfig(p.kubeconfig, p.token, nil)
	for _, proxy := range p.proxies {
		unusable = errors.Join(unusable, proxy.Close())
	}
	clear(p.proxies)
	p.mu.Unlock()
	errs := make([]error, len(running), len(running)+1)
	var wg sync.WaitGroup
	for i, cp := range running {
		wg.Go(func() { errs[i] = cp.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(append(errs, unusable)...)
}
