package target

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
)

// logged wraps a transport so that --verbose tells of each request that goes
// over it: where to, what was answered, and how long that took. Neither queries,
// headers nor bodies are told: they may hold what is nobody's business.
func logged(ctx context.Context) func(http.RoundTripper) http.RoundTripper {
	log := hclog.FromContext(ctx)
	return func(next http.RoundTripper) http.RoundTripper {
		if !log.IsDebug() {
			return next
		}
		return &requests{log, next}
	}
}

type requests struct {
	log  hclog.Logger
	next http.RoundTripper
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := r.next.RoundTrip(req)
	args := []any{"method", req.Method, "host", req.URL.Host, "path", req.URL.Path, "took", time.Since(began).Round(time.Millisecond).String()}
	if err != nil {
		args = append(args, "error", err)
	} else {
		args = append(args, "code", resp.StatusCode)
	}
	r.log.Debug("request", args...)
	return resp, err
}
