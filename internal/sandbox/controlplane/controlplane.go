// Package controlplane runs one real Kubernetes cluster out of local processes:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler, KWOK for
// the kubelets of simulated hosts, and, for pods of the JobSet and Kueue images,
// the real controllers as processes. Everything listens on loopback; keys,
// tokens and logs stay in one folder. It knows Kubernetes, never GKE's API.
package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// Config says where a control plane lives and what it is made of.
type Config struct {
	Name     string            // how messages name it
	Dir      string            // keeps etcd's data, keys, logs; the same Dir again continues the same cluster
	Binaries map[string]string // etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, jobset, kueue -> path
	// Older returns the program of a jobset or kueue image of another version
	// than that in Binaries, as a kubelet pulls one: "" when it has none, and
	// then Binaries serves any version. Nil has none.
	Older  func(ctx context.Context, name, tag string) (path string, err error)
	Token  string       // bearer token of an administrator (system:masters)
	Logger hclog.Logger // nil means silence
	// JobDuration is how long the pod of a Job runs on a simulated host before
	// it succeeds; 0 means 5 s. A pod's annotation
	// pod-complete.stage.kwok.x-k8s.io/delay overrides it.
	JobDuration time.Duration

	freePort func() (int, error) // nil means process.FreePort
}

const (
	defaultJobDuration = 5 * time.Second
	// startTimeout bounds the start of a part on a machine that is busy with
	// other things; idle, it takes about 4 s.
	startTimeout = 3 * time.Minute
	// portTries is how often a start is repeated after another program took one
	// of the ports chosen for it.
	portTries = 3
)

// ControlPlane is one running cluster.
type ControlPlane struct {
	cfg    Config
	log    hclog.Logger
	pki    *pki
	port   int // of kube-apiserver
	client kubernetes.Interface
	rest   *rest.Config
	egress *egress

	kubelet        *kubelet
	warden         *warden // GKE's admission
	visibilityOnce sync.Once
	visibilityOK   bool
	stopped        context.CancelFunc // ends the background work
	work           sync.WaitGroup

	mu    sync.Mutex
	parts []*part // in the order of their start
}

// Start runs the cluster and returns when its API server is ready and its
// controllers work. It first ends what an earlier, killed run left in Dir.
// On failure nothing keeps running, and the error ends with the last lines of
// the log of the part that failed.
func Start(ctx context.Context, cfg Config) (*ControlPlane, error) {
	cp, err := prepare(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting control plane %s: %w", cfg.Name, err)
	}
	began := time.Now()
	for try := 1; ; try++ {
		err = cp.start(ctx)
		if err == nil {
			cp.log.Info("control plane is ready", "cluster", cfg.Name, "endpoint", cp.Endpoint(), "took", time.Since(began).Round(time.Millisecond))
			return cp, nil
		}
		cp.stopParts()
		if !process.PortConflict(err) || try == portTries || ctx.Err() != nil {
			cp.egress.Close()
			return nil, fmt.Errorf("starting control plane %s: %w", cfg.Name, err)
		}
		cp.log.Warn("another program took a port, choosing new ones", "cluster", cfg.Name, "try", try)
	}
}

func prepare(cfg Config) (*ControlPlane, error) {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if cfg.Binaries[name] == "" {
			return nil, fmt.Errorf("no path given for the binary %s", name)
		}
	}
	if cfg.Token == "" || strings.ContainsAny(cfg.Token, ",\"\n\r ") {
		return nil, errors.New("the administrator's token must be given, and free of commas, quotes and spaces")
	}
	if cfg.JobDuration == 0 {
		cfg.JobDuration = defaultJobDuration
	}
	if cfg.freePort == nil {
		cfg.freePort = process.FreePort
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := process.CleanUp(dir); err != nil {
		return nil, err
	}
	keys, err := loadOrMakePKI(filepath.Join(dir, "pki"))
	if err != nil {
		return nil, err
	}
	eg, err := listenEgress(cfg.Logger, keys)
	if err != nil {
		return nil, err
	}
	return &ControlPlane{cfg: cfg, log: cfg.Logger, pki: keys, egress: eg}, nil
}

// start runs the parts in the order in which they need each other.
func (cp *ControlPlane) start(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	files, err := cp.writeFiles()
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	cp.stopped = stop
	if err := cp.run(etcd(files), apiserver(files)); err != nil {
		return err
	}
	cp.port = files.apiPort
	if err := cp.connect(files); err != nil {
		return err
	}
	if err := cp.whileAlive(ctx, "kube-apiserver to be ready", cp.apiReady); err != nil {
		return err
	}
	w, err := cp.serveWarden(ctx)
	if err != nil {
		return err
	}
	cp.warden = w
	if err := cp.run(controllerManager(files), scheduler(files), kwok(files)); err != nil {
		return err
	}
	if err := cp.whileAlive(ctx, "kube-controller-manager to make the default service account", cp.controllersWork); err != nil {
		return err
	}
	for _, p := range cp.parts {
		cp.work.Go(func() { cp.watch(background, p) })
	}
	cp.kubelet = newKubelet(cp)
	api, err := cp.kubelet.serveAPI()
	if err != nil {
		return err
	}
	cp.egress.Nodes(api.listener.Addr().String())
	cp.work.Go(func() { cp.kubelet.run(background, api) })
	return cp.whileAlive(ctx, "the controllers of an earlier run to be ready again", func(context.Context) error {
		select {
		case <-cp.kubelet.synced:
			return nil
		default:
			return errors.New("not yet")
		}
	})
}

// Endpoint is the API server's address, host:port, served over TLS.
func (cp *ControlPlane) Endpoint() string { return fmt.Sprintf("127.0.0.1:%d", cp.port) }

// CA is the PEM certificate that the API server's certificate descends from.
func (cp *ControlPlane) CA() []byte { return cp.pki.cluster.certPEM }

// Certificate is what the API server identifies itself by, for whoever answers
// in its place.
func (cp *ControlPlane) Certificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cp.pki.cert("apiserver"), cp.pki.key("apiserver"))
	if err != nil {
		return pair, fmt.Errorf("loading the certificate of the API server: %w", err)
	}
	return pair, nil
}

// Kubeconfig is the path of an administrator's kubeconfig, readable by its
// owner only.
func (cp *ControlPlane) Kubeconfig() string { return filepath.Join(cp.cfg.Dir, "kubeconfig") }

// RESTConfig is an administrator's access, unthrottled.
func (cp *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(cp.rest) }

// Stop ends every process of the cluster and keeps its folder: Start with the
// same Dir continues where it stopped. Stopping twice is fine.
func (cp *ControlPlane) Stop(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		cp.stopParts()
		cp.egress.Close()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("stopping control plane %s: %w", cp.cfg.Name, ctx.Err())
	}
	if left := process.List(cp.cfg.Dir); len(left) > 0 {
		return fmt.Errorf("stopping control plane %s: %s (process %d) still runs", cp.cfg.Name, left[0].Name, left[0].Pid)
	}
	return nil
}

func (cp *ControlPlane) connect(f *files) error {
	cp.rest = &rest.Config{
		Host:            f.server,
		BearerToken:     cp.cfg.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.CA()},
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
		UserAgent:       "sandbox",
		Dial:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	}
	var err error
	cp.client, err = kubernetes.NewForConfig(cp.rest)
	return err
}
