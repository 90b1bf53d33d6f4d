package kube

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"
)

const (
	// tries is how often a request is sent that an API server, or what is in
	// front of it, could not take or lost. With the pauses that is about 3 s: a
	// longer outage is for those who wait (see Outage).
	tries      = 6
	firstRetry = 100 * time.Millisecond // doubles from try to try
)

// retrier sends a request again that may be sent twice without harm: reads,
// deletions and what is applied. client-go does so only when the answer says
// after how long, and for a read whose connection was reset. A creation is not
// sent again: only its caller can tell its own object from somebody else's.
type retrier struct{ next http.RoundTripper }

func (t *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if !repeatable(req) {
		return t.next.RoundTrip(req)
	}
	pause := firstRetry
	for try := 1; ; try++ {
		resp, err := t.next.RoundTrip(req)
		if try == tries || !passing(resp, err) || req.Context().Err() != nil {
			return resp, err
		}
		next, ok := again(req)
		if !ok {
			return resp, err
		}
		if resp != nil {
			_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
			_ = resp.Body.Close()
		}
		// Jitter: many resources ask the same server at the same time.
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
		req, pause = next, 2*pause
	}
}

// repeatable tells whether carrying out req a second time changes nothing.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return true
	case http.MethodPatch:
		switch req.Header.Get("Content-Type") {
		case "application/apply-patch+yaml", "application/apply-patch+cbor", "application/merge-patch+json":
			return true
		}
	}
	return false
}

// again is req with its body from the start.
func again(req *http.Request) (*http.Request, bool) {
	next := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return next, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	next.Body = body
	return next, err == nil
}

// passing tells whether an answer, or that there was none, is likely to be
// another one in a moment.
func passing(resp *http.Response, err error) bool {
	if err != nil {
		return cutOff(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return resp.Header.Get("Retry-After") == "" // else client-go waits as it was told
	}
	return false
}

// cutOff recognises a connection that ended before the answer came. One that
// was never made is another matter: nobody is there.
func cutOff(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		slices.ContainsFunc(cutOffs, func(end error) bool { return errors.Is(err, end) })
}
