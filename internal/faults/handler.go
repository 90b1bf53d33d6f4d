package faults

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"time"
)

// api is how requests of one API are named and refused.
type api struct {
	name   func(*http.Request) string // "" is none of its methods: it passes untouched
	prefix string                     // before the URL's path, in Call.Path
	refuse func(w http.ResponseWriter, r *http.Request, rule Rule)
}

// GKE puts the set in front of the GKE API and the Compute Engine API on one
// port, over REST and gRPC. It needs a server that can be taken the connection
// away from (HTTP/1.1) or reset a stream (HTTP/2): any of net/http.
func (s *Set) GKE(next http.Handler) http.Handler {
	return s.handler(api{name: googleMethod, refuse: refuseGoogle}, next)
}

// Kube puts the set in front of an API server, that of a cluster
// (projects/P/locations/L/clusters/C).
func (s *Set) Kube(cluster string, next http.Handler) http.Handler {
	return s.handler(api{name: kubeMethod, prefix: "/" + cluster, refuse: refuseKube}, next)
}

func (s *Set) handler(a api, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := a.name(r)
		if name == "" || s.idle() {
			next.ServeHTTP(w, r)
			return
		}
		s.serve(a, Call{Method: name, Path: a.prefix + r.URL.Path, Mutates: mutates(name, r)}, next, w, r)
	})
}

// mutates tells a change from a read. gRPC sends everything by POST.
func mutates(name string, r *http.Request) bool {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		return !strings.HasPrefix(name, "Get") && !strings.HasPrefix(name, "List")
	}
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

func (s *Set) serve(a api, c Call, next http.Handler, w http.ResponseWriter, r *http.Request) {
	was := s.past.before(r)
	c, rule := s.meet(c, was != nil)
	if s.tell(c, Before) {
		cut(w, true)
	}
	if rule == nil {
		if streams(r) || !s.watched() && !s.past.remembers() {
			next.ServeHTTP(w, r)
			return
		}
		s.answer(c, w, r, carryOut(next, r))
		return
	}
	if rule.Kind != Lost && !pause(r.Context(), time.Duration(rule.Delay)) {
		cut(w, true) // the caller has left
	}
	switch rule.Kind {
	case Status:
		a.refuse(w, r, *rule)
		return
	case Reset:
		cut(w, true)
	case Stale:
		was.send(w)
		return
	}
	if streams(r) { // what has no end has no effect to wait for
		if rule.Kind == Slow {
			next.ServeHTTP(w, r)
			return
		}
		cut(w, true)
	}
	got := carryOut(next, r)
	switch rule.Kind {
	case StatusAfter:
		s.tell(c, After)
		a.refuse(w, r, *rule)
	case ResetAfter:
		s.tell(c, After)
		cut(w, true)
	case Lost:
		s.tell(c, After)
		silence := time.Duration(rule.Delay)
		if silence == 0 {
			silence = 365 * 24 * time.Hour
		}
		pause(r.Context(), silence)
		cut(w, false)
	default:
		s.answer(c, w, r, got)
	}
}

// answer sends a reply, unless a hook cuts it off.
func (s *Set) answer(c Call, w http.ResponseWriter, r *http.Request, got *reply) {
	if s.tell(c, After) {
		cut(w, true)
	}
	s.past.note(r, got)
	got.send(w)
	if s.watched() {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		s.tell(c, Replied)
	}
}

// carryOut has a request answered into memory. Its effect does not depend on
// whether the caller waits for it.
func carryOut(next http.Handler, r *http.Request) *reply {
	got := newReply()
	next.ServeHTTP(got, r.WithContext(context.WithoutCancel(r.Context())))
	return got
}

// streams tells a request whose answer has no end, or is no answer at all.
func streams(r *http.Request) bool {
	q := r.URL.Query()
	return r.Header.Get("Upgrade") != "" || q.Get("watch") == "true" || q.Get("watch") == "1" || q.Get("follow") == "true"
}

// pause waits, and tells whether the caller did too.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// cut ends the connection without an answer: by a reset, as when a machine or
// a load balancer drops out of the path, or by closing it quietly. It does not
// return.
func cut(w http.ResponseWriter, reset bool) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			raw := conn
			if t, ok := conn.(*tls.Conn); ok {
				raw = t.NetConn()
			}
			if tcp, ok := raw.(*net.TCPConn); ok && reset {
				_ = tcp.SetLinger(0) // RST instead of FIN
			}
			_ = raw.Close()
		}
	}
	panic(http.ErrAbortHandler) // HTTP/2: resets the stream
}
