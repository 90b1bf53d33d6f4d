package fakegke

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// inTime runs a scenario at GKE's own pace, in a bubble where time is free. It
// begins with a cluster that is up.
func inTime(t *testing.T, scenario func(t *testing.T, api *service), opts ...Option) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(append([]Option{WithTimeScale(1)}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		api := &service{Server: s}
		if _, err := api.CreateCluster(context.Background(), &containerpb.CreateClusterRequest{Parent: testParent, Cluster: cluster("train")}); err != nil {
			t.Fatal(err)
		}
		pass(6 * time.Minute)
		scenario(t, api)
	})
}

// pass lets time pass, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *service) newPool(p *containerpb.NodePool) (*containerpb.Operation, error) {
	return s.CreateNodePool(context.Background(), &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: p})
}

func (s *service) op(t *testing.T, name string) *containerpb.Operation {
	t.Helper()
	op, err := s.GetOperation(context.Background(), &containerpb.GetOperationRequest{Name: testParent + "/operations/" + name})
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func (s *service) pool(t *testing.T, name string) *containerpb.NodePool {
	t.Helper()
	p, err := s.GetNodePool(context.Background(), &containerpb.GetNodePoolRequest{Name: testCluster + "/nodePools/" + name})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var operationName = regexp.MustCompile(`operation-[0-9a-f-]+`)

func wantError(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if got := operationName.ReplaceAllString(status.Convert(err).Message(), "operation-X"); status.Code(err) != code || got != text {
		t.Errorf("got %s %q\nwant %s %q", status.Code(err), got, code, text)
	}
}

func TestAnOperationPassesThroughItsStates(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		op := must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		var seen []string
		for _, d := range []time.Duration{0, 2 * time.Second, 147 * time.Second, time.Second} {
			pass(d)
			seen = append(seen, api.op(t, op.Name).Status.String()+" "+api.pool(t, "v5e").Status.String())
		}
		want := []string{"PENDING PROVISIONING", "RUNNING PROVISIONING", "RUNNING PROVISIONING", "DONE RUNNING"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		if op := api.op(t, op.Name); op.EndTime == "" || op.Error != nil {
			t.Errorf("a finished operation: %v", op)
		}
		if api.pool(t, "v5e").Etag == "" {
			t.Error("no etag")
		}
	})
}

func TestOperationsExcludeEachOther(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		label := func() error {
			_, err := api.SetLabels(ctx, &containerpb.SetLabelsRequest{Name: testCluster, LabelFingerprint: fingerprint(nil), ResourceLabels: map[string]string{"a": "b"}})
			return err
		}
		drop := func(pool string) error {
			_, err := api.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/" + pool})
			return err
		}
		must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		creating := "Operation operation-X is currently creating a node pool for cluster train. Please wait and try again once it is done."
		wantError(t, label(), codes.FailedPrecondition, creating)
		wantError(t, drop("v5e"), codes.FailedPrecondition, creating)
		_, err := api.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: testCluster})
		wantError(t, err, codes.FailedPrecondition, creating)
		if _, err := api.newPool(slicePool("other")); err != nil {
			t.Errorf("two pools of one cluster can be created at once: %v", err)
		}
		pass(3 * time.Minute)
		if err := label(); err != nil {
			t.Fatal(err)
		}
		_, err = api.newPool(slicePool("third"))
		wantError(t, err, codes.FailedPrecondition, "Cluster is running incompatible operation operation-X.")
		if got := len(api.NodePools(testCluster)); got != 3 {
			t.Errorf("a refused pool was kept: %d pools", got)
		}
		pass(2 * time.Minute)
		wantError(t, label(), codes.FailedPrecondition, `Labels could not be set due to fingerprint mismatch; try again with the proper fingerprint: incorrect fingerprint supplied was "`+fingerprint(nil)+`", the expected one is "`+fingerprint(map[string]string{"a": "b"})+`".`)
	})
}

func TestAClusterHasAQuotaOfOperations(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		for _, name := range []string{"a", "b", "c"} {
			must[*containerpb.Operation](t)(api.newPool(slicePool(name)))
		}
		_, err := api.newPool(slicePool("d"))
		wantError(t, err, codes.ResourceExhausted, `Too many operations: cluster "train" hits the concurrent operations quota 3, please try again later.`)
		pass(3 * time.Minute)
		must[*containerpb.Operation](t)(api.newPool(slicePool("d")))
	}, WithOperationQuota(3))
}

const sliceStockout = "Google Compute Engine: Atomic resize failed with [GCE_STOCKOUT]: Instance '"

func TestAStockoutEndsAfter35Minutes(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		op := must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		pass(30 * time.Minute)
		p := api.pool(t, "v5e")
		if p.Status != containerpb.NodePool_PROVISIONING || len(p.Conditions) != 1 || p.Conditions[0].Code != containerpb.StatusCondition_GCE_STOCKOUT {
			t.Errorf("while it tries: %v %v", p.Status, p.Conditions)
		}
		must[*emptypb.Empty](t)(api.CancelOperation(context.Background(), &containerpb.CancelOperationRequest{Name: testParent + "/operations/" + op.Name}))
		pass(5 * time.Minute)
		if got := api.op(t, op.Name); got.Status != containerpb.Operation_ABORTING {
			t.Errorf("a cancelled stockout ends early: %v", got)
		}
		pass(4 * time.Second)
		got, p := api.op(t, op.Name), api.pool(t, "v5e")
		if got.Status != containerpb.Operation_DONE || codes.Code(got.Error.GetCode()) != codes.ResourceExhausted || p.Status != containerpb.NodePool_ERROR {
			t.Errorf("operation %v, pool %v", got, p.Status)
		}
		if msg := got.Error.GetMessage(); len(msg) < len(sliceStockout) || msg[:len(sliceStockout)] != sliceStockout || p.StatusMessage != msg {
			t.Errorf("message %q, pool's %q", msg, p.StatusMessage)
		}
		_, err := api.newPool(slicePool("v5e"))
		wantError(t, err, codes.AlreadyExists, "Already exists: projects/acme/zones/us-west4-a/clusters/train/nodePools/v5e.")
		must[*containerpb.Operation](t)(api.DeleteNodePool(context.Background(), &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/v5e"}))
		pass(2 * time.Minute)
		if n := len(api.NodePools(testCluster)); n != 1 {
			t.Errorf("%d pools, want 1", n)
		}
	}, WithStockout(Stockout{Zone: "us-west4-a", Pool: "v5e"}))
}

func TestAStockoutLeavesSomeHostsOfASingleHostPool(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		p := &containerpb.NodePool{Name: "single", InitialNodeCount: 5, Config: &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-1t"}}
		op := must[*containerpb.Operation](t)(api.newPool(p))
		pass(36 * time.Minute)
		want := "Google Compute Engine: Not all instances running in IGM after 35m4s. Expected 5, running 2, transitioning 3. Current errors: [GCE_STOCKOUT]"
		if msg := api.op(t, op.Name).Error.GetMessage(); len(msg) < len(want) || msg[:len(want)] != want {
			t.Errorf("message %q", msg)
		}
		if p := api.pool(t, "single"); p.Status != containerpb.NodePool_RUNNING_WITH_ERROR {
			t.Errorf("pool is %s", p.Status)
		}
		if n := len(api.Nodes(testCluster)); n != 1+2 {
			t.Errorf("%d nodes, want 1 of the system pool and 2 that came up", n)
		}
	}, WithStockout(Stockout{Pool: "single", Running: 2}))
}

func TestCapacityThatComesBackEndsAStockout(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		pass(10 * time.Minute)
		api.SetStockout()
		pass(26 * time.Minute)
		if p := api.pool(t, "v5e"); p.Status != containerpb.NodePool_RUNNING || p.Conditions != nil {
			t.Errorf("pool is %s, %v", p.Status, p.Conditions)
		}
	}, WithStockout(Stockout{}))
}

func TestCancellingThePoolsCreationLeavesItInError(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		op := must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		pass(time.Minute)
		name := testParent + "/operations/" + op.Name
		must[*emptypb.Empty](t)(api.CancelOperation(ctx, &containerpb.CancelOperationRequest{Name: name}))
		pass(0)
		if got := api.op(t, op.Name); got.Status != containerpb.Operation_DONE || codes.Code(got.Error.GetCode()) != codes.Canceled {
			t.Errorf("operation %v", got)
		}
		if p := api.pool(t, "v5e"); p.Status != containerpb.NodePool_ERROR {
			t.Errorf("pool is %s", p.Status)
		}
		_, err := api.CancelOperation(ctx, &containerpb.CancelOperationRequest{Name: name})
		wantError(t, err, codes.FailedPrecondition, "Operation operation-X is already done.")
	})
}

func TestTheFirstReadsOfANewPoolCanBeRefused(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		for range 2 {
			_, err := api.GetNodePool(context.Background(), &containerpb.GetNodePoolRequest{Name: testCluster + "/nodePools/v5e"})
			wantError(t, err, codes.NotFound, "Not found: projects/acme/zones/us-west4-a/clusters/train/nodePools/v5e.")
		}
		api.pool(t, "v5e")
	}, WithLateReads(2))
}

func TestControlPlanesFollowTheClusters(t *testing.T) {
	planes := &recorder{}
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
		pass(3 * time.Minute)
		if got := api.Clusters()[0]; got.Endpoint != "127.0.0.1:1001" || got.MasterAuth.ClusterCaCertificate != "dGhlIENB" {
			t.Errorf("endpoint %q, CA %q", got.Endpoint, got.MasterAuth.ClusterCaCertificate)
		}
		must[*containerpb.Operation](t)(api.SetNodePoolSize(ctx, &containerpb.SetNodePoolSizeRequest{Name: testCluster + "/nodePools/system", NodeCount: 2}))
		pass(3 * time.Minute)
		must[*containerpb.Operation](t)(api.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/v5e"}))
		pass(3 * time.Minute)
		must[*containerpb.Operation](t)(api.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: testCluster}))
		pass(3 * time.Minute)
		want := []string{"start " + testCluster, "system has 1 nodes", "v5e has 4 nodes", "system has 2 nodes", "v5e has 0 nodes", "stop " + testCluster}
		if diff := cmp.Diff(want, planes.calls()); diff != "" {
			t.Error(diff)
		}
		if !api.Empty() {
			t.Error("something is left")
		}
	}, WithControlPlanes(planes))
}

func TestAControlPlaneThatFailsIsAnErrorOfTheOperation(t *testing.T) {
	t.Run("start", func(t *testing.T) {
		inTime(t, func(t *testing.T, api *service) {
			ops, c := api.Operations(), api.Clusters()[0]
			if c.Status != containerpb.Cluster_ERROR || c.NodePools[0].Status != containerpb.NodePool_ERROR {
				t.Errorf("cluster %s, pool %s", c.Status, c.NodePools[0].Status)
			}
			if got := ops[0].Error.GetMessage(); got != "start the control plane: etcd: no space left" || c.StatusMessage != got {
				t.Errorf("operation says %q, cluster %q", got, c.StatusMessage)
			}
			_, err := api.newPool(slicePool("v5e"))
			wantError(t, err, codes.FailedPrecondition, `Cluster "train" is in status ERROR: start the control plane: etcd: no space left`)
			must[*containerpb.Operation](t)(api.DeleteCluster(context.Background(), &containerpb.DeleteClusterRequest{Name: testCluster}))
			pass(3 * time.Minute)
			if !api.Empty() {
				t.Error("a broken cluster cannot be deleted")
			}
		}, WithControlPlanes(&recorder{startErr: errors.New("etcd: no space left")}))
	})
	t.Run("stop", func(t *testing.T) {
		inTime(t, func(t *testing.T, api *service) {
			op := must[*containerpb.Operation](t)(api.DeleteCluster(context.Background(), &containerpb.DeleteClusterRequest{Name: testCluster}))
			pass(3 * time.Minute)
			if got := api.op(t, op.Name).Error.GetMessage(); got != "stop the control plane: it hangs" || api.Clusters()[0].Status != containerpb.Cluster_ERROR {
				t.Errorf("operation says %q, cluster is %s", got, api.Clusters()[0].Status)
			}
		}, WithControlPlanes(&recorder{stopErr: errors.New("it hangs")}))
	})
	t.Run("nodes", func(t *testing.T) {
		planes := &recorder{}
		inTime(t, func(t *testing.T, api *service) {
			planes.mu.Lock()
			planes.nodesErr = errors.New("refused")
			planes.mu.Unlock()
			op := must[*containerpb.Operation](t)(api.newPool(slicePool("v5e")))
			pass(3 * time.Minute)
			if got := api.op(t, op.Name).Error.GetMessage(); got != "set the nodes of v5e: refused" || api.pool(t, "v5e").Status != containerpb.NodePool_ERROR {
				t.Errorf("operation says %q, pool is %s", got, api.pool(t, "v5e").Status)
			}
		}, WithControlPlanes(planes))
	})
}
