package controlplane

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// The API server reaches the process behind a pod's address, learns why it
// cannot reach another, and nobody without the cluster's certificate gets in.
func TestEgress(t *testing.T) {
	keys, err := loadOrMakePKI(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := listenEgress(hclog.NewNullLogger(), keys)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	go func() {
		for {
			c, err := backend.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "hello\n")
			c.Close()
		}
	}()
	port := backend.Addr().(*net.TCPAddr).Port
	e.Route("198.18.0.1", map[int]int{9443: port, 8443: 1})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(keys.cluster.certPEM)
	pair, err := tls.LoadX509KeyPair(keys.cert("apiserver-kubelet"), keys.key("apiserver-kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "127.0.0.1"}
	connect := func(to string) string {
		c, err := tls.Dial("tcp", e.listener.Addr().String(), conf)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		line, _ := r.ReadString('\n')
		return strings.TrimSpace(line)
	}
	for to, want := range map[string]string{
		"198.18.0.1:9443":  "hello",
		"198.18.0.1:8082":  "502 the pod at 198.18.0.1 serves nothing on port 8082",
		"198.18.0.1:8443":  "connection refused",
		"10.128.0.7:9443":  "502 no process of the sandbox answers at 10.128.0.7:9443",
		"10.128.0.7:10250": "502 no process of the sandbox answers",
	} {
		if got := connect(to); !strings.Contains(got, want) {
			t.Errorf("CONNECT %s: %q, want %q", to, got, want)
		}
	}
	e.Nodes(backend.Addr().String())
	if got := connect("10.128.0.7:10250"); got != "hello" {
		t.Errorf("a kubelet's port: %q", got)
	}
	e.Route("198.18.0.1", nil)
	if got := connect("198.18.0.1:9443"); !strings.Contains(got, "no process") {
		t.Errorf("a pod that is gone: %q", got)
	}
	conf.Certificates = nil
	if got := connect("10.128.0.7:10250"); !strings.Contains(got, "certificate required") {
		t.Errorf("without a certificate: %q", got)
	}
}
