package sandbox

import (
	"strings"
	"testing"

	"golang.org/x/oauth2"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
)

// Env leads to Compute Engine too: the policies that place tpu7x slices are
// made in the sandbox, never in a real project.
func TestComputeEngineIsInTheSandbox(t *testing.T) {
	s := start(t)
	env := map[string]string{}
	for _, kv := range s.Env() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	if env["TPU_COMPUTE_ENDPOINT"] != s.Endpoint() {
		t.Fatalf("TPU_COMPUTE_ENDPOINT is %q, want the sandbox's own %q", env["TPU_COMPUTE_ENDPOINT"], s.Endpoint())
	}
	hc := oauth2.NewClient(t.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: env["GOOGLE_OAUTH_ACCESS_TOKEN"]}))
	c, err := compute.NewService(t.Context(), option.WithEndpoint(s.Endpoint()+"/compute/v1/"), option.WithHTTPClient(hc))
	if err != nil {
		t.Fatal(err)
	}
	op, err := c.ResourcePolicies.Insert("sandbox", "us-west4", &compute.ResourcePolicy{Name: "cube",
		WorkloadPolicy: &compute.ResourcePolicyWorkloadPolicy{Type: "HIGH_THROUGHPUT", AcceleratorTopology: "4x4x4"}}).Do()
	if err != nil {
		t.Fatal(err)
	}
	if op, err = c.RegionOperations.Wait("sandbox", "us-west4", op.Name).Do(); err != nil || op.Status != "DONE" {
		t.Fatalf("waiting: %+v, %v", op, err)
	}
	if p, err := c.ResourcePolicies.Get("sandbox", "us-west4", "cube").Do(); err != nil || p.Status != "READY" {
		t.Errorf("the policy: %+v, %v", p, err)
	}
}
