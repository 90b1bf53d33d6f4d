package fakegke

import (
	"errors"
	"strings"
	"testing"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
)

func TestLifeOfAClusterOnBothClients(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s *Server, c *container.ClusterManagerClient) {
		ctx := t.Context()
		createCluster(t, c)
		got, err := c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: testCluster})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != containerpb.Cluster_RUNNING || got.Endpoint == "" || got.MasterAuth.ClusterCaCertificate == "" || got.CurrentNodeCount != 1 {
			t.Errorf("the new cluster is not complete: %v", got)
		}
		for _, name := range []string{"v5e-0", "v5e-1"} {
			createPool(t, c, slicePool(name))
		}
		list, err := c.ListNodePools(ctx, &containerpb.ListNodePoolsRequest{Parent: testCluster})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.NodePools {
			names = append(names, p.Name+" "+p.Status.String())
		}
		if diff := cmp.Diff([]string{"system RUNNING", "v5e-0 RUNNING", "v5e-1 RUNNING"}, names); diff != "" {
			t.Error("node pools (-want +got):\n", diff)
		}
		if n := len(s.Nodes(testCluster)); n != 9 {
			t.Errorf("%d nodes, want 1 + 2 x 4", n)
		}
		op, err := c.SetNodePoolSize(ctx, &containerpb.SetNodePoolSizeRequest{Name: testCluster + "/nodePools/system", NodeCount: 3})
		succeed(t, c, op, err)
		op, err = c.UpdateNodePool(ctx, &containerpb.UpdateNodePoolRequest{Name: testCluster + "/nodePools/v5e-0", Labels: &containerpb.NodeLabels{Labels: map[string]string{"team": "research"}}})
		succeed(t, c, op, err)
		if n := s.Nodes(testCluster); len(n) != 11 || n[3].Labels["team"] != "research" {
			t.Errorf("after a resize and new labels: %d nodes, labels %v", len(n), n[3].Labels)
		}
		op, err = c.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{Name: testCluster, Update: &containerpb.ClusterUpdate{
			DesiredReleaseChannel: &containerpb.ReleaseChannel{Channel: containerpb.ReleaseChannel_STABLE},
		}})
		succeed(t, c, op, err)
		op, err = c.DeleteNodePool(ctx, &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/v5e-0"})
		succeed(t, c, op, err)
		if s.Empty() {
			t.Error("Empty with a cluster left")
		}
		op, err = c.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: testCluster})
		succeed(t, c, op, err)
		clusters, err := c.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/acme/locations/-"})
		if err != nil || len(clusters.Clusters) != 0 || !s.Empty() {
			t.Errorf("left over: %v, %v", clusters, err)
		}
		ops, err := c.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: "projects/acme/locations/-"})
		if err != nil || len(ops.Operations) != 8 {
			t.Errorf("%d operations, want 8; %v", len(ops.GetOperations()), err)
		}
		cfg, err := c.GetServerConfig(ctx, &containerpb.GetServerConfigRequest{Name: testParent})
		if err != nil || cfg.DefaultClusterVersion == "" || len(cfg.Channels) != 4 {
			t.Errorf("server config %v, %v", cfg, err)
		}
		if calls := s.Calls(); calls["CreateNodePool"] != 2 || calls["DeleteCluster"] != 1 {
			t.Errorf("calls %v", calls)
		}
	})
}

func TestErrorsHaveGooglesShapeOnBothClients(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, _ *Server, c *container.ClusterManagerClient) {
		ctx := t.Context()
		createCluster(t, c)
		create := func(p *containerpb.NodePool) error {
			_, err := c.CreateNodePool(ctx, &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: p})
			return err
		}
		get := func(name string) error {
			_, err := c.GetCluster(ctx, &containerpb.GetClusterRequest{Name: name})
			return err
		}
		_, unimplemented := c.SetLegacyAbac(ctx, &containerpb.SetLegacyAbacRequest{Name: testCluster, Enabled: true})
		_, again := c.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: testParent, Cluster: cluster("train")})
		for _, tc := range []struct {
			name string
			err  error
			code codes.Code
			http int
			text string
		}{
			{"no cluster", get(testParent + "/clusters/other"), codes.NotFound, 404, "Not found: projects/acme/zones/us-west4-a/clusters/other."},
			{"no location", get("projects/acme/locations/mars/clusters/x"), codes.PermissionDenied, 403, "Permission denied on 'locations/mars' (or it may not exist)."},
			{"twice", again, codes.AlreadyExists, 409, "Already exists: projects/acme/zones/us-west4-a/clusters/train."},
			{"pool twice", create(cluster("x").NodePools[0]), codes.AlreadyExists, 409, "Already exists: projects/acme/zones/us-west4-a/clusters/train/nodePools/system."},
			{"no request", create(nil), codes.InvalidArgument, 400, "Node pool is required."},
			{"unimplemented", unimplemented, codes.Unimplemented, 501, "method SetLegacyAbac not implemented"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				api := apiErrorOf(t, tc.err)
				var rest *googleapi.Error
				if errors.As(tc.err, &rest) {
					if rest.Code != tc.http {
						t.Errorf("HTTP status %d, want %d", rest.Code, tc.http)
					}
					if want := `"status": "` + statusName(tc.code) + `"`; !strings.Contains(rest.Body, want) {
						t.Errorf("body without %s: %s", want, rest.Body)
					}
				} else if code := api.GRPCStatus().Code(); code != tc.code {
					t.Errorf("code %s, want %s", code, tc.code)
				}
				if tc.code != codes.Unimplemented && api.Details().RequestInfo.GetRequestId() == "" {
					t.Error("no request id in the details")
				}
				if got := message(tc.err); got != tc.text {
					t.Errorf("message %q, want %q", got, tc.text)
				}
			})
		}
	})
}

func TestTheTokenIsNeededOnBothClients(t *testing.T) {
	_, addr := serve(t)
	for name, client := range faces {
		for token, reason := range map[string]string{"": "CREDENTIALS_MISSING", "wrong": "ACCESS_TOKEN_TYPE_UNSUPPORTED"} {
			t.Run(name+" "+reason, func(t *testing.T) {
				_, err := client(t, addr, token).ListClusters(t.Context(), &containerpb.ListClustersRequest{Parent: testParent})
				api := apiErrorOf(t, err)
				if api.Reason() != reason || api.HTTPCode() != 401 && api.GRPCStatus().Code() != codes.Unauthenticated {
					t.Errorf("%v: want 401 UNAUTHENTICATED with reason %s", err, reason)
				}
			})
		}
	}
}

func apiErrorOf(t *testing.T, err error) *apierror.APIError {
	t.Helper()
	var api *apierror.APIError
	if !errors.As(err, &api) {
		t.Fatalf("%v is no API error", err)
	}
	return api
}
