package sandbox

import (
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// What the sandbox calls itself, unless told otherwise.
const (
	DefaultProject = "sandbox"
	DefaultZone    = "us-west4-a" // offers v5e, which the quickstart uses
)

type options struct {
	dir         string // "": a temporary one, removed by Stop
	port        int
	project     string
	zone        string
	binaries    map[string]string // the control plane's programs by name; Start finds them
	jobDuration time.Duration
	noPlanes    bool
	fake        []fakegke.Option
}

// Option configures Start.
type Option func(*options)

// WithDir keeps the sandbox's state in dir, which is made if it is missing and
// survives Stop. Without it the state is in a temporary folder that Stop
// removes.
func WithDir(dir string) Option { return func(o *options) { o.dir = dir } }

// WithPort makes the GKE API listen on this port of 127.0.0.1. 0, the default,
// takes the one it had last time if that is free, else any free one.
func WithPort(port int) Option { return func(o *options) { o.port = port } }

// WithLocation sets the project and zone that Env names. The API answers for
// any project and location.
func WithLocation(project, zone string) Option {
	return func(o *options) { o.project, o.zone = project, zone }
}

// WithJobDuration sets how long the pod of a job runs on a simulated host
// before it succeeds; the default is 5 s.
func WithJobDuration(d time.Duration) Option { return func(o *options) { o.jobDuration = d } }

// WithTimeScale multiplies the durations of GKE's operations; see
// fakegke.WithTimeScale.
func WithTimeScale(scale float64) Option {
	return WithFake(fakegke.WithTimeScale(scale))
}

// WithoutControlPlanes runs the GKE API alone: its clusters have no API server
// and keep their nodes in memory. It needs no binaries.
func WithoutControlPlanes() Option { return func(o *options) { o.noPlanes = true } }

// WithFake passes options to the fake GKE API: faults, stockouts, quotas.
func WithFake(opts ...fakegke.Option) Option {
	return func(o *options) { o.fake = append(o.fake, opts...) }
}
