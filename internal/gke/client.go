package gke

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/share"
)

// Defaults of Config.
const (
	DefaultRequestTimeout = 60 * time.Second
	DefaultPollInterval   = time.Second
)

// Config is how to reach the Container API.
type Config struct {
	Endpoint       string // "" is Google's; http:// is for loopback addresses only
	Tokens         oauth2.TokenSource
	UserAgent      string
	QuotaProject   string        // project that requests are counted against, or ""
	RequestTimeout time.Duration // of one request; DefaultRequestTimeout when 0
	PollInterval   time.Duration // between two looks at running operations, at least; DefaultPollInterval when 0
	MaxOperations  int           // in flight per cluster, at most; 0 is as many as GKE takes
	PerMinute      int           // requests, in all; RequestsPerMinute when 0
	Transport      http.RoundTripper
	// Log takes what happens behind the calls: retries, operations. Never secrets.
	Log func(ctx context.Context, msg string, fields map[string]any)
	// Progress takes how far long work has come, now and then (every ten poll
	// intervals) and at its end. Work that is quick is not reported.
	Progress func(ctx context.Context, p Progress)
}

// Client talks to the Container API. It is safe for concurrent use, retries
// what passes by itself, and keeps within each cluster's operation quota and
// the project's request quota.
// Every error is an *Error.
type Client struct {
	api       *container.ClusterManagerClient
	tokens    oauth2.TokenSource
	cfg       Config
	nodePools share.Answers[[]*containerpb.NodePool] // by cluster path
	budget    *budget

	mu      sync.Mutex
	pollers map[string]*poller // by location path

	looks looks // at clusters, for plans

	answered atomic.Bool // something at the endpoint has spoken
}

// New makes a client. It sends nothing and needs no credentials yet.
func New(cfg Config) (*Client, error) {
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = DefaultPollInterval
	}
	if cfg.PerMinute <= 0 {
		cfg.PerMinute = RequestsPerMinute
	}
	if cfg.Tokens == nil {
		cfg.Tokens = FindCredentials(CredentialsConfig{})
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 32
		cfg.Transport = t
	}
	opts := []option.ClientOption{option.WithHTTPClient(&http.Client{
		Transport: kube.Heed(&oauth2.Transport{Source: cfg.Tokens, Base: &headers{cfg: cfg}}),
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})}
	if cfg.Endpoint != "" {
		endpoint, err := CheckEndpoint(cfg.Endpoint)
		if err != nil {
			return nil, err
		}
		opts = append(opts, option.WithEndpoint(endpoint))
	}
	api, err := container.NewClusterManagerRESTClient(context.Background(), opts...)
	if err != nil {
		return nil, fmt.Errorf("preparing a client of the Container API: %w", err)
	}
	// Retries and deadlines are call.go's: the library's own would multiply with them.
	api.CallOptions = &container.ClusterManagerCallOptions{}
	return &Client{api: api, tokens: cfg.Tokens, cfg: cfg, budget: newBudget(cfg.PerMinute), pollers: map[string]*poller{}}, nil
}

// CheckEndpoint cleans an endpoint, and refuses one over which a token would
// travel in the clear.
func CheckEndpoint(endpoint string) (string, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is not an endpoint: want https://HOST, or http://127.0.0.1:PORT for a local one", endpoint)
	}
	switch {
	case u.User != nil:
		return "", errors.New("an endpoint carries no user name or password: use the provider's credentials")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "":
		return "", fmt.Errorf("%q is not an endpoint: it ends after the host and port; the API's version and path are added", endpoint)
	case u.Scheme == "https":
	case u.Scheme == "http" && loopback(u.Hostname()):
	case u.Scheme == "http":
		return "", fmt.Errorf("endpoint %s would send the access token unencrypted: http:// is for loopback addresses (127.0.0.1, ::1, localhost) only; use https://%s", endpoint, u.Host)
	default:
		return "", fmt.Errorf("%q is not an endpoint: want https://HOST", endpoint)
	}
	return u.Scheme + "://" + u.Host, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
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
