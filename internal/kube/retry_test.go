package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// answers are given one after another; the last again and again.
type answers struct {
	list  []any // int: a status; error
	sent  int
	after string // Retry-After
	body  string // of the request that came last
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	a.body = ""
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		a.body = string(b)
	}
	now := a.list[min(a.sent, len(a.list)-1)]
	a.sent++
	if err, ok := now.(error); ok {
		return nil, err
	}
	resp := &http.Response{StatusCode: now.(int), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body"))}
	if a.after != "" {
		resp.Header.Set("Retry-After", a.after)
	}
	return resp, nil
}

// What may be sent twice is sent again when the answer is lost or will pass;
// nothing else is.
func TestWhatIsSentAgain(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		method, kind string
		answers      answers
		want         any
		sent         int
	}{
		{"GET", "", answers{list: []any{503, 429, reset, io.EOF, 200}}, 200, 5},
		{"GET", "", answers{list: []any{503}}, 503, tries},
		{"GET", "", answers{list: []any{reset}}, reset, tries},
		{"GET", "", answers{list: []any{500, 200}}, 500, 1},
		{"GET", "", answers{list: []any{404, 200}}, 404, 1},
		{"GET", "", answers{list: []any{refused, 200}}, refused, 1},
		{"GET", "", answers{list: []any{429, 200}, after: "1"}, 429, 1}, // client-go's own
		{"DELETE", "", answers{list: []any{fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), 200}}, 200, 2},
		{"PATCH", "application/apply-patch+yaml", answers{list: []any{502, 504, 200}}, 200, 3},
		{"PATCH", "application/json-patch+json", answers{list: []any{503, 200}}, 503, 1},
		{"POST", "application/json", answers{list: []any{503, 200}}, 503, 1},
		{"PUT", "application/json", answers{list: []any{reset, 200}}, reset, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, "https://cluster/", bytes.NewReader([]byte("object")))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", c.kind)
			began := time.Now()
			resp, err := (&retrier{&c.answers}).RoundTrip(req)
			if err == nil {
				defer resp.Body.Close()
			}
			switch want := c.want.(type) {
			case int:
				if err != nil || resp.StatusCode != want {
					t.Errorf("%s %v: %v, %v, want %d", c.method, c.answers.list, resp, err, want)
				} else if b, _ := io.ReadAll(resp.Body); string(b) != "body" {
					t.Errorf("%s: the answer's body is %q", c.method, b)
				}
			case error:
				if !errors.Is(err, want) {
					t.Errorf("%s %v: %v, want %v", c.method, c.answers.list, err, want)
				}
			}
			if c.answers.sent != c.sent || c.answers.body != "object" {
				t.Errorf("%s %v: sent %d times, at last %q; want %d times with its body", c.method, c.answers.list, c.answers.sent, c.answers.body, c.sent)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("%s: gave up after %s", c.method, took)
			}
		})
	}
}

// An interrupt does not wait for the next try.
func TestAnInterruptEndsTheTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp, err := (&retrier{&answers{list: []any{503}}}).RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, context.Canceled) || time.Since(began) != 10*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
