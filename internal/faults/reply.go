package faults

import (
	"bytes"
	"maps"
	"net/http"
)

// reply is an answer that is held back, with the trailers that gRPC ends one
// with.
type reply struct {
	header http.Header // as the handler has it; trailers join late
	sent   http.Header // as it was when the first byte was written
	code   int
	body   bytes.Buffer
}

func newReply() *reply { return &reply{header: http.Header{}} }

func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(code int) {
	if r.code == 0 {
		r.code, r.sent = code, r.header.Clone()
	}
}

func (r *reply) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// Flush is what a gRPC server asks of a writer. Nothing goes out before send.
func (r *reply) Flush() {}

func (r *reply) send(w http.ResponseWriter) {
	r.WriteHeader(http.StatusOK) // a handler that wrote nothing
	maps.Copy(w.Header(), r.sent)
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body.Bytes()) // the caller is gone: nobody to tell
	for k, v := range r.header {
		if _, before := r.sent[k]; !before {
			w.Header()[k] = v
		}
	}
}
