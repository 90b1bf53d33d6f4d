package compute

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	api "google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
)

const token = "a-token"

var (
	cluster = gke.ClusterName{Project: "acme", Location: "us-central1-a", Cluster: "main"}
	owner   = Owner{Config: "team", Cluster: cluster, Pool: "v7x"}
	cube    = PolicyFor(owner, "4x4x4")
)

// start runs a fake and a client of it.
func start(t *testing.T, opts ...fakegke.Option) (*fakegke.Server, *Client) {
	t.Helper()
	s, err := fakegke.New(append([]fakegke.Option{fakegke.WithToken(token)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	c, err := New(Config{
		Endpoint: "http://" + l.Addr().String(), PollInterval: time.Millisecond,
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func policies(t *testing.T, s *fakegke.Server, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.Policies()); diff != "" {
		t.Error("policies (-want +got):\n", diff)
	}
}

// A policy is made once, found again, and removed by its own pool only.
func TestLifeOfAWorkloadPolicy(t *testing.T) {
	s, c := start(t)
	for range 2 {
		if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
			t.Fatal(err)
		}
	}
	policies(t, s, cube.path())
	if n := s.Calls()["InsertResourcePolicy"]; n != 1 {
		t.Errorf("%d inserts, want 1", n)
	}
	other := cube
	other.Owner.Pool = "another"
	if kept, err := c.DeleteWorkloadPolicy(t.Context(), other); kept || err != nil {
		t.Errorf("removing another pool's policy: kept %v, %v", kept, err)
	}
	policies(t, s, cube.path())
	renamed := cube
	renamed.Owner.Config = "the same pool, and its configuration has another name"
	if owned, err := c.Owned(t.Context(), renamed); !owned || err != nil {
		t.Errorf("owned %v, %v", owned, err)
	}
	for range 2 {
		if kept, err := c.DeleteWorkloadPolicy(t.Context(), cube); kept || err != nil {
			t.Errorf("removing it: kept %v, %v", kept, err)
		}
	}
	policies(t, s)
}

// Whatever happens to single requests, there is one policy in the end.
func TestEnsureThroughFaults(t *testing.T) {
	for name, f := range map[string]fakegke.Fault{
		"a lost reply":         {Method: "InsertResourcePolicy", Call: 1, Reset: true, AfterEffect: true},
		"a lost request":       {Method: "InsertResourcePolicy", Call: 1, Reset: true},
		"a service problem":    {Method: "GetResourcePolicy", Call: 1, Code: codes.Unavailable, Message: "Try later."},
		"throttling":           {Method: "InsertResourcePolicy", Call: 1, Code: codes.ResourceExhausted, Message: "Rate Limit Exceeded"},
		"made in the meantime": {Method: "GetResourcePolicy", Call: 1, Code: codes.NotFound, Message: "The resource was not found"},
		"a wait without reply": {Method: "WaitRegionOperation", Call: 1, Reset: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			if name == "made in the meantime" {
				if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
					t.Fatal(err)
				}
			}
			s.Fail(f)
			if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
				t.Fatal(err)
			}
			policies(t, s, cube.path())
		})
	}
}

// A policy that is being removed is waited out and made anew.
func TestEnsureAfterADeletion(t *testing.T) {
	s, c := start(t, fakegke.WithTimeScale(0.02))
	if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, c).ResourcePolicies.Delete(cube.Project, cube.Region, cube.Name).Do(); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
		t.Fatal(err)
	}
	policies(t, s, cube.path())
	if n := s.Calls()["InsertResourcePolicy"]; n != 2 {
		t.Errorf("%d inserts, want 2", n)
	}
}

// raw is a client that is not ours, of the same server.
func raw(t *testing.T, c *Client) *api.Service {
	t.Helper()
	r, err := api.NewService(t.Context(), option.WithEndpoint(c.cfg.Endpoint+basePath),
		option.WithHTTPClient(oauth2.NewClient(t.Context(), c.cfg.Tokens)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// One that somebody made by hand serves as well, and is never removed; one of
// the same name for something else is refused.
func TestPoliciesMadeByHand(t *testing.T) {
	s, c := start(t)
	byHand := &api.ResourcePolicy{Name: cube.Name, WorkloadPolicy: &api.ResourcePolicyWorkloadPolicy{Type: highThroughput, AcceleratorTopology: "4x4x4"}}
	if _, err := raw(t, c).ResourcePolicies.Insert(cube.Project, cube.Region, byHand).Do(); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
		t.Error(err)
	}
	if kept, err := c.DeleteWorkloadPolicy(t.Context(), cube); kept || err != nil {
		t.Errorf("removing it: kept %v, %v", kept, err)
	}
	policies(t, s, cube.path())
	larger := cube
	larger.Topology = "4x4x8"
	err := c.EnsureWorkloadPolicy(t.Context(), larger)
	if !errors.Is(err, gke.AlreadyExists) || !strings.Contains(err.Error(), `accelerator topology "4x4x4"; wanted HIGH_THROUGHPUT and 4x4x8`) {
		t.Errorf("a policy with another topology: %v", err)
	}
}

// A policy that other instances keep in use stays; one that is only just free
// goes.
func TestDeleteOfAPolicyInUse(t *testing.T) {
	s, c := start(t)
	if err := c.EnsureWorkloadPolicy(t.Context(), cube); err != nil {
		t.Fatal(err)
	}
	const text = "The resource_policy resource is already being used"
	remove := s.Fail(fakegke.Fault{Method: "DeleteResourcePolicy", Code: codes.FailedPrecondition, Message: text})
	if kept, err := c.DeleteWorkloadPolicy(t.Context(), cube); !kept || err != nil {
		t.Errorf("in use: kept %v, %v", kept, err)
	}
	remove()
	policies(t, s, cube.path())
	s.Fail(fakegke.Fault{Method: "DeleteResourcePolicy", Call: 1, Code: codes.FailedPrecondition, Message: text})
	if kept, err := c.DeleteWorkloadPolicy(t.Context(), cube); kept || err != nil {
		t.Errorf("just free: kept %v, %v", kept, err)
	}
	policies(t, s)
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		fault fakegke.Fault
		cause gke.Cause
		says  string
	}{
		"permission": {fakegke.Fault{Code: codes.PermissionDenied, Message: "Required 'compute.resourcePolicies.create' permission for 'projects/acme'"},
			gke.Permission, "roles/compute.instanceAdmin.v1 on project acme"},
		"API": {fakegke.Fault{Code: codes.PermissionDenied, Message: "Compute Engine API has not been used in project 1 before or it is disabled."},
			gke.APINotEnabled, "gcloud services enable compute.googleapis.com --project acme"},
		"token":      {fakegke.Fault{Code: codes.Unauthenticated, Message: "Invalid Credentials"}, gke.Unauthenticated, "Log in again"},
		"outage":     {fakegke.Fault{Code: codes.Unavailable, Message: "Backend Error"}, gke.Unavailable, "apply again"},
		"no answers": {fakegke.Fault{Reset: true}, gke.Unreachable, "TPU_COMPUTE_ENDPOINT"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			tc.fault.Method = "InsertResourcePolicy"
			s.Fail(tc.fault)
			err := c.EnsureWorkloadPolicy(t.Context(), cube)
			if !errors.Is(err, tc.cause) || !strings.HasPrefix(err.Error(), "making workload policy "+cube.path()+": ") || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want cause %q and %q", err, tc.cause, tc.says)
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
}

// An interrupt or a timeout ends a wait at once, and says which it was.
func TestInterrupts(t *testing.T) {
	_, c := start(t, fakegke.WithTimeScale(1000))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.EnsureWorkloadPolicy(ctx, cube); !errors.Is(err, gke.TimedOut) {
		t.Errorf("got %v, want a timeout", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := c.EnsureWorkloadPolicy(ctx, cube); !errors.Is(err, gke.Interrupted) {
		t.Errorf("got %v, want an interrupt", err)
	}
}

func TestNoTokenLeavesInTheClear(t *testing.T) {
	if _, err := New(Config{Endpoint: "http://example.com"}); err == nil || !strings.Contains(err.Error(), "unencrypted") {
		t.Errorf("got %v", err)
	}
	_, err := New(Config{Transport: http.DefaultTransport})
	if err != nil {
		t.Errorf("Google's own endpoint: %v", err)
	}
}
