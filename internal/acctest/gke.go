// Package acctest is what acceptance tests share: an in-process fake of the
// GKE API, the sandbox with real control planes, the provider in this process
// or as a binary. Nothing that ships imports it.
package acctest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider"
)

// Token is the bearer token that the fake of NewGKE wants.
const Token = "acctest-bearer-token"

// GKE is an in-process fake of the GKE API without control planes, and a
// provider that talks to it.
type GKE struct {
	*fakegke.Server
	Cluster  *Cluster // behind every cluster of the fake
	Endpoint string   // http://127.0.0.1:PORT
	Project  string
	Zone     string
}

// NewGKE starts a fake that ends with the test. Its operations take
// milliseconds unless opts say otherwise. Terraform sees no configuration
// file of the user's.
func NewGKE(t testing.TB, opts ...fakegke.Option) *GKE {
	t.Helper()
	cluster := newCluster(t)
	s, err := fakegke.New(append([]fakegke.Option{fakegke.WithToken(Token), fakegke.WithControlPlanes(cluster)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.Serve(l); err != nil {
			t.Errorf("the fake GKE API: %v", err)
		}
	}()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the fake GKE API: %v", err)
		}
	})
	return &GKE{Server: s, Cluster: cluster, Endpoint: "http://" + l.Addr().String(), Project: "acc-project", Zone: "us-west4-a"}
}

// Factories are the provider in this process, with an empty environment: tests
// may run in parallel, and nothing of the machine's leaks in.
func (g *GKE) Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	p := provider.New("test", provider.WithEnvironment(func(string) string { return "" }))
	return map[string]func() (tfprotov6.ProviderServer, error){
		"tpu": func() (tfprotov6.ProviderServer, error) { return provider.Server(p()), nil },
	}
}

// Config is a whole configuration: the provider block, with an owner ("" for
// none), and the given resources.
func (g *GKE) Config(owner, resources string) string {
	if owner != "" {
		owner = fmt.Sprintf("owner = %q\n", owner)
	}
	return fmt.Sprintf(`
provider "tpu" {
  project       = %q
  location      = %q
  gke_endpoint  = %q
  compute_endpoint = %q
  access_token  = %q
  poll_interval = "10ms"
  %s
}
`, g.Project, g.Zone, g.Endpoint, g.Endpoint, Token, owner) + resources
}

// noCLIConfig keeps the user's terraform configuration file (mirrors,
// development overrides) out of the tests of a package.
func noCLIConfig() (remove func()) {
	dir, err := os.MkdirTemp("", "tpu-acctest-")
	if err != nil {
		panic(err)
	}
	file := filepath.Join(dir, "terraformrc")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		panic(err)
	}
	if err := os.Setenv("TF_CLI_CONFIG_FILE", file); err != nil {
		panic(err)
	}
	return func() {
		_ = os.RemoveAll(dir)
		removeBinary()
	}
}
