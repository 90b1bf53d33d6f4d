// Package sandbox is GKE with TPUs on one machine: the fake GKE API, and behind
// each of its clusters a real control plane with simulated TPU hosts. Tests and
// `tpuctl sandbox` share it. It wires its parts and owns their folder; what a
// cluster or an operation is, the parts know. It must not know the provider or
// the command line.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/faults"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// stopTimeout bounds the end of all processes; they take about 2 s.
const stopTimeout = 45 * time.Second

// Sandbox is a running sandbox.
type Sandbox struct {
	folder  *folder
	temp    bool // the folder is ours to remove
	address address
	token   string
	started time.Time
	log     hclog.Logger
	logFile *os.File

	fake   *fakegke.Server
	faults *faults.Set
	limits *limits
	planes *planes // nil without control planes
	server *http.Server

	stop    sync.Once
	stopErr error
}

// Start runs a sandbox and returns when it answers, with the clusters it had
// when it last stopped or was killed. ctx bounds the start only. A start that
// fails or is cancelled leaves no process, and no folder that was not there.
func Start(ctx context.Context, opts ...Option) (s *Sandbox, err error) {
	o := options{project: DefaultProject, zone: DefaultZone}
	for _, opt := range opts {
		opt(&o)
	}
	if !o.noPlanes {
		// Before the folder is taken: this may take minutes.
		if o.binaries, err = binaries.ControlPlane(ctx, nil); err != nil {
			return nil, err
		}
	}
	s = &Sandbox{started: time.Now()}
	if o.dir == "" {
		s.temp = true
		if o.dir, err = os.MkdirTemp("", "tpu-sandbox-"); err != nil {
			return nil, fmt.Errorf("making the sandbox's folder: %w", err)
		}
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox's folder: %w", err)
	}
	if s.folder, err = openFolder(dir); err != nil {
		if s.temp {
			_ = os.RemoveAll(dir)
		}
		return nil, err
	}
	if err = s.start(ctx, o); err != nil {
		err = errors.Join(err, s.end())
		s.folder.removeIfFresh()
		return nil, err
	}
	return s, nil
}

func (s *Sandbox) start(ctx context.Context, o options) (err error) {
	if s.logFile, err = os.OpenFile(s.folder.path(logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("opening the sandbox's log: %w", err)
	}
	s.log = hclog.New(&hclog.LoggerOptions{Name: "sandbox", Level: hclog.Info, Output: s.logFile})
	if s.token, err = s.folder.token(); err != nil {
		return err
	}
	if s.faults, err = faults.Load(s.folder.path(faultsFile)); err != nil {
		return err
	}
	if s.limits, err = loadLimits(s.folder.path(capacityFile)); err != nil {
		return err
	}
	listener, err := s.listen(o.port)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = listener.Close()
		}
	}()
	s.address = address{Endpoint: "http://" + listener.Addr().String(), Project: o.project, Zone: o.zone}
	if err := s.folder.setAddress(s.address); err != nil {
		return err
	}
	fakeOpts := []fakegke.Option{
		fakegke.WithToken(s.token),
		fakegke.WithStateFile(s.folder.path(fakeStateFile)),
		fakegke.WithLogger(s.log.Named("gke")),
	}
	if !o.noPlanes {
		s.planes = &planes{
			dir:         s.folder.path(clustersFolder),
			kubeconfig:  s.folder.path(kubeconfigFile),
			token:       s.token,
			binaries:    o.binaries,
			jobDuration: o.jobDuration,
			log:         s.log.Named("cluster"),
			start:       startControlPlane,
			faults:      s.faults,
			running:     map[string]plane{},
			proxies:     map[string]*faults.Proxy{},
		}
		fakeOpts = append(fakeOpts, fakegke.WithControlPlanes(s.planes))
	}
	if s.fake, err = fakegke.New(append(fakeOpts, o.fake...)...); err != nil {
		return err
	}
	if len(s.limits.list()) > 0 { // else those that the options ask for
		s.limits.tell(s.fake)
	}
	if s.planes != nil {
		if err := s.fake.Resume(ctx); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("starting the sandbox's clusters: %w", context.Cause(ctx))
			}
			// One broken cluster must not lock its owner out of the others, nor
			// of deleting it: it is in ERROR, with this message.
			s.log.Error("a cluster was not started again", "error", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("starting the sandbox: %w", context.Cause(ctx))
	}
	s.serve(listener)
	s.log.Info("the sandbox is ready", "endpoint", s.address.Endpoint, "pid", os.Getpid())
	return nil
}

// PortError says that the port asked for is taken.
type PortError struct{ Port int }

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d of 127.0.0.1 is in use by another program: use another one, or none to have a free one chosen", e.Port)
}

// listen takes the port asked for; without one the port of last time, so that
// a shell's exported endpoint stays good; else any free one.
func (s *Sandbox) listen(port int) (net.Listener, error) {
	if port != 0 {
		l, err := net.Listen("tcp", loopback(port))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &PortError{port}
		}
		if err != nil {
			return nil, fmt.Errorf("listening for the GKE API: %w", err)
		}
		return l, nil
	}
	if before, err := s.folder.address(); err == nil {
		if u, err := url.Parse(before.Endpoint); err == nil {
			if l := again(u.Host); l != nil {
				return l, nil
			}
		}
	}
	for try := 1; ; try++ {
		port, err := process.FreePort()
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", loopback(port))
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || try == 5 {
			return nil, fmt.Errorf("listening for the GKE API: %w", err)
		}
	}
}

// again listens on the address of last time, or returns nil when another program
// has it. A process that was being started when the one before let go of the
// port may hold it for a moment longer.
func again(address string) net.Listener {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) > time.Second {
			return nil
		}
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (s *Sandbox) serve(l net.Listener) {
	mux := http.NewServeMux()
	mux.Handle(statusPath, s.statusHandler())
	mux.Handle(faultsPath, s.faultsHandler())
	mux.Handle(capacityPath, s.capacityHandler())
	mux.Handle(hostsPath, s.hostsHandler())
	mux.Handle(disruptionsPath, s.disruptionsHandler())
	mux.Handle(exitsPath, s.exitsHandler())
	mux.Handle(printsPath, s.printsHandler())
	mux.Handle("/", s.faults.GKE(s.fake))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.server = &http.Server{
		Handler: mux, Protocols: &protocols,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          s.log.StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true}),
	}
	go func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the GKE API stopped answering", "error", err)
		}
	}()
}

// Stop ends every process and gives the folder up. The state stays, for the
// next Start in the same folder, unless the folder was a temporary one.
// Stopping twice is fine.
func (s *Sandbox) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		done := make(chan error, 1)
		go func() { done <- s.end() }()
		select {
		case s.stopErr = <-done:
		case <-ctx.Done():
			s.stopErr = fmt.Errorf("stopping the sandbox in %s: %w", s.Dir(), context.Cause(ctx))
			return
		}
		if s.temp {
			if err := os.RemoveAll(s.Dir()); err != nil {
				s.stopErr = errors.Join(s.stopErr, fmt.Errorf("removing the sandbox's folder: %w", err))
			}
		}
		s.folder.close()
	})
	return s.stopErr
}

// end stops what start started, however far it came.
func (s *Sandbox) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	if s.fake != nil {
		errs = append(errs, s.fake.Close())
	}
	if s.planes != nil {
		errs = append(errs, s.planes.stopAll(ctx))
	}
	if s.logFile != nil {
		s.log.Info("the sandbox has stopped")
		errs = append(errs, s.logFile.Close())
	}
	return errors.Join(errs...)
}

// Endpoint is the GKE API's base URL, http://127.0.0.1:PORT.
func (s *Sandbox) Endpoint() string { return s.address.Endpoint }

// Token is the bearer token that the GKE API and every cluster accept.
func (s *Sandbox) Token() string { return s.token }

// Dir is the folder with the sandbox's state and logs.
func (s *Sandbox) Dir() string { return s.folder.dir }

// Env is what points Terraform and tpuctl at the sandbox, as KEY=value.
func (s *Sandbox) Env() []string {
	return environment(s.Dir(), s.address, s.token).List()
}

// Empty tells whether no cluster, node pool or operation is left.
func (s *Sandbox) Empty() bool { return s.fake.Empty() }

// GKE is the fake GKE API itself, to look at from behind.
func (s *Sandbox) GKE() *fakegke.Server { return s.fake }

// Remaining lists the paths of the clusters and node pools that exist.
func (s *Sandbox) Remaining() []string {
	var out []string
	for _, c := range s.Status().Clusters {
		out = append(out, c.Path)
		for _, p := range c.NodePools {
			out = append(out, c.Path+"/nodePools/"+p.Name)
		}
	}
	return out
}
