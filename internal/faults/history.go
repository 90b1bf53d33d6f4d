package faults

import (
	"bytes"
	"net/http"
	"sync"
)

// history remembers what reads were answered, while somebody wants to read the
// past: for each request the latest answer and the different one before it.
type history struct {
	mu      sync.Mutex
	on      bool
	answers map[string][2]*reply // before, now
}

func (h *history) keep(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on = on; !on {
		h.answers = nil
	}
}

func key(r *http.Request) string { return r.URL.RequestURI() + " " + r.Header.Get("Accept") }

// note remembers an answer that was sent.
func (h *history) note(r *http.Request, got *reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on || r.Method != http.MethodGet || got.code != http.StatusOK {
		return
	}
	if h.answers == nil {
		h.answers = map[string][2]*reply{}
	}
	k := key(r)
	if was := h.answers[k]; was[1] == nil || !bytes.Equal(was[1].body.Bytes(), got.body.Bytes()) {
		h.answers[k] = [2]*reply{was[1], got}
	}
}

// before is what the request was answered before its answer last changed; if
// it never did, the latest answer, which may be behind by now; nil if it was
// never asked.
func (h *history) before(r *http.Request) *reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.answers[key(r)]
	if was[0] != nil {
		return was[0]
	}
	return was[1]
}

func (h *history) remembers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on
}
