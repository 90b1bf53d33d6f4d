package fakegke

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/vanguard"
	"connectrpc.com/vanguard/vanguardgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
)

// systemParameters are query parameters of every Google API. They are no
// fields of a request, so the transcoder must not see them.
var systemParameters = []string{"alt", "$alt", "fields", "$fields", "key", "$key", "prettyPrint", "$prettyPrint", "quotaUser", "$quotaUser", "userProject", "$userProject", "$.xgafv", "$callback", "uploadType"}

// restHandler transcodes REST to the gRPC server by the service's
// google.api.http annotations.
func restHandler(rpc *grpc.Server, enumNumbers bool) (http.Handler, error) {
	t, err := vanguardgrpc.NewTranscoder(rpc,
		vanguard.WithCodec(func(res vanguard.TypeResolver) vanguard.Codec {
			return &vanguard.JSONCodec{
				MarshalOptions:   protojson.MarshalOptions{Resolver: res, UseEnumNumbers: enumNumbers},
				UnmarshalOptions: protojson.UnmarshalOptions{Resolver: res}, // unknown names are refused, as Google does
			}
		}),
		vanguard.WithUnknownHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Method not found.", http.StatusNotFound)
		})),
	)
	if err != nil {
		return nil, fmt.Errorf("make the REST face of the fake GKE API: %w", err)
	}
	return t, nil
}

// ServeHTTP answers gRPC and REST.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cut := &connection{ResponseWriter: w}
	r = r.WithContext(context.WithValue(r.Context(), connectionKey{}, cut))
	switch {
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		s.rpc.ServeHTTP(cut, r)
	case strings.HasPrefix(r.URL.Path, computePrefix):
		s.serveCompute(cut, r)
	case strings.HasPrefix(r.URL.Path, storagePrefix):
		s.serveStorage(cut, r)
	default:
		s.serveREST(cut, r)
	}
	if cut.reset {
		panic(http.ErrAbortHandler) // net/http resets the stream or closes the connection
	}
}

func (s *Server) serveREST(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	alt := q.Get("$alt") + q.Get("alt")
	for _, p := range systemParameters {
		q.Del(p)
	}
	r = r.Clone(r.Context())
	r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode()}
	handler := s.named
	if strings.Contains(alt, "enum-encoding=int") {
		handler = s.numbered
	}
	rest := &restWriter{ResponseWriter: w}
	handler.ServeHTTP(rest, r)
	rest.finish()
}

type connectionKey struct{}

// connection can swallow a reply, so that the caller sees a reset instead.
type connection struct {
	http.ResponseWriter
	reset bool
}

func (c *connection) WriteHeader(code int) {
	if !c.reset {
		c.ResponseWriter.WriteHeader(code)
	}
}

func (c *connection) Write(b []byte) (int, error) {
	if c.reset {
		return len(b), nil
	}
	return c.ResponseWriter.Write(b)
}

// Flush is what the gRPC server asks of a writer.
func (c *connection) Flush() {
	if f, ok := c.ResponseWriter.(http.Flusher); ok && !c.reset {
		f.Flush()
	}
}

// restWriter turns the transcoder's errors into Google's shape,
// {"error": {"code", "message", "status", "details"}}.
type restWriter struct {
	http.ResponseWriter
	failed int // HTTP status, when it is an error
	body   bytes.Buffer
}

func (w *restWriter) WriteHeader(code int) {
	if code >= 400 {
		w.failed = code
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *restWriter) Write(b []byte) (int, error) {
	if w.failed != 0 {
		return w.body.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// Flush is what the transcoder asks of a writer.
func (w *restWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok && w.failed == 0 {
		f.Flush()
	}
}

type googleError struct {
	Code    int               `json:"code"`
	Message string            `json:"message"`
	Status  string            `json:"status,omitempty"`
	Details []json.RawMessage `json:"details,omitempty"`
}

// finish sends the error that was held back, if there was one.
func (w *restWriter) finish() {
	if w.failed == 0 {
		return
	}
	var rpc struct {
		Code    codes.Code        `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	e := googleError{Code: w.failed}
	if err := json.Unmarshal(w.body.Bytes(), &rpc); err == nil && rpc.Code != codes.OK {
		e.Message, e.Status, e.Details = rpc.Message, statusName(rpc.Code), rpc.Details
		if rpc.Code == codes.Unknown && len(rpc.Details) == 0 {
			// No error of the service, they all have details: the transcoder
			// could not read the request.
			e.Code, e.Status = http.StatusBadRequest, statusName(codes.InvalidArgument)
			e.Message = "Invalid JSON payload received. " + rpc.Message
		}
	} else { // no such path, or a method the path does not know
		e.Message = strings.TrimSpace(w.body.String())
		if e.Message == "" {
			e.Message = http.StatusText(w.failed)
		}
		e.Status = map[int]string{http.StatusNotFound: "NOT_FOUND", http.StatusMethodNotAllowed: "UNIMPLEMENTED", http.StatusUnsupportedMediaType: "INVALID_ARGUMENT"}[w.failed]
	}
	body, err := json.MarshalIndent(map[string]googleError{"error": e}, "", "  ")
	if err != nil {
		body = []byte(`{"error":{"code":500,"message":"Internal error encountered.","status":"INTERNAL"}}`)
	}
	h := w.Header()
	h.Del("Content-Encoding")
	h.Del("Content-Length")
	h.Set("Content-Type", "application/json; charset=UTF-8")
	w.ResponseWriter.WriteHeader(e.Code)
	_, _ = w.ResponseWriter.Write(body)
}

// statusName is a code's name as Google's JSON has it: NOT_FOUND for NotFound.
func statusName(c codes.Code) string {
	var b strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	if c == codes.OK {
		return "OK"
	}
	if c == codes.Canceled {
		return "CANCELLED"
	}
	return strings.ToUpper(b.String())
}
