package faults

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// apiServer is an API server behind a proxy, and a caller that trusts it.
func apiServer(t *testing.T, s *Set, handle http.HandlerFunc) (url string, caller *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p, err := NewProxy(s, "projects/p/locations/z/clusters/c", strings.TrimPrefix(server.URL, "https://"), ca, server.TLS.Certificates[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return "https://" + p.Endpoint(), &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b)), err
}

// A connection that was passed through before there were rules does not get
// past them, and goes on when they are gone.
func TestProxyTakesOver(t *testing.T) {
	var s Set
	url, caller := apiServer(t, &s, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	for range 2 {
		if got, err := get(t, caller, url+"/api/v1/pods"); err != nil || got != "200 ok" {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := s.Add(Rule{Method: "kube GET pods", Object: "clusters/c/api", Kind: Status, Code: 429}); err != nil {
			t.Fatal(err)
		}
		if got, err := get(t, caller, url+"/api/v1/pods"); err != nil || !strings.Contains(got, `"reason":"TooManyRequests"`) {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := get(t, caller, url+"/api/v1/nodes"); err != nil || got != "200 ok" {
			t.Errorf("another resource: %q, %v", got, err)
		}
		if _, err := s.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProxyResets(t *testing.T) {
	var s Set
	url, caller := apiServer(t, &s, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	if _, err := s.Add(Rule{Kind: Reset, Method: "kube *"}); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, caller, url+"/api/v1/pods"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", got, err)
	}
}

// A watch goes through as it comes, while a rule is in force for other calls.
func TestProxyLetsWatchesFlow(t *testing.T) {
	var s Set
	next := make(chan string)
	url, caller := apiServer(t, &s, func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case line := <-next:
				fmt.Fprintln(w, line)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	if _, err := s.Add(Rule{Kind: Reset, Method: "kube PATCH *"}); err != nil {
		t.Fatal(err)
	}
	go func() { next <- "first" }()
	resp, err := caller.Get(url + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 6)
	for _, want := range []string{"first\n", "again\n"} {
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != want {
			t.Fatalf("%q, %v", b, err)
		}
		if want == "first\n" {
			next <- "again"
		}
	}
}
