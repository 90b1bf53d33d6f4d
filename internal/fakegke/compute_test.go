package fakegke

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
)

// computeClient is Google's own.
func computeClient(t *testing.T, addr string) *compute.Service {
	t.Helper()
	c, err := compute.NewService(t.Context(), option.WithEndpoint("http://"+addr+computePrefix), option.WithHTTPClient(&http.Client{Transport: bearer(testToken)}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func throughput(name, topology string) *compute.ResourcePolicy {
	return &compute.ResourcePolicy{Name: name, WorkloadPolicy: &compute.ResourcePolicyWorkloadPolicy{Type: "HIGH_THROUGHPUT", AcceleratorTopology: topology}}
}

// waited carries a change of a policy out.
func waited(t *testing.T, c *compute.Service, op *compute.Operation, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if op, err = c.RegionOperations.Wait("acme", "us-west4", op.Name).Do(); err != nil || op.Status != "DONE" || op.Error != nil {
		t.Fatalf("waiting: %+v, %v", op, err)
	}
}

func ironwood(policy string, hosts int32) *containerpb.NodePool {
	return &containerpb.NodePool{
		Name: "v7x-0", InitialNodeCount: hosts,
		Config:          &containerpb.NodeConfig{MachineType: "tpu7x-standard-4t", DiskType: "hyperdisk-balanced"},
		PlacementPolicy: &containerpb.NodePool_PlacementPolicy{PolicyName: policy},
	}
}

// The life of a policy with the pool that it places.
func TestLifeOfAResourcePolicy(t *testing.T) {
	s, addr := serve(t)
	c, gke := computeClient(t, addr), restClient(t, addr, testToken)
	createCluster(t, gke)
	newPool := func(policy string, hosts int32) error {
		op, err := gke.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: ironwood(policy, hosts)})
		if err == nil {
			succeed(t, gke, op, err)
		}
		return err
	}
	if err := newPool("none", 8); err == nil || message(err) != `The resource policy "none" was not found or is not ready: projects/acme/regions/us-west4/resourcePolicies/none.` {
		t.Errorf("a pool with an unknown policy: %v", err)
	}
	with := cluster("with-slices")
	with.NodePools = append(with.NodePools, ironwood("none", 8))
	if _, err := gke.CreateCluster(t.Context(), &containerpb.CreateClusterRequest{Parent: testParent, Cluster: with}); err == nil {
		t.Error("a cluster was made with a pool whose policy is not there")
	}
	op, err := c.ResourcePolicies.Insert("acme", "us-west4", throughput("cube", "2x2x8")).Do()
	waited(t, c, op, err)
	got, err := c.ResourcePolicies.Get("acme", "us-west4", "cube").Do()
	if err != nil || got.Status != "READY" || got.WorkloadPolicy.AcceleratorTopology != "2x2x8" {
		t.Fatalf("the new policy: %+v, %v", got, err)
	}
	if list, err := c.ResourcePolicies.List("acme", "us-west4").Do(); err != nil || len(list.Items) != 1 {
		t.Errorf("the list: %+v, %v", list, err)
	}
	if err := newPool("cube", 16); err == nil || message(err) != "Requested invalid target size '16' for a Managed Instance Group in the gang mode of size '8'" {
		t.Errorf("a pool of another size than the policy's: %v", err)
	}
	if err := newPool("cube", 8); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes(testCluster)[1:] {
		if got := n.Labels["cloud.google.com/gke-tpu-topology"]; got != "2x2x8" {
			t.Errorf("node %s has topology %q, want the policy's", n.Name, got)
		}
	}
	_, err = c.ResourcePolicies.Delete("acme", "us-west4", "cube").Do()
	if e := refusal(t, err); e.Code != 400 || e.Errors[0].Reason != "resourceInUseByAnotherResource" {
		t.Errorf("deleting a policy in use: %v", err)
	}
	removePool(t, gke, "v7x-0")
	op, err = c.ResourcePolicies.Delete("acme", "us-west4", "cube").Do()
	waited(t, c, op, err)
	_, err = c.ResourcePolicies.Get("acme", "us-west4", "cube").Do()
	if e := refusal(t, err); e.Code != 404 || e.Errors[0].Reason != "notFound" {
		t.Errorf("reading a deleted policy: %v", err)
	}
	want := map[string]int{"InsertResourcePolicy": 1, "GetResourcePolicy": 2, "ListResourcePolicies": 1, "DeleteResourcePolicy": 2, "WaitRegionOperation": 2}
	calls := s.Calls()
	for method := range calls {
		if _, ok := want[method]; !ok {
			delete(calls, method)
		}
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error("calls (-want +got):\n", diff)
	}
}

func removePool(t *testing.T, c *container.ClusterManagerClient, name string) {
	t.Helper()
	op, err := c.DeleteNodePool(t.Context(), &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/" + name})
	succeed(t, c, op, err)
}

func refusal(t *testing.T, err error) *googleapi.Error {
	t.Helper()
	var e *googleapi.Error
	if !errors.As(err, &e) || len(e.Errors) != 1 {
		t.Fatalf("got %v, want a refusal by the API with a reason", err)
	}
	return e
}

func TestResourcePoliciesThatAreRefused(t *testing.T) {
	_, addr := serve(t)
	c := computeClient(t, addr)
	op, err := c.ResourcePolicies.Insert("acme", "us-west4", throughput("there", "4x4x4")).Do()
	waited(t, c, op, err)
	for name, tc := range map[string]struct {
		region string
		policy *compute.ResourcePolicy
		code   int
	}{
		"it exists":        {"us-west4", throughput("there", "4x4x4"), 409},
		"a bad name":       {"us-west4", throughput("There", "4x4x4"), 400},
		"no topology":      {"us-west4", throughput("x", "four"), 400},
		"a zone as region": {"us-west4-a", throughput("x", "4x4x4"), 400},
		"no workload policy": {"us-west4", &compute.ResourcePolicy{Name: "x",
			GroupPlacementPolicy: &compute.ResourcePolicyGroupPlacementPolicy{Collocation: "COLLOCATED"}}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.ResourcePolicies.Insert("acme", tc.region, tc.policy).Do()
			if e := refusal(t, err); e.Code != tc.code {
				t.Errorf("got %v, want status %d", err, tc.code)
			}
		})
	}
}

// Faults meet Compute Engine's methods as they meet GKE's; policies and their
// operations are in the state file.
func TestComputeFaultsAndRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	s, addr := serve(t, WithStateFile(file))
	c := computeClient(t, addr)
	remove := s.Fail(Fault{Method: "InsertResourcePolicy", Code: codes.PermissionDenied, Message: "Required 'compute.resourcePolicies.create' permission"})
	_, err := c.ResourcePolicies.Insert("acme", "us-west4", throughput("p", "4x4x4")).Do()
	if e := refusal(t, err); e.Code != 403 || e.Errors[0].Reason != "forbidden" || len(s.Policies()) != 0 {
		t.Errorf("with a fault: %v; policies %v", err, s.Policies())
	}
	remove()
	s.Fail(Fault{Method: "InsertResourcePolicy", Call: 1, Reset: true, AfterEffect: true})
	if _, err = c.ResourcePolicies.Insert("acme", "us-west4", throughput("p", "4x4x4")).Do(); err == nil {
		t.Error("the lost reply arrived")
	}
	if s.Empty() {
		t.Error("Empty with a policy left")
	}
	again, err := New(WithTimeScale(0), WithStateFile(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if diff := cmp.Diff([]string{"projects/acme/regions/us-west4/resourcePolicies/p"}, again.Policies()); diff != "" {
		t.Error("policies after a restart (-want +got):\n", diff)
	}
}
