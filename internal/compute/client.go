// Package compute is the part of the Compute Engine API that TPU slices need
// besides GKE: the regional workload policies by which some generations'
// multi-host slices are placed. It knows Google's APIs, never Terraform or
// cobra.
package compute

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/googleapis/gax-go/v2"
	"golang.org/x/oauth2"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

// basePath follows the host in every request's URL.
const basePath = "/compute/v1/"

// Config is how to reach the Compute Engine API. Its fields mean what they
// mean in gke.Config.
type Config struct {
	Endpoint       string
	Tokens         oauth2.TokenSource
	UserAgent      string
	QuotaProject   string
	RequestTimeout time.Duration
	PollInterval   time.Duration
	Transport      http.RoundTripper
	Log            func(ctx context.Context, msg string, fields map[string]any)
}

// Client talks to the Compute Engine API. It is safe for concurrent use and
// retries what passes by itself. Every error is an *Error.
type Client struct {
	api methods
	cfg Config
}

// New makes a client. It sends nothing and needs no credentials yet.
func New(cfg Config) (*Client, error) {
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = gke.DefaultRequestTimeout
	}
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = gke.DefaultPollInterval
	}
	if cfg.Tokens == nil {
		cfg.Tokens = gke.FindCredentials(gke.CredentialsConfig{})
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	opts := []option.ClientOption{option.WithHTTPClient(&http.Client{
		Transport: &oauth2.Transport{Source: cfg.Tokens, Base: &headers{cfg}},
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})}
	if cfg.Endpoint != "" {
		endpoint, err := gke.CheckEndpoint(cfg.Endpoint)
		if err != nil {
			return nil, err
		}
		opts = append(opts, option.WithEndpoint(endpoint+basePath))
	}
	api, err := compute.NewService(context.Background(), opts...)
	if err != nil {
		return nil, fmt.Errorf("preparing a client of the Compute Engine API: %w", err)
	}
	return &Client{api: methodsOf(api), cfg: cfg}, nil
}

// methods are the few of the API's that are used. They are kept instead of the
// service: whatever holds the service's type keeps all of Compute Engine in the
// binary, 11 MB, since the linker cannot tell what reflection may call.
type methods struct {
	get    func(context.Context, Policy) (*compute.ResourcePolicy, error)
	insert func(context.Context, Policy, *compute.ResourcePolicy) (*compute.Operation, error)
	remove func(context.Context, Policy) (*compute.Operation, error)
	wait   func(ctx context.Context, p Policy, operation string) (*compute.Operation, error)
}

func methodsOf(api *compute.Service) methods {
	return methods{
		get: func(ctx context.Context, p Policy) (*compute.ResourcePolicy, error) {
			return api.ResourcePolicies.Get(p.Project, p.Region, p.Name).Context(ctx).Do()
		},
		insert: func(ctx context.Context, p Policy, body *compute.ResourcePolicy) (*compute.Operation, error) {
			return api.ResourcePolicies.Insert(p.Project, p.Region, body).Context(ctx).Do()
		},
		remove: func(ctx context.Context, p Policy) (*compute.Operation, error) {
			return api.ResourcePolicies.Delete(p.Project, p.Region, p.Name).Context(ctx).Do()
		},
		wait: func(ctx context.Context, p Policy, operation string) (*compute.Operation, error) {
			return api.RegionOperations.Wait(p.Project, p.Region, operation).Context(ctx).Do()
		},
	}
}

// headers adds what every request carries besides the token.
type headers struct{ cfg Config }

func (h *headers) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if h.cfg.UserAgent != "" {
		req.Header.Set("User-Agent", h.cfg.UserAgent)
	}
	if h.cfg.QuotaProject != "" {
		req.Header.Set("X-Goog-User-Project", h.cfg.QuotaProject)
	}
	return h.cfg.Transport.RoundTrip(req)
}

// attempts is how often a request is sent whose answer did not come, or was
// that the service has a problem or too much to do: as often as for GKE.
const attempts = 8

// call sends one request until it succeeds, is refused for good, or ctx ends.
// A request whose reply was lost is sent again: an insert may then answer
// "already exists", which its caller must recognise as its own.
func call[T any](ctx context.Context, c *Client, t target, send func(context.Context) (T, error)) (T, error) {
	pace := c.pace()
	for try := 1; ; try++ {
		attempt, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
		out, err := send(attempt)
		cancel()
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil { // ours, not the attempt's
			return out, t.ended(ctx, "", err)
		}
		e := wrap(t, err)
		if !e.passes() || try >= attempts {
			return out, e
		}
		pause := pace.Pause()
		c.log(ctx, "waiting to try again", map[string]any{"call": t.verb, "object": t.path(), "cause": string(e.Cause), "pause": pause.String()})
		if gax.Sleep(ctx, pause) != nil {
			return out, t.ended(ctx, string(e.Cause)+": "+e.Message, err)
		}
	}
}

// pace is that of asking again, in proportion to the pace of polling.
func (c *Client) pace() gax.Backoff {
	return gax.Backoff{Initial: c.cfg.PollInterval, Max: 10 * c.cfg.PollInterval, Multiplier: 2}
}

func (c *Client) log(ctx context.Context, msg string, fields map[string]any) {
	if c.cfg.Log != nil {
		c.cfg.Log(ctx, msg, fields)
	}
}
