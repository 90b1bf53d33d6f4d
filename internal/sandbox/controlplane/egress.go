package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// kubeletPort is where the API server expects every node's kubelet.
const kubeletPort = 10250

// egress is the API server's way into the cluster's network: an HTTP CONNECT
// proxy that maps a pod's address and port to the local process behind it.
type egress struct {
	listener net.Listener
	server   *http.Server
	log      hclog.Logger

	mu     sync.Mutex
	routes map[string]map[int]int // pod IP -> pod port -> loopback port
	nodes  string                 // host:port that answers for every kubelet; empty: nobody
}

// listenEgress listens for the API server alone: a Unix socket would do as
// well, but its path may not exceed some 100 bytes, and the API server of
// Kubernetes 1.36 crashes on a plain http:// proxy.
func listenEgress(log hclog.Logger, keys *pki) (*egress, error) {
	conf, err := keys.serverTLS("kubelet")
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		return nil, fmt.Errorf("listening for the API server's calls into the cluster: %w", err)
	}
	e := &egress{listener: l, log: log, routes: map[string]map[int]int{}}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, ErrorLog: debugLog(log)}
	go func() { _ = e.server.Serve(l) }()
	return e, nil
}

// debugLog takes what net/http would print: handshakes that the API server
// broke off when it stopped.
func debugLog(log hclog.Logger) *stdlog.Logger {
	return log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
}

// URL is what the API server's egress configuration names.
func (e *egress) URL() string { return "https://" + e.listener.Addr().String() }

// Close ends the listener; connections end with the processes they lead to.
func (e *egress) Close() { _ = e.server.Close() }

// Route makes a pod's ports lead to loopback ports; nil removes the pod.
func (e *egress) Route(podIP string, ports map[int]int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ports == nil {
		delete(e.routes, podIP)
		return
	}
	e.routes[podIP] = ports
}

// Nodes makes the kubelet port of every node lead to one local server.
func (e *egress) Nodes(hostport string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nodes = hostport
}

func (e *egress) target(hostport string) (string, error) {
	host, p, err := net.SplitHostPort(hostport)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(p)
	if err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	ports, pod := e.routes[host]
	switch local := ports[port]; {
	case local != 0:
		return fmt.Sprintf("127.0.0.1:%d", local), nil
	case pod:
		return "", fmt.Errorf("the pod at %s serves nothing on port %d", host, port)
	case port == kubeletPort && e.nodes != "":
		return e.nodes, nil
	}
	return "", fmt.Errorf("no process of the sandbox answers at %s: the pod is simulated or not running", hostport)
}

// ServeHTTP answers CONNECT. The reason of a refusal goes into the status line:
// that is the only part which the API server repeats to its caller.
func (e *egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	var far net.Conn
	to, err := e.target(r.Host)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		far, err = (&net.Dialer{}).DialContext(ctx, "tcp", to)
		cancel()
	}
	near, buffered, herr := http.NewResponseController(w).Hijack()
	if herr != nil {
		if far != nil {
			far.Close()
		}
		return
	}
	defer near.Close()
	if err != nil {
		e.log.Debug("refused a call into the cluster", "to", r.Host, "reason", err)
		fmt.Fprintf(near, "HTTP/1.1 502 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", err)
		return
	}
	defer far.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	pipe := func(dst net.Conn, src io.Reader) {
		_, _ = io.Copy(dst, src)
		if c, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
		done <- struct{}{}
	}
	go pipe(far, buffered)
	go pipe(near, far)
	<-done
	<-done
}
