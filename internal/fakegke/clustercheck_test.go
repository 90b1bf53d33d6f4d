package fakegke

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestSettingsThatANewClusterCannotHave(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(c *containerpb.Cluster)
		want string
	}{
		"a private endpoint alone": {func(c *containerpb.Cluster) {
			c.PrivateClusterConfig = &containerpb.PrivateClusterConfig{EnablePrivateNodes: true, EnablePrivateEndpoint: true}
		}, "Master authorized networks must be enabled if private endpoint is enabled."},
		"a public network for a private endpoint": {func(c *containerpb.Cluster) {
			c.PrivateClusterConfig = &containerpb.PrivateClusterConfig{EnablePrivateEndpoint: true}
			c.MasterAuthorizedNetworksConfig = &containerpb.MasterAuthorizedNetworksConfig{Enabled: true, CidrBlocks: []*containerpb.MasterAuthorizedNetworksConfig_CidrBlock{{CidrBlock: "0.0.0.0/0"}}}
		}, `Invalid master authorized networks: network "0.0.0.0/0" is not a reserved network, which is required for private endpoints`},
		"two places for the private endpoint": {func(c *containerpb.Cluster) {
			c.PrivateClusterConfig = &containerpb.PrivateClusterConfig{MasterIpv4CidrBlock: "172.16.0.0/28", PrivateEndpointSubnetwork: "s"}
		}, "When masterIpv4Cidr is set, privateEndpointSubnetwork must be unset."},
		"a range of the wrong size": {func(c *containerpb.Cluster) {
			c.PrivateClusterConfig = &containerpb.PrivateClusterConfig{MasterIpv4CidrBlock: "172.16.0.0/24"}
		}, `Invalid master_ipv4_cidr_block "172.16.0.0/24": it must be a /28 range.`},
		"a network policy on Dataplane V2": {func(c *containerpb.Cluster) {
			c.NetworkConfig = &containerpb.NetworkConfig{DatapathProvider: containerpb.DatapathProvider_ADVANCED_DATAPATH}
			c.NetworkPolicy = &containerpb.NetworkPolicy{Enabled: true}
		}, "Enabling NetworkPolicy for clusters with DatapathProvider=ADVANCED_DATAPATH is not allowed."},
		"multi-networking without Dataplane V2": {func(c *containerpb.Cluster) {
			c.NetworkConfig = &containerpb.NetworkConfig{EnableMultiNetworking: true}
		}, "Multi-networking needs DatapathProvider=ADVANCED_DATAPATH."},
		"limits without auto-provisioning": {func(c *containerpb.Cluster) {
			c.Autoscaling = &containerpb.ClusterAutoscaling{ResourceLimits: []*containerpb.ResourceLimit{{ResourceType: "cpu", Maximum: 1}}}
		}, "Resource limits can be specified only when node autoprovisioning is enabled."},
		"auto-provisioning elsewhere": {func(c *containerpb.Cluster) {
			c.Autoscaling = &containerpb.ClusterAutoscaling{AutoprovisioningLocations: []string{"us-east5-a"}}
		}, `Location "us-east5-a" is not a zone of region "us-west4".`},
		"a label's key": {func(c *containerpb.Cluster) { c.ResourceLabels = map[string]string{"Team": "x"} },
			`Invalid value for field "cluster.resource_labels": key "Team". Keys must start with a lowercase letter and contain at most 63 lowercase letters, numbers, underscores and hyphens.`},
		"a label's value": {func(c *containerpb.Cluster) { c.ResourceLabels = map[string]string{"team": "a b"} },
			`Invalid value for field "cluster.resource_labels": value "a b" of "team". Values contain at most 63 lowercase letters, numbers, underscores and hyphens.`},
		"a key of 64 characters": {func(c *containerpb.Cluster) { c.ResourceLabels = map[string]string{strings.Repeat("é", 64): ""} },
			`Invalid value for field "cluster.resource_labels": key "` + strings.Repeat("é", 64) + `". Keys must start with a lowercase letter and contain at most 63 lowercase letters, numbers, underscores and hyphens.`},
		"a value of 64 characters": {func(c *containerpb.Cluster) {
			c.ResourceLabels = map[string]string{strings.Repeat("é", 63): strings.Repeat("é", 64)}
		}, `Invalid value for field "cluster.resource_labels": value "` + strings.Repeat("é", 64) + `" of "` + strings.Repeat("é", 63) + `". Values contain at most 63 lowercase letters, numbers, underscores and hyphens.`},
		"too many labels": {func(c *containerpb.Cluster) {
			c.ResourceLabels = map[string]string{}
			for i := range 65 {
				c.ResourceLabels[fmt.Sprint("l", i)] = ""
			}
		}, "Resource has 65 labels, the limit is 64."},
		"a zonal Autopilot cluster": {func(c *containerpb.Cluster) {
			c.Autopilot, c.NodePools = &containerpb.Autopilot{Enabled: true}, nil
		}, "Autopilot clusters must be regional clusters."},
		"an Autopilot cluster with pools": {func(c *containerpb.Cluster) { c.Autopilot = &containerpb.Autopilot{Enabled: true} },
			"Node pools cannot be specified for Autopilot clusters."},
		"another channel's version": {func(c *containerpb.Cluster) { c.InitialClusterVersion = "1.33" },
			`Master version must be one of "RAPID" channel supported versions [1.36.2-gke.1098000, 1.36.1-gke.1412000, 1.35.5-gke.1241000].`},
		"nodes newer than the control plane": {func(c *containerpb.Cluster) { c.InitialClusterVersion, c.NodePools[0].Version = "1.35", "1.36" },
			`Node version "1.36.2-gke.1098000" must not have a greater minor version than master version "1.35.5-gke.1241000".`},
		"nodes too old": {func(c *containerpb.Cluster) { c.NodePools[0].Version = "1.33" },
			`Node version "1.33.9-gke.1072000" is too old for master version "1.36.2-gke.1098000": nodes can be at most 2 minor versions older.`},
		"no version of nodes": {func(c *containerpb.Cluster) { c.NodePools[0].Version = "1.2" }, `Node version "1.2" is unsupported.`},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				_, err := api.create(t, tc.edit)
				wantError(t, err, codes.InvalidArgument, tc.want)
			})
		})
	}
}

func TestARegionalPrivateCluster(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		c := cluster("regional")
		c.PrivateClusterConfig = &containerpb.PrivateClusterConfig{EnablePrivateNodes: true, EnablePrivateEndpoint: true, MasterGlobalAccessConfig: &containerpb.PrivateClusterMasterGlobalAccessConfig{Enabled: true}}
		c.MasterAuthorizedNetworksConfig = &containerpb.MasterAuthorizedNetworksConfig{Enabled: true}
		c.NetworkConfig = &containerpb.NetworkConfig{DatapathProvider: containerpb.DatapathProvider_ADVANCED_DATAPATH}
		must[*containerpb.Operation](t)(api.CreateCluster(context.Background(), &containerpb.CreateClusterRequest{Parent: "projects/acme/locations/us-west4", Cluster: c}))
		pass(6 * time.Minute)
		c = must[*containerpb.Cluster](t)(api.GetCluster(context.Background(), &containerpb.GetClusterRequest{Name: "projects/acme/locations/us-west4/clusters/regional"}))
		ips := c.ControlPlaneEndpointsConfig.IpEndpointsConfig
		if ips.GetEnablePublicEndpoint() || !ips.GetGlobalAccess() || ips.PublicEndpoint != "" || ips.PrivateEndpoint != c.Endpoint || !ips.AuthorizedNetworksConfig.GetEnabled() || ips.AuthorizedNetworksConfig.GetGcpPublicCidrsAccessEnabled() {
			t.Errorf("endpoints %v", ips)
		}
		if len(c.Locations) != 3 || c.CurrentNodeCount != 3 || !c.NetworkConfig.GetDefaultEnablePrivateNodes() || c.NetworkConfig.DatapathProvider != containerpb.DatapathProvider_ADVANCED_DATAPATH {
			t.Errorf("%d zones, %d nodes, network %v", len(c.Locations), c.CurrentNodeCount, c.NetworkConfig)
		}
	})
}

// A default pool that goes leaves a cluster without nodes, which can be filled
// again.
func TestTheDefaultPoolCanBeRemoved(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		c := must[*containerpb.Cluster](t)(api.create(t, func(c *containerpb.Cluster) {
			c.NodePools, c.InitialNodeCount, c.NodeConfig = nil, 1, &containerpb.NodeConfig{MachineType: "e2-standard-4"}
		}))
		if len(c.NodePools) != 1 || c.NodePools[0].Name != "default-pool" {
			t.Fatalf("pools %v", c.NodePools)
		}
		path := testParent + "/clusters/other"
		must[*containerpb.Operation](t)(api.DeleteNodePool(context.Background(), &containerpb.DeleteNodePoolRequest{Name: path + "/nodePools/default-pool"}))
		pass(3 * time.Minute)
		c = must[*containerpb.Cluster](t)(api.GetCluster(context.Background(), &containerpb.GetClusterRequest{Name: path}))
		if len(c.NodePools) != 0 || c.CurrentNodeCount != 0 || c.Status != containerpb.Cluster_RUNNING || c.CurrentNodeVersion != c.CurrentMasterVersion {
			t.Errorf("without pools: %v", c)
		}
		must[*containerpb.Operation](t)(api.CreateNodePool(context.Background(), &containerpb.CreateNodePoolRequest{Parent: path, NodePool: slicePool("v5e")}))
	})
}

func TestAutopilotKeepsItsNodePools(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		c := &containerpb.Cluster{Name: "auto", Autopilot: &containerpb.Autopilot{Enabled: true}}
		must[*containerpb.Operation](t)(api.CreateCluster(context.Background(), &containerpb.CreateClusterRequest{Parent: "projects/acme/locations/us-west4", Cluster: c}))
		pass(6 * time.Minute)
		_, err := api.CreateNodePool(context.Background(), &containerpb.CreateNodePoolRequest{Parent: "projects/acme/locations/us-west4/clusters/auto", NodePool: slicePool("v5e")})
		wantError(t, err, codes.InvalidArgument, "Autopilot node pools cannot be accessed or modified.")
	})
}

func TestDeletingAClusterExcludesAndIsExcluded(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		remove := func() error {
			_, err := api.DeleteCluster(ctx, &containerpb.DeleteClusterRequest{Name: testCluster})
			return err
		}
		must[*containerpb.Operation](t)(api.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{Name: testCluster, Update: &containerpb.ClusterUpdate{DesiredShieldedNodes: &containerpb.ShieldedNodes{}}}))
		wantError(t, remove(), codes.FailedPrecondition, "Cluster is running incompatible operation operation-X.")
		pass(2 * time.Minute)
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		wantError(t, remove(), codes.FailedPrecondition, "Cluster is running incompatible operation operation-X.")
		pass(4 * time.Minute)
		wantError(t, remove(), codes.NotFound, "Not found: projects/acme/zones/us-west4-a/clusters/train.")
	})
}

func TestALocationThatDoesNotAnswerIsMissingFromLists(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		api.SetMissingZones("us-west4-a")
		all := must[*containerpb.ListClustersResponse](t)(api.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/acme/locations/-"}))
		ops := must[*containerpb.ListOperationsResponse](t)(api.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: "projects/acme/locations/-"}))
		if len(all.Clusters) != 0 || fmt.Sprint(all.MissingZones) != "[us-west4-a]" || len(ops.Operations) != 0 || len(ops.MissingZones) != 1 {
			t.Errorf("%v, %v", all, ops)
		}
		one := must[*containerpb.ListClustersResponse](t)(api.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: testParent}))
		if len(one.Clusters) != 1 || one.MissingZones != nil {
			t.Errorf("the zone itself: %v", one)
		}
		api.SetMissingZones()
		all = must[*containerpb.ListClustersResponse](t)(api.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/acme/locations/-"}))
		if len(all.Clusters) != 1 || all.MissingZones != nil {
			t.Errorf("afterwards: %v", all)
		}
	})
}

// exclusion lasts some days from the first of December 2026.
func exclusion(days int, scope containerpb.MaintenanceExclusionOptions_Scope) *containerpb.TimeWindow {
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	return &containerpb.TimeWindow{StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.AddDate(0, 0, days)),
		Options: &containerpb.TimeWindow_MaintenanceExclusionOptions{MaintenanceExclusionOptions: &containerpb.MaintenanceExclusionOptions{Scope: scope}}}
}

func recurring(rule string, length time.Duration) *containerpb.MaintenanceWindow {
	start := time.Date(2026, 12, 5, 3, 0, 0, 0, time.UTC)
	return &containerpb.MaintenanceWindow{Policy: &containerpb.MaintenanceWindow_RecurringWindow{RecurringWindow: &containerpb.RecurringTimeWindow{
		Window: &containerpb.TimeWindow{StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.Add(length))}, Recurrence: rule,
	}}}
}

func TestMaintenancePolicies(t *testing.T) {
	full, minor := containerpb.MaintenanceExclusionOptions_NO_UPGRADES, containerpb.MaintenanceExclusionOptions_NO_MINOR_UPGRADES
	exclusions := func(n, days int, scope containerpb.MaintenanceExclusionOptions_Scope) *containerpb.MaintenanceWindow {
		w := &containerpb.MaintenanceWindow{MaintenanceExclusions: map[string]*containerpb.TimeWindow{}}
		for i := range n {
			w.MaintenanceExclusions[fmt.Sprint("e", i)] = exclusion(days, scope)
		}
		return w
	}
	untilEnd := exclusion(1, minor)
	untilEnd.EndTime = nil
	untilEnd.GetMaintenanceExclusionOptions().EndTimeBehavior = containerpb.MaintenanceExclusionOptions_UNTIL_END_OF_SUPPORT
	rare := "maintenance policy would go longer than 32d without 48h maintenance availability"
	for name, tc := range map[string]struct {
		window *containerpb.MaintenanceWindow
		want   string
	}{
		"none":  {},
		"daily": {window: &containerpb.MaintenanceWindow{Policy: &containerpb.MaintenanceWindow_DailyMaintenanceWindow{DailyMaintenanceWindow: &containerpb.DailyMaintenanceWindow{StartTime: "03:00"}}}},
		"daily at no time": {&containerpb.MaintenanceWindow{Policy: &containerpb.MaintenanceWindow_DailyMaintenanceWindow{DailyMaintenanceWindow: &containerpb.DailyMaintenanceWindow{StartTime: "24:00"}}},
			`Invalid maintenance window start time "24:00": want HH:MM in UTC.`},
		"weekends":              {window: recurring("FREQ=WEEKLY;BYDAY=SA,SU", 8*time.Hour)},
		"every day":             {window: recurring("FREQ=DAILY", 4*time.Hour)},
		"once a week":           {recurring("FREQ=WEEKLY;BYDAY=SA", 8*time.Hour), rare},
		"once a month":          {recurring("FREQ=MONTHLY;BYDAY=1SA", 24*time.Hour), rare},
		"too short":             {recurring("FREQ=DAILY", 3*time.Hour), rare},
		"too long":              {recurring("FREQ=DAILY", 25*time.Hour), "The maintenance window must not be longer than 24 hours."},
		"backwards":             {recurring("FREQ=DAILY", -time.Hour), "The end time of the maintenance window must be after its start time."},
		"no rule":               {recurring("every day", 8*time.Hour), `Invalid recurrence "every day": want an RRULE of RFC 5545 with FREQ=DAILY, WEEKLY or MONTHLY.`},
		"no day":                {recurring("FREQ=WEEKLY;BYDAY=XX", 8*time.Hour), `Invalid recurrence "FREQ=WEEKLY;BYDAY=XX": want an RRULE of RFC 5545 with FREQ=DAILY, WEEKLY or MONTHLY.`},
		"three full exclusions": {window: exclusions(3, 30, full)},
		"four full exclusions":  {exclusions(4, 30, full), "Cluster has 4 maintenance exclusions of scope NO_UPGRADES, the limit is 3."},
		"a long full exclusion": {exclusions(1, 31, full), `Maintenance exclusion "e0" of scope NO_UPGRADES is longer than 30 days.`},
		"twenty exclusions":     {window: exclusions(20, 200, minor)},
		"too many exclusions":   {exclusions(21, 1, minor), "Cluster has 21 maintenance exclusions, the limit is 20."},
		"a backward exclusion":  {exclusions(1, -1, minor), `The end time of maintenance exclusion "e0" must be after its start time.`},
		"until the end":         {window: &containerpb.MaintenanceWindow{MaintenanceExclusions: map[string]*containerpb.TimeWindow{"e": untilEnd}}},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				ctx := context.Background()
				have := api.Clusters()[0].MaintenancePolicy.ResourceVersion
				set := func(version string, w *containerpb.MaintenanceWindow) error {
					_, err := api.SetMaintenancePolicy(ctx, &containerpb.SetMaintenancePolicyRequest{Name: testCluster, MaintenancePolicy: &containerpb.MaintenancePolicy{ResourceVersion: version, Window: w}})
					pass(2 * time.Minute)
					return err
				}
				err := set(have, proto.CloneOf(tc.window))
				if tc.want != "" {
					wantError(t, err, codes.InvalidArgument, tc.want)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				now := api.Clusters()[0].MaintenancePolicy
				if tc.window != nil && now.ResourceVersion == have {
					t.Error("the resource version stays")
				}
				wantError(t, set("old", nil), codes.FailedPrecondition,
					`Maintenance policy could not be set due to resource version mismatch; try again with the proper resource version: the one supplied was "old", the expected one is "`+now.ResourceVersion+`".`)
				if err := set(now.ResourceVersion, nil); err != nil || api.Clusters()[0].MaintenancePolicy.Window != nil {
					t.Errorf("taking the policy away: %v, %v", err, api.Clusters()[0].MaintenancePolicy)
				}
			})
		})
	}
	inTime(t, func(t *testing.T, api *service) {
		_, err := api.create(t, func(c *containerpb.Cluster) {
			c.ReleaseChannel = &containerpb.ReleaseChannel{}
			c.MaintenancePolicy = &containerpb.MaintenancePolicy{Window: exclusions(1, 1, minor)}
		})
		wantError(t, err, codes.InvalidArgument, `Maintenance exclusion "e0" of scope NO_MINOR_UPGRADES needs a release channel.`)
	})
}
