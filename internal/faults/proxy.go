package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Proxy is a set in the path to one API server. While the set is empty it only
// passes bytes on, and the caller's TLS ends at the API server; with a rule or
// a hook it ends here, and connections made before are closed, so that no
// request passes by the rules.
type Proxy struct {
	set      *Set
	upstream string // host:port
	listener net.Listener
	server   *http.Server
	taken    chan net.Conn // connections that the rules see
	done     chan struct{}
	once     sync.Once

	mu    sync.Mutex
	plain map[net.Conn]bool // connections passed through
}

// NewProxy listens on a free port of loopback for callers of the API server at
// upstream. The certificate must be good in the eyes of whoever trusts ca, as
// the API server's own is.
func NewProxy(set *Set, cluster, upstream string, ca []byte, certificate tls.Certificate) (*Proxy, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("putting a proxy before cluster %s: its CA holds no certificate", cluster)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("putting a proxy before cluster %s: %w", cluster, err)
	}
	p := &Proxy{
		set: set, upstream: upstream, listener: l,
		taken: make(chan net.Conn), done: make(chan struct{}), plain: map[net.Conn]bool{},
	}
	silent := log.New(io.Discard, "", 0) // what ends badly here ends so on purpose
	p.server = &http.Server{
		Handler: set.Kube(cluster, &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "https", Host: upstream})
			},
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
			FlushInterval: -1, // watches
			ErrorLog:      silent,
			ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { cut(w, true) },
		}),
		// A connection of HTTP/2 carries many requests: one could not be cut
		// off without the others.
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12},
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          silent,
	}
	set.onChange(p.takeOver)
	go p.accept()
	go func() { _ = p.server.ServeTLS(takenListener{p}, "", "") }() // ends at Close
	return p, nil
}

// Endpoint is host:port to give to callers.
func (p *Proxy) Endpoint() string { return p.listener.Addr().String() }

// Close ends every connection. Closing twice is fine.
func (p *Proxy) Close() error {
	var err error
	p.once.Do(func() {
		close(p.done)
		err = errors.Join(p.listener.Close(), p.server.Close())
		p.dropPlain()
	})
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		if p.set.idle() {
			go p.pass(c)
			continue
		}
		select {
		case p.taken <- c:
		case <-p.done:
			_ = c.Close()
		}
	}
}

// pass copies bytes both ways until one side ends.
func (p *Proxy) pass(c net.Conn) {
	up, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "tcp", p.upstream)
	if err != nil { // as near to "connection refused" as can be
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
		return
	}
	p.mu.Lock()
	p.plain[c], p.plain[up] = true, true
	p.mu.Unlock()
	end := func() {
		_, _ = c.Close(), up.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.plain, c)
		delete(p.plain, up)
	}
	if closed(p.done) || !p.set.idle() { // a rule came meanwhile, and did not see this one
		end()
		return
	}
	go func() {
		defer end()
		_, _ = io.Copy(up, c)
	}()
	defer end()
	_, _ = io.Copy(c, up)
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// takeOver closes what was passed through once there is something to see.
func (p *Proxy) takeOver() {
	if !p.set.idle() {
		p.dropPlain()
	}
}

func (p *Proxy) dropPlain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.plain {
		_ = c.Close()
	}
}

// takenListener hands the server the connections that the rules see.
type takenListener struct{ p *Proxy }

func (l takenListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.p.taken:
		return c, nil
	case <-l.p.done:
		return nil, net.ErrClosed
	}
}

func (l takenListener) Close() error   { return nil }
func (l takenListener) Addr() net.Addr { return l.p.listener.Addr() }
