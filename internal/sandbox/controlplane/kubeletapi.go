package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeletAPI answers for the kubelets of all nodes what the API server asks
// them: the logs of a container. Commands cannot be run in simulated hosts.
type kubeletAPI struct {
	k        *kubelet
	listener net.Listener
	server   *http.Server
}

func (k *kubelet) serveAPI() (*kubeletAPI, error) {
	conf, err := k.cp.pki.serverTLS("kubelet")
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		return nil, fmt.Errorf("listening for the kubelets of simulated hosts: %w", err)
	}
	a := &kubeletAPI{k: k, listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.logs)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "simulated hosts serve logs, not "+r.URL.Path, http.StatusNotImplemented)
	})
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: debugLog(k.cp.log)}
	go func() { _ = a.server.Serve(l) }()
	return a, nil
}

func (a *kubeletAPI) logs(w http.ResponseWriter, r *http.Request) {
	ns, name := r.PathValue("namespace"), r.PathValue("pod")
	p, err := a.k.cp.client.CoreV1().Pods(ns).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	a.k.mu.Lock()
	run := a.k.pods[p.UID]
	a.k.mu.Unlock()
	if run == nil {
		a.simulatedLogs(w, r, p)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	f, err := os.Open(run.logFile())
	if err != nil {
		http.Error(w, "the container has not started yet", http.StatusNotFound)
		return
	}
	defer f.Close()
	if err := skipToTail(f, tailLines(r.FormValue("tailLines"))); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, f)
	if r.FormValue("follow") == "true" {
		follow(r.Context(), w, f)
	}
}

// tailLines is how many lines are asked for; negative means all.
func tailLines(asked string) int {
	n, err := strconv.Atoi(asked)
	if err != nil {
		return -1
	}
	return n
}

// tailAt is where the last n lines of text begin; negative means all.
func tailAt(text string, n int) int {
	if n < 0 {
		return 0
	}
	end := len(text)
	text = strings.TrimSuffix(text, "\n")
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		at = max(0, strings.LastIndexByte(text[:at], '\n'))
	}
	if at > 0 {
		at++ // behind the newline
	}
	return min(at, end)
}

// skipToTail moves to where the last n lines begin; negative means all.
func skipToTail(f *os.File, n int) error {
	if n < 0 {
		return nil
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	_, err = f.Seek(int64(tailAt(string(b), n)), io.SeekStart)
	return err
}

func follow(ctx context.Context, w http.ResponseWriter, f *os.File) {
	flush := http.NewResponseController(w)
	for {
		_ = flush.Flush()
		select {
		case <-ctx.Done():
			return
		case <-time.After(250 * time.Millisecond):
		}
		if _, err := io.Copy(w, f); err != nil {
			return
		}
	}
}
