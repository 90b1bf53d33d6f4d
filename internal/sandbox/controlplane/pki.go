package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is long: a sandbox may be kept, and its keys never leave the machine.
const validity = 10 * 365 * 24 * time.Hour

// pki is where a cluster's keys lie. Three authorities keep three kinds of
// trust apart: a client of the API server is not a client of etcd, and cannot
// pass as the aggregator.
type pki struct {
	dir     string
	cluster *authority
}

func (p *pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p *pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }

type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
}

// identities that every cluster needs, by file name.
var identities = []struct {
	file, authority, name string
	groups                []string
	server                bool
}{
	{"etcd", "etcd-ca", "etcd", nil, true},
	{"etcd-client", "etcd-ca", "kube-apiserver", nil, false},
	{"apiserver", "ca", "kube-apiserver", nil, true},
	{"apiserver-kubelet", "ca", "kube-apiserver", []string{"system:masters"}, false},
	{"front-proxy", "front-proxy-ca", "front-proxy-client", nil, false},
	{"kubelet", "ca", "kubelet", nil, true},
	// These three act for the whole cluster; what a role of their own would
	// allow them is not what a sandbox tests.
	{"kube-controller-manager", "ca", "system:kube-controller-manager", []string{"system:masters"}, false},
	{"kube-scheduler", "ca", "system:kube-scheduler", []string{"system:masters"}, false},
	{"kwok", "ca", "kwok", []string{"system:masters"}, false},
}

// loadOrMakePKI makes a cluster's keys once. They appear in one rename, so a
// start that was cut short leaves all of them or none.
func loadOrMakePKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	b, err := os.ReadFile(p.cert("ca"))
	if err == nil {
		block, _ := pem.Decode(b)
		if block == nil {
			return nil, fmt.Errorf("%s holds no certificate: remove the sandbox's folder and start afresh", p.cert("ca"))
		}
		p.cluster = &authority{certPEM: b}
		return p, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fresh := &pki{dir: dir + ".new"}
	if err := os.RemoveAll(fresh.dir); err != nil {
		return nil, err
	}
	if err := fresh.make(); err != nil {
		return nil, fmt.Errorf("making the cluster's certificates: %w", err)
	}
	if err := os.Rename(fresh.dir, dir); err != nil {
		return nil, fmt.Errorf("making the cluster's certificates: %w", err)
	}
	p.cluster = fresh.cluster
	return p, nil
}

func (p *pki) make() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	authorities := map[string]*authority{}
	for _, name := range []string{"ca", "etcd-ca", "front-proxy-ca"} {
		a, err := newAuthority(name)
		if err != nil {
			return err
		}
		authorities[name] = a
		if err := os.WriteFile(p.cert(name), a.certPEM, 0o600); err != nil {
			return err
		}
		if err := writeKey(p.key(name), a.key); err != nil {
			return err
		}
	}
	p.cluster = authorities["ca"]
	for _, id := range identities {
		if err := p.issue(authorities[id.authority], id.file, id.name, id.groups, id.server); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(p.key("service-accounts"), key)
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := certificate("sandbox " + name)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

func (p *pki) issue(a *authority, file, name string, groups []string, server bool) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t, err := certificate(name)
	if err != nil {
		return err
	}
	t.Subject.Organization = groups
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} // etcd's server is a client of itself
	if server {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		t.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.cert(file), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return err
	}
	return writeKey(p.key(file), key)
}

func certificate(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour), // clocks of virtual machines jump
		NotAfter:     time.Now().Add(validity),
	}, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// serverTLS serves with an identity, to clients of the cluster's authority only.
func (p *pki) serverTLS(file string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(p.cert(file), p.key(file))
	if err != nil {
		return nil, fmt.Errorf("loading a certificate of the cluster: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(p.cluster.certPEM)
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientCAs:    clients, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"http/1.1"}, // a CONNECT of HTTP/2 cannot be taken over
		MinVersion: tls.VersionTLS12,
	}, nil
}
