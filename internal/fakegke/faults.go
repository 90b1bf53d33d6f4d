package fakegke

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// Fault makes calls fail on demand.
type Fault struct {
	Method string // "CreateNodePool"; "" for every method
	Call   int    // 1 is the next call that fits, 2 the one after; 0 is every call
	// What the caller gets. codes.OK with neither Reset nor Delay is no fault.
	Code    codes.Code
	Message string
	Details []protoadapt.MessageV1
	// Reset ends the connection instead of answering.
	Reset bool
	// AfterEffect carries the call out first: only the reply is lost.
	AfterEffect bool
	// Delay holds the reply back, in real time.
	Delay time.Duration

	seen int
}

// Fail adds a fault and returns what removes it again.
func (s *Server) Fail(f Fault) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(g *Fault) bool { return g == &f })
	}
}

// fault counts a call of method and returns the fault that it meets, or nil.
func (s *Server) fault(method string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
	var hit *Fault
	for _, f := range s.faults {
		if f.Method != "" && f.Method != method {
			continue
		}
		f.seen++
		if hit == nil && (f.Call == 0 || f.Call == f.seen) {
			hit = f
		}
	}
	return hit
}

// intercept is what every call of either face passes: counting, the token,
// the faults.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	f := s.fault(method)
	if err := s.authenticate(ctx); err != nil {
		return nil, err
	}
	if f == nil {
		res, err := handle(ctx, req)
		s.opts.log.Debug("call", "method", method, "error", err)
		return res, err
	}
	s.opts.log.Debug("call meets a fault", "method", method, "code", f.Code, "reset", f.Reset)
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	var res any
	var err error
	if f.AfterEffect || f.Code == codes.OK && !f.Reset {
		if res, err = handle(ctx, req); err != nil {
			return nil, err // it had no effect; its own error says more
		}
	}
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok && f.Reset {
		c.reset = true
	}
	if f.Code != codes.OK {
		return nil, apiError(f.Code, f.Message, f.Details...)
	}
	return res, nil
}

func (s *Server) authenticate(ctx context.Context) error {
	if s.opts.token == "" {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	header := strings.Join(md.Get("authorization"), "")
	kind, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(kind, "Bearer") || token != s.opts.token {
		return unauthenticated(header)
	}
	return nil
}
