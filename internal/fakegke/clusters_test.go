package fakegke

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func TestWhatGKEFillsIn(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		c := api.Clusters()[0]
		p := c.NodePools[0]
		for what, ok := range map[string]bool{
			"endpoint":       c.Endpoint != "",
			"CA":             c.MasterAuth.GetClusterCaCertificate() != "",
			"self link":      c.SelfLink == "https://container.googleapis.com/v1/projects/acme/zones/us-west4-a/clusters/train",
			"id":             len(c.Id) == 64,
			"etag":           c.Etag != "",
			"create time":    c.CreateTime != "",
			"location":       c.Location == "us-west4-a" && c.Zone == "us-west4-a",
			"locations":      len(c.Locations) == 1,
			"network":        c.NetworkConfig.GetNetwork() == "projects/acme/global/networks/default",
			"subnetwork":     c.NetworkConfig.GetSubnetwork() == "projects/acme/regions/us-west4/subnetworks/default",
			"versions":       strings.HasPrefix(c.CurrentMasterVersion, "1.36.") && c.InitialClusterVersion == c.CurrentMasterVersion,
			"pods":           c.IpAllocationPolicy.GetUseIpAliases() && c.ClusterIpv4Cidr != "",
			"pool version":   p.Version == c.CurrentMasterVersion,
			"pool disk":      p.Config.DiskType == "pd-balanced" && p.Config.DiskSizeGb == 100,
			"pool scopes":    len(p.Config.OauthScopes) == 6,
			"pool account":   p.Config.ServiceAccount == "default",
			"pool image":     p.Config.ImageType == "COS_CONTAINERD",
			"pool repair":    p.Management.AutoRepair && p.Management.AutoUpgrade,
			"pool surge":     p.UpgradeSettings.MaxSurge == 1,
			"pool max pods":  p.MaxPodsConstraint.MaxPodsPerNode == 110 && p.PodIpv4CidrSize == 24,
			"pool groups":    len(p.InstanceGroupUrls) == 1,
			"pool locations": len(p.Locations) == 1,
			"pool self link": p.SelfLink == c.SelfLink+"/nodePools/system",
		} {
			if !ok {
				t.Errorf("%s is not filled in: %v", what, c)
			}
		}
	})
}

func TestClustersThatGKERefuses(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		for name, tc := range map[string]struct {
			parent string
			edit   func(c *containerpb.Cluster)
			want   string
		}{
			"name":        {testParent, func(c *containerpb.Cluster) { c.Name = "-x" }, `Invalid value for field "cluster.name": "-x".`},
			"no pools":    {testParent, func(c *containerpb.Cluster) { c.NodePools = nil }, "Cluster.initial_node_count must be greater than zero."},
			"both":        {testParent, func(c *containerpb.Cluster) { c.InitialNodeCount = 1 }, "Cluster.node_pools can't be set together"},
			"version":     {testParent, func(c *containerpb.Cluster) { c.InitialClusterVersion = "1.2" }, `Master version "1.2" is unsupported.`},
			"zone":        {testParent, func(c *containerpb.Cluster) { c.Locations = []string{"us-east5-a"} }, `Location "us-east5-a" is not a zone of region "us-west4".`},
			"a bad pool":  {testParent, func(c *containerpb.Cluster) { c.NodePools[0].Config.MachineType = "x" }, `Machine type with name "x" does not exist`},
			"same pools":  {testParent, func(c *containerpb.Cluster) { c.NodePools = append(c.NodePools, c.NodePools[0]) }, "Already exists: projects/acme/zones/us-west4-a/clusters/other/nodePools/system."},
			"a bad place": {"projects/acme", func(*containerpb.Cluster) {}, `Malformed name "projects/acme": want projects/*/locations/*.`},
		} {
			c := cluster("other")
			tc.edit(c)
			_, err := api.CreateCluster(context.Background(), &containerpb.CreateClusterRequest{Parent: tc.parent, Cluster: c})
			if !strings.HasPrefix(errorText(err), tc.want) {
				t.Errorf("%s: got %q\nwant %q", name, errorText(err), tc.want)
			}
		}
		if n := len(api.Clusters()); n != 1 {
			t.Errorf("a refused cluster was kept: %d", n)
		}
	})
}

func TestUpdatesOfACluster(t *testing.T) {
	for name, tc := range map[string]struct {
		update *containerpb.ClusterUpdate
		code   codes.Code
		want   string
		check  func(c *containerpb.Cluster) bool
	}{
		"a field of the same name": {update: &containerpb.ClusterUpdate{DesiredWorkloadIdentityConfig: &containerpb.WorkloadIdentityConfig{WorkloadPool: "acme.svc.id.goog"}},
			check: func(c *containerpb.Cluster) bool {
				return c.WorkloadIdentityConfig.GetWorkloadPool() == "acme.svc.id.goog"
			}},
		"an addon": {update: &containerpb.ClusterUpdate{DesiredAddonsConfig: &containerpb.AddonsConfig{GcsFuseCsiDriverConfig: &containerpb.GcsFuseCsiDriverConfig{Enabled: true}}},
			check: func(c *containerpb.Cluster) bool {
				return c.AddonsConfig.GcsFuseCsiDriverConfig.GetEnabled() && c.AddonsConfig.GcePersistentDiskCsiDriverConfig.GetEnabled()
			}},
		"private nodes": {update: &containerpb.ClusterUpdate{DesiredDefaultEnablePrivateNodes: proto.Bool(true)},
			check: func(c *containerpb.Cluster) bool { return c.NetworkConfig.GetDefaultEnablePrivateNodes() }},
		"the same version": {update: &containerpb.ClusterUpdate{DesiredMasterVersion: "1.36"},
			check: func(c *containerpb.Cluster) bool { return strings.HasPrefix(c.CurrentMasterVersion, "1.36.") }},
		"an older version": {update: &containerpb.ClusterUpdate{DesiredMasterVersion: "1.35"}, code: codes.InvalidArgument, want: "Master cannot be downgraded from 1.36.2-gke.1098000 to 1.35.5-gke.1241000."},
		"nothing":          {code: codes.InvalidArgument, want: "Must specify a field to update."},
		"etag":             {update: &containerpb.ClusterUpdate{Etag: "old"}, code: codes.Aborted, want: "The etag old does not match the cluster's current etag."},
		"something else":   {update: &containerpb.ClusterUpdate{DesiredImage: "x"}, code: codes.Unimplemented, want: "Updating desired_image is not implemented."},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				before := api.Clusters()[0]
				_, err := api.UpdateCluster(context.Background(), &containerpb.UpdateClusterRequest{Name: testCluster, Update: tc.update})
				if tc.want != "" {
					wantError(t, err, tc.code, tc.want)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if c := api.Clusters()[0]; c.Status != containerpb.Cluster_RECONCILING {
					t.Errorf("while it updates the cluster is %s", c.Status)
				}
				pass(10 * time.Minute)
				if c := api.Clusters()[0]; !tc.check(c) || c.Status != containerpb.Cluster_RUNNING || c.Etag == before.Etag || c.Endpoint != before.Endpoint {
					t.Errorf("after the update: %v", c)
				}
			})
		})
	}
}

// Many callers at once: nothing is lost, and the race detector sees no race.
func TestManyPoolsAtOnceOnBothClients(t *testing.T) {
	const n = 40
	onBoth(t, []Option{WithOperationQuota(n), WithTimeScale(0.0001)}, func(t *testing.T, s *Server, c *container.ClusterManagerClient) {
		createCluster(t, c)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := c.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: testCluster, NodePool: slicePool(fmt.Sprintf("p%d", i))}); err != nil {
					t.Error(err)
				}
				if _, err := c.ListNodePools(t.Context(), &containerpb.ListNodePoolsRequest{Parent: testCluster}); err != nil {
					t.Error(err)
				}
				s.Nodes(testCluster)
			})
		}
		wg.Wait()
		for _, op := range s.Operations() {
			succeed(t, c, op, nil)
		}
		if got := len(s.NodePools(testCluster)) - 1; got != n {
			t.Errorf("%d pools, want %d", got, n)
		}
		if got := len(s.Nodes(testCluster)); got != 1+4*n {
			t.Errorf("%d nodes, want %d", got, 1+4*n)
		}
	})
}
