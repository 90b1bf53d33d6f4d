package acctest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"golang.org/x/oauth2"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// shared is the one sandbox of a test binary: starting one costs seconds, and
// tests keep apart by using projects of their own.
var shared struct {
	once sync.Once
	box  *sandbox.Sandbox
	err  error
}

// Sandbox returns the test binary's sandbox: the fake GKE API with real
// control planes behind it. A package that uses it calls Main from TestMain.
func Sandbox(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	shared.once.Do(func() {
		shared.box, shared.err = sandbox.Start(context.Background(), sandbox.WithJobDuration(2*time.Second))
	})
	if shared.err != nil {
		t.Fatalf("starting the sandbox: %v", shared.err)
	}
	return shared.box
}

// UseSandbox points this process, and so a provider inside it, at the sandbox
// for the time of a test.
func UseSandbox(t *testing.T) {
	t.Helper()
	for _, kv := range Sandbox(t).Env() {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
}

// Connect reaches a cluster of the sandbox beside the provider. cluster is its
// path, projects/P/locations/L/clusters/C.
func Connect(t testing.TB, cluster string) *kube.Client {
	t.Helper()
	box := Sandbox(t)
	api, err := gke.New(gke.Config{Endpoint: box.Endpoint(), Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: box.Token()})})
	if err != nil {
		t.Fatal(err)
	}
	name, err := gke.ParseClusterName(cluster)
	if err != nil {
		t.Fatal(err)
	}
	access, err := api.Access(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kube.Connect(access)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// Factories are the provider in this process, with this process's environment.
func Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"tpu": func() (tfprotov6.ProviderServer, error) { return provider.Server(provider.New("test")()), nil },
	}
}

// Main runs the tests of a package without the user's CLI configuration file,
// and stops the sandbox if one was started.
func Main(m *testing.M) {
	remove := noCLIConfig()
	code := m.Run()
	remove()
	if shared.box != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := shared.box.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the sandbox:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}
