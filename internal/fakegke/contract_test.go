package fakegke

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// implemented reports whether the fake answers a method of the Container API.
// The methods it does not have are promoted from UnimplementedClusterManagerServer.
func implemented(method string) bool {
	f, ok := reflect.TypeFor[*service]().MethodByName(method)
	if !ok {
		return false
	}
	api := &service{Server: &Server{}}
	_, err := func() (res any, err error) {
		defer func() { _ = recover() }() // an empty server and an empty request: it got further than UNIMPLEMENTED
		out := f.Func.Call([]reflect.Value{reflect.ValueOf(api), reflect.ValueOf(context.Background()), reflect.New(f.Type.In(2).Elem())})
		err, _ = out[1].Interface().(error)
		return nil, err
	}()
	return status.Code(err) != codes.Unimplemented
}

// contract makes one call of each method on a client, on a fake of its own.
// What it returns is compared between the transports.
var contract = []struct {
	method string
	call   func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error)
}{
	{"CreateCluster", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: testParent, Cluster: contractCluster()})
	}},
	{"GetCluster", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: testCluster})
	}},
	{"ListClusters", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/acme/locations/-"})
	}},
	{"UpdateCluster", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{Name: testCluster, Update: &containerpb.ClusterUpdate{
			DesiredClusterAutoscaling: &containerpb.ClusterAutoscaling{EnableNodeAutoprovisioning: true, ResourceLimits: []*containerpb.ResourceLimit{
				{ResourceType: "cpu", Maximum: 1000}, {ResourceType: "memory", Maximum: 4000}, {ResourceType: "tpu-v5-lite-podslice", Maximum: 256},
			}},
		}})
	}},
	{"UpdateMaster", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.UpdateMaster(ctx, &containerpb.UpdateMasterRequest{Name: testCluster, MasterVersion: "1.36.1"})
	}},
	{"SetLabels", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		have, err := c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: testCluster})
		if err != nil {
			return nil, err
		}
		return c.SetLabels(ctx, &containerpb.SetLabelsRequest{Name: testCluster, ResourceLabels: map[string]string{"team": "research"}, LabelFingerprint: have.LabelFingerprint})
	}},
	{"SetMaintenancePolicy", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		have, err := c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: testCluster})
		if err != nil {
			return nil, err
		}
		return c.SetMaintenancePolicy(ctx, &containerpb.SetMaintenancePolicyRequest{Name: testCluster, MaintenancePolicy: &containerpb.MaintenancePolicy{
			ResourceVersion: have.MaintenancePolicy.ResourceVersion,
			Window:          &containerpb.MaintenanceWindow{Policy: &containerpb.MaintenanceWindow_DailyMaintenanceWindow{DailyMaintenanceWindow: &containerpb.DailyMaintenanceWindow{StartTime: "03:00"}}},
		}})
	}},
	{"SetAddonsConfig", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetAddonsConfig(ctx, &containerpb.SetAddonsConfigRequest{Name: testCluster, AddonsConfig: &containerpb.AddonsConfig{GcsFuseCsiDriverConfig: &containerpb.GcsFuseCsiDriverConfig{Enabled: true}}})
	}},
	{"SetLoggingService", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetLoggingService(ctx, &containerpb.SetLoggingServiceRequest{Name: testCluster, LoggingService: "none"})
	}},
	{"SetMonitoringService", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetMonitoringService(ctx, &containerpb.SetMonitoringServiceRequest{Name: testCluster, MonitoringService: "none"})
	}},
	{"SetNetworkPolicy", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetNetworkPolicy(ctx, &containerpb.SetNetworkPolicyRequest{Name: testCluster, NetworkPolicy: &containerpb.NetworkPolicy{Enabled: true, Provider: containerpb.NetworkPolicy_CALICO}})
	}},
	{"CreateNodePool", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: slicePool("v5e")})
	}},
	{"GetNodePool", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.GetNodePool(ctx, &containerpb.GetNodePoolRequest{Name: testCluster + "/nodePools/v5e"})
	}},
	{"ListNodePools", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.ListNodePools(ctx, &containerpb.ListNodePoolsRequest{Parent: testCluster})
	}},
	{"UpdateNodePool", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.UpdateNodePool(ctx, &containerpb.UpdateNodePoolRequest{Name: testCluster + "/nodePools/system", Labels: &containerpb.NodeLabels{Labels: map[string]string{"team": "research"}}})
	}},
	{"SetNodePoolSize", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetNodePoolSize(ctx, &containerpb.SetNodePoolSizeRequest{Name: testCluster + "/nodePools/system", NodeCount: 2})
	}},
	{"SetNodePoolManagement", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetNodePoolManagement(ctx, &containerpb.SetNodePoolManagementRequest{Name: testCluster + "/nodePools/system", Management: &containerpb.NodeManagement{AutoUpgrade: true}})
	}},
	{"SetNodePoolAutoscaling", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetNodePoolAutoscaling(ctx, &containerpb.SetNodePoolAutoscalingRequest{Name: testCluster + "/nodePools/system", Autoscaling: &containerpb.NodePoolAutoscaling{Enabled: true, MinNodeCount: 1, MaxNodeCount: 3}})
	}},
	{"DeleteNodePool", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/v5e"})
	}},
	{"SetLocations", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.SetLocations(ctx, &containerpb.SetLocationsRequest{Name: testCluster, Locations: []string{"us-west4-a", "us-west4-b"}})
	}},
	{"GetOperation", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		ops, err := c.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: testParent})
		if err != nil {
			return nil, err
		}
		return c.GetOperation(ctx, &containerpb.GetOperationRequest{Name: testParent + "/operations/" + ops.Operations[0].Name})
	}},
	{"CancelOperation", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return nil, c.CancelOperation(ctx, &containerpb.CancelOperationRequest{Name: testParent + "/operations/none"})
	}},
	{"GetServerConfig", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.GetServerConfig(ctx, &containerpb.GetServerConfigRequest{Name: testParent})
	}},
	{"DeleteCluster", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: testCluster})
	}},
	{"ListOperations", func(ctx context.Context, c *container.ClusterManagerClient) (proto.Message, error) {
		return c.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: testParent})
	}},
}

// contractCluster has something of every kind that the two transports encode
// differently: timestamps, durations, maps, enums, optional booleans, oneofs.
func contractCluster() *containerpb.Cluster {
	c := cluster("train")
	c.ResourceLabels = map[string]string{"a": "b"}
	c.WorkloadIdentityConfig = &containerpb.WorkloadIdentityConfig{WorkloadPool: "acme.svc.id.goog"}
	c.AddonsConfig = &containerpb.AddonsConfig{
		HighScaleCheckpointingConfig: &containerpb.HighScaleCheckpointingConfig{Enabled: true}, LustreCsiDriverConfig: &containerpb.LustreCsiDriverConfig{Enabled: true},
	}
	c.ControlPlaneEndpointsConfig = &containerpb.ControlPlaneEndpointsConfig{IpEndpointsConfig: &containerpb.ControlPlaneEndpointsConfig_IPEndpointsConfig{
		AuthorizedNetworksConfig: &containerpb.MasterAuthorizedNetworksConfig{Enabled: true, CidrBlocks: []*containerpb.MasterAuthorizedNetworksConfig_CidrBlock{{DisplayName: "office", CidrBlock: "192.0.2.0/24"}}},
	}}
	start := time.Date(2026, 12, 20, 0, 0, 0, 0, time.UTC)
	c.MaintenancePolicy = &containerpb.MaintenancePolicy{Window: &containerpb.MaintenanceWindow{
		Policy: &containerpb.MaintenanceWindow_RecurringWindow{RecurringWindow: &containerpb.RecurringTimeWindow{
			Window:     &containerpb.TimeWindow{StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.Add(8 * time.Hour))},
			Recurrence: "FREQ=WEEKLY;BYDAY=SA,SU",
		}},
		MaintenanceExclusions: map[string]*containerpb.TimeWindow{"run": {
			StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.Add(60 * 24 * time.Hour)),
			Options: &containerpb.TimeWindow_MaintenanceExclusionOptions{MaintenanceExclusionOptions: &containerpb.MaintenanceExclusionOptions{Scope: containerpb.MaintenanceExclusionOptions_NO_MINOR_OR_NODE_UPGRADES}},
		}},
	}}
	return c
}

// drawn are the parts of answers that differ between two servers: names of
// operations, times, and what is derived from them.
var drawn = map[string]bool{
	"google.container.v1.Operation.name": true, "google.container.v1.Operation.self_link": true,
	"google.container.v1.Operation.start_time": true, "google.container.v1.Operation.end_time": true, "google.container.v1.Operation.status": true,
	"google.container.v1.Cluster.id": true, "google.container.v1.Cluster.create_time": true, "google.container.v1.Cluster.etag": true, "google.container.v1.Cluster.endpoint": true,
	"google.container.v1.NodePool.etag":                        true,
	"google.container.v1.PrivateClusterConfig.public_endpoint": true, "google.container.v1.PrivateClusterConfig.private_endpoint": true,
	"google.container.v1.ControlPlaneEndpointsConfig.IPEndpointsConfig.public_endpoint": true, "google.container.v1.ControlPlaneEndpointsConfig.IPEndpointsConfig.private_endpoint": true,
	"google.container.v1.ControlPlaneEndpointsConfig.DNSEndpointConfig.endpoint": true,
	"google.container.v1.MasterAuth.cluster_ca_certificate":                      true,
}

var sameButDrawn = cmp.Options{protocmp.Transform(), cmp.FilterPath(func(p cmp.Path) bool {
	for i := len(p) - 1; i > 0; i-- {
		if key, ok := p.Index(i).(cmp.MapIndex); ok {
			in, _ := p.Index(i - 1).Values()
			if msg, ok := in.Interface().(protocmp.Message); ok {
				return drawn[string(msg.Descriptor().FullName())+"."+key.Key().String()]
			}
		}
	}
	return false
}, cmp.Ignore())}

// Google's clients, gRPC and REST, see the same API: each method is called on
// both, and what comes back, or the error, is the same.
func TestBothTransportsAnswerTheSame(t *testing.T) {
	type answer struct {
		res proto.Message
		err string
	}
	answers := map[string][]answer{}
	for face, client := range faces {
		_, addr := serve(t)
		c, other := client(t, addr, testToken), faces[map[string]string{"grpc": "rest", "rest": "grpc"}[face]](t, addr, testToken)
		for _, step := range contract {
			res, err := step.call(t.Context(), c)
			a := answer{res: res}
			if err != nil {
				a.err = message(err)
				if apiErrorOf(t, err).Details().RequestInfo == nil {
					t.Errorf("%s over %s: an error without a request id", step.method, face)
				}
			} else if op, ok := res.(*containerpb.Operation); ok && step.method != "GetOperation" {
				succeed(t, c, op, nil)
			}
			answers[face] = append(answers[face], a)
			if strings.HasPrefix(step.method, "Get") || strings.HasPrefix(step.method, "List") {
				same, err := step.call(t.Context(), other)
				if err != nil || !proto.Equal(res, same) {
					t.Errorf("%s: the transports read one server differently: %v\n%s", step.method, err, cmp.Diff(res, same, protocmp.Transform()))
				}
			}
		}
	}
	for i, step := range contract {
		rpc, rest := answers["grpc"][i], answers["rest"][i]
		if rpc.err != rest.err {
			t.Errorf("%s: gRPC says %q, REST %q", step.method, rpc.err, rest.err)
		}
		if diff := cmp.Diff(rpc.res, rest.res, sameButDrawn); diff != "" {
			t.Errorf("%s (-grpc +rest):\n%s", step.method, diff)
		}
		if (rpc.err == "") == (step.method == "CancelOperation") {
			t.Errorf("%s: error %q", step.method, rpc.err)
		}
	}
}

// The contract leaves out no method that the fake answers, and the fake answers
// every method of Google's client that the GKE client of this project calls.
func TestTheContractIsComplete(t *testing.T) {
	inContract := map[string]bool{}
	for _, step := range contract {
		inContract[step.method] = true
	}
	for _, m := range containerpb.ClusterManager_ServiceDesc.Methods {
		if implemented(m.MethodName) != inContract[m.MethodName] {
			t.Errorf("%s: answered by the fake %v, in the contract %v", m.MethodName, implemented(m.MethodName), inContract[m.MethodName])
		}
	}
	used := usedMethods(t, filepath.Join("..", "gke"))
	if len(used) < 10 {
		t.Errorf("found %v only", used)
	}
	for name := range used {
		if !inContract[name] {
			t.Errorf("%s is used and not in the contract", name)
		}
	}
}

// usedMethods are the methods of Google's client that the files of a folder
// call, on a field named api.
func usedMethods(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	client := reflect.TypeFor[*container.ClusterManagerClient]()
	used := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if on, ok := sel.X.(*ast.SelectorExpr); ok && on.Sel.Name == "api" {
					if _, ok := client.MethodByName(sel.Sel.Name); ok && sel.Sel.Name != "Close" {
						used[sel.Sel.Name] = true
					}
				}
			}
			return true
		})
	}
	return used
}
