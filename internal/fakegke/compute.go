package fakegke

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// computePrefix is where the Compute Engine API lives. Google serves it from a
// host of its own; the fake serves both APIs from one port.
const computePrefix = "/compute/v1/"

// computeError is an error as Compute Engine writes it: with the reason that
// its clients branch on.
type computeError struct {
	status          int
	reason, message string
	details         []json.RawMessage
}

func (e *computeError) Error() string { return e.message }

func computeInvalid(format string, args ...any) error {
	return &computeError{status: http.StatusBadRequest, reason: "invalid", message: fmt.Sprintf(format, args...)}
}

func computeNotFound(path string) error {
	return &computeError{status: http.StatusNotFound, reason: "notFound", message: fmt.Sprintf("The resource '%s' was not found", path)}
}

func computeExists(path string) error {
	return &computeError{status: http.StatusConflict, reason: "alreadyExists", message: fmt.Sprintf("The resource '%s' already exists", path)}
}

func computeInUse(path, user string) error {
	return &computeError{status: http.StatusBadRequest, reason: "resourceInUseByAnotherResource",
		message: fmt.Sprintf("The resource_policy resource '%s' is already being used by '%s'", path, user)}
}

// computeReasons are the HTTP status and reason of what a Fault answers.
var computeReasons = map[codes.Code]computeError{
	codes.InvalidArgument:    {status: http.StatusBadRequest, reason: "invalid"},
	codes.FailedPrecondition: {status: http.StatusBadRequest, reason: "resourceInUseByAnotherResource"},
	codes.Unauthenticated:    {status: http.StatusUnauthorized, reason: "authError"},
	codes.PermissionDenied:   {status: http.StatusForbidden, reason: "forbidden"},
	codes.NotFound:           {status: http.StatusNotFound, reason: "notFound"},
	codes.AlreadyExists:      {status: http.StatusConflict, reason: "alreadyExists"},
	codes.ResourceExhausted:  {status: http.StatusForbidden, reason: "rateLimitExceeded"},
	codes.Unavailable:        {status: http.StatusServiceUnavailable, reason: "backendError"},
}

// asComputeError turns any error into one of Compute Engine's.
func asComputeError(err error) *computeError {
	if e, ok := err.(*computeError); ok { //nolint:errorlint // ours are never wrapped
		return e
	}
	st := status.Convert(err)
	e, ok := computeReasons[st.Code()]
	if !ok {
		e = computeError{status: http.StatusInternalServerError, reason: "internalError"}
	}
	e.message = st.Message()
	for _, d := range st.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok {
			continue // Compute Engine has no request ids
		}
		if packed, err := anypb.New(info); err == nil {
			if raw, err := protojson.Marshal(packed); err == nil {
				e.details = append(e.details, raw)
			}
		}
		if info.Reason == "SERVICE_DISABLED" {
			e.reason = "accessNotConfigured"
		}
	}
	return &e
}

// computeCall is one request to Compute Engine.
type computeCall struct {
	*http.Request
	project, region string
	name            string // of the policy or operation, or ""
}

type computeHandler func(*Server, computeCall) (any, error)

// computeRoutes are the methods that are faked, by "METHOD collection", with
// :name for one item of it.
var computeRoutes = map[string]struct {
	method string // as Calls counts it and Fault names it
	handle computeHandler
}{
	"GET resourcePolicies":          {"ListResourcePolicies", (*Server).listPolicies},
	"POST resourcePolicies":         {"InsertResourcePolicy", (*Server).insertPolicy},
	"GET resourcePolicies/:name":    {"GetResourcePolicy", (*Server).getPolicy},
	"DELETE resourcePolicies/:name": {"DeleteResourcePolicy", (*Server).deletePolicy},
	"GET operations/:name":          {"GetRegionOperation", (*Server).getComputeOperation},
	"POST operations/:name/wait":    {"WaitRegionOperation", (*Server).waitComputeOperation},
}

// serveCompute answers projects/P/regions/R/COLLECTION[/NAME[/VERB]].
func (s *Server) serveCompute(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, computePrefix), "/")
	if len(parts) < 5 || len(parts) > 7 || parts[0] != "projects" || parts[2] != "regions" {
		writeCompute(w, nil, &computeError{status: http.StatusNotFound, reason: "notFound", message: "The requested URL " + r.URL.Path + " was not found on this server."})
		return
	}
	call := computeCall{Request: r, project: parts[1], region: parts[3]}
	key := r.Method + " " + parts[4]
	if len(parts) > 5 {
		call.name, parts[5] = parts[5], ":name"
		key = r.Method + " " + strings.Join(parts[4:], "/")
	}
	route, ok := computeRoutes[key]
	if !ok {
		writeCompute(w, nil, &computeError{status: http.StatusNotFound, reason: "notFound", message: "The requested URL " + r.URL.Path + " was not found on this server."})
		return
	}
	out, err := s.meetFault(r, route.method, func() (any, error) {
		if !regionPattern.MatchString(call.region) {
			return nil, computeInvalid("Invalid value for field 'region': '%s'. Unknown region.", call.region)
		}
		if err := s.mayCall(ComputeAPI, route.method, strings.TrimPrefix(r.URL.Path, computePrefix)); err != nil {
			return nil, err
		}
		return route.handle(s, call)
	})
	writeCompute(w, out, err)
}

// meetFault is intercept for requests that are not gRPC's.
func (s *Server) meetFault(r *http.Request, method string, handle func() (any, error)) (any, error) {
	f := s.fault(method)
	if kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); s.opts.token != "" && (!strings.EqualFold(kind, "Bearer") || token != s.opts.token) {
		return nil, unauthenticated(r.Header.Get("Authorization"))
	}
	if f == nil {
		return handle()
	}
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return nil, status.FromContextError(r.Context().Err()).Err()
		}
	}
	var out any
	if f.AfterEffect || f.Code == codes.OK && !f.Reset {
		var err error
		if out, err = handle(); err != nil {
			return nil, err
		}
	}
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok && f.Reset {
		c.reset = true
	}
	if f.Code != codes.OK {
		return nil, apiError(f.Code, f.Message, f.Details...)
	}
	return out, nil
}

func writeCompute(w http.ResponseWriter, out any, err error) {
	code := http.StatusOK
	if err != nil {
		e := asComputeError(err)
		code = e.status
		body := map[string]any{
			"code": e.status, "message": e.message,
			"errors": []map[string]string{{"message": e.message, "domain": "global", "reason": e.reason}},
		}
		if e.details != nil {
			body["details"] = e.details
		}
		out = map[string]any{"error": body}
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out) // the caller is gone: nobody to tell
}
