package gke

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// tokenTimeout is for one request for a token.
const tokenTimeout = 30 * time.Second

// confidential tells whether what is sent to u stays between us and it.
func confidential(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

// linkLocal tells whether host is a cloud's metadata server, which by design
// speaks plain http on a network that ends at the machine.
func linkLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "metadata.google.internal" || ip != nil && (ip.IsLinkLocalUnicast() || ip.Equal(net.ParseIP("fd00:ec2::254")))
}

// exchanges carries the requests that turn credentials into tokens. It sends no
// secret over plain http, except to loopback, and remembers the last refusal:
// the libraries that make the requests pack it into texts of their own, which
// may quote what was sent.
type exchanges struct {
	base http.RoundTripper

	mu   sync.Mutex
	last *exchange
}

// exchange is a request for a token that came to nothing.
type exchange struct {
	host    string
	status  int    // of the answer, 0 when none came
	message string // the answer's words
	err     error  // why no answer came
}

var errPlain = errors.New("refused: it is plain http, over which no secret is sent except to loopback addresses")

// errRedirect ends a request: to follow would take its secrets to somebody else.
var errRedirect = errors.New("refused: a redirect is not followed with a secret")

// client makes requests with source's tokens, or with none.
func (x *exchanges) client(source oauth2.TokenSource) *http.Client {
	c := &http.Client{Transport: x, Timeout: tokenTimeout}
	if source != nil {
		c.Transport = &oauth2.Transport{Source: source, Base: x}
	}
	return c
}

// RoundTrip implements http.RoundTripper.
func (x *exchanges) RoundTrip(req *http.Request) (*http.Response, error) {
	// A metadata server is only asked: nothing of ours is in such a request.
	asks := req.Header.Get("Authorization") == "" && (req.Body == nil || req.Body == http.NoBody)
	if !confidential(req.URL) && !(req.URL.Scheme == "http" && linkLocal(req.URL.Hostname()) && asks) {
		x.note(&exchange{host: req.URL.Host, err: errPlain})
		return nil, errPlain
	}
	resp, err := x.base.RoundTrip(req)
	switch {
	case err != nil:
		x.note(&exchange{host: req.URL.Host, err: err})
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		_ = resp.Body.Close()
		x.note(&exchange{host: req.URL.Host, status: resp.StatusCode, message: "a redirect"})
		return nil, errRedirect
	case resp.StatusCode >= 400:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		x.note(&exchange{host: req.URL.Host, status: resp.StatusCode, message: answerWords(resp.StatusCode, body)})
	default:
		x.note(nil)
	}
	return resp, err
}

func (x *exchanges) note(e *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last = e
}

func (x *exchanges) refusal() *exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last
}

// answerWords is what a refusal says, in either of the forms that Google's
// token servers use: OAuth's (RFC 6749, 5.2) and that of its APIs.
func answerWords(status int, body []byte) string {
	var oauth struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &oauth) == nil && oauth.Error != "" {
		if oauth.Description == "" {
			return oauth.Error
		}
		return oauth.Error + ": " + oauth.Description
	}
	var api struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &api) == nil && api.Error.Message != "" {
		return api.Error.Message
	}
	return fmt.Sprintf("HTTP status %d %s", status, http.StatusText(status))
}

// firstLine is an error of a library without the answers it quotes, which may
// hold a token.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	text = strings.TrimPrefix(text, "oauth2/google/externalaccount: ")
	text = strings.TrimPrefix(text, "oauth2/google: ")
	text = strings.TrimPrefix(text, "google: ")
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return text
}
