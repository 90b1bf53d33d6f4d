package gke

import (
	"net/http"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// A cluster can have slices of a shape by a node pool of it, at any size, or by
// making node pools itself; what a node pool is that cannot be read is not held
// against the job.
func TestProvides(t *testing.T) {
	shape, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		cluster string
		want    bool
	}{
		"no node pool":               {`{}`, false},
		"of CPUs only":               {`{"nodePools":[{"name":"system","config":{"machineType":"e2-standard-8"}}]}`, false},
		"of the shape, empty":        {`{"nodePools":[{"name":"tpu","config":{"machineType":"ct5lp-hightpu-4t"},"placementPolicy":{"tpuTopology":"4x4"}}]}`, true},
		"of another topology":        {`{"nodePools":[{"name":"tpu","config":{"machineType":"ct5lp-hightpu-4t"},"placementPolicy":{"tpuTopology":"4x8"}}]}`, false},
		"of another generation":      {`{"nodePools":[{"name":"tpu","config":{"machineType":"ct6e-standard-4t"},"placementPolicy":{"tpuTopology":"4x4"}}]}`, false},
		"of a machine of tomorrow":   {`{"nodePools":[{"name":"tpu","config":{"machineType":"ct9-future-4t"},"placementPolicy":{"tpuTopology":"4x4"}}]}`, false},
		"of a shape it does not say": {`{"nodePools":[{"name":"tpu","config":{"machineType":"ct5lp-hightpu-4t"},"placementPolicy":{"tpuTopology":"9x9"}}]}`, true},
		"auto-provisioning":          {`{"autoscaling":{"enableNodeAutoprovisioning":true}}`, true},
		"Autopilot":                  {`{"autopilot":{"enabled":true}}`, true},
	} {
		cl := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, c.cluster) }))
		if got, err := cl.Provides(t.Context(), name, shape); err != nil || got != c.want {
			t.Errorf("%s: %t, %v; want %t", what, got, err, c.want)
		}
	}
	cl := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, `{"error":{"code":404,"status":"NOT_FOUND","message":"no"}}`)
	}))
	if _, err := cl.Provides(t.Context(), name, shape); err == nil {
		t.Error("a cluster that is not there provides")
	}
}

// Credentials say whose they are where that is written in them.
func TestAccountOfCredentials(t *testing.T) {
	none := func(string) string { return "" }
	acting := func(k string) string {
		if k == impersonateVariable {
			return actAs
		}
		return ""
	}
	for what, c := range map[string]struct {
		cfg  CredentialsConfig
		want string
	}{
		"a key":                         {CredentialsConfig{JSON: keyFile().String(), Getenv: none}, "ci@acme.iam.gserviceaccount.com"},
		"impersonation":                 {CredentialsConfig{JSON: keyFile().String(), Impersonate: actAs, Getenv: none}, actAs},
		"the environment impersonates":  {CredentialsConfig{JSON: keyFile().String(), Getenv: acting}, actAs},
		"a token":                       {CredentialsConfig{AccessToken: "t0ken", Getenv: none}, ""},
		"a login":                       {CredentialsConfig{JSON: login().String(), Getenv: none}, ""},
		"a login that says whose it is": {CredentialsConfig{JSON: login().with(fields{"account": "ada@example.com"}).String(), Getenv: none}, "ada@example.com"},
		"federation":                    {CredentialsConfig{JSON: federated(fields{"file": "/tmp/token"}).String(), Getenv: none}, ""},
		"none at all":                   {CredentialsConfig{JSON: "{}", Getenv: none}, ""},
	} {
		if got := FindCredentials(c.cfg).Account(); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
