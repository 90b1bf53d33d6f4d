package fakegke

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// changed updates the test cluster, and waits.
func (s *service) changed(t *testing.T, u *containerpb.ClusterUpdate) *containerpb.Cluster {
	t.Helper()
	must[*containerpb.Operation](t)(s.UpdateCluster(context.Background(), &containerpb.UpdateClusterRequest{Name: testCluster, Update: u}))
	pass(10 * time.Minute)
	return s.Clusters()[0]
}

// unsupported are the fields of an update that the fake refuses on a Standard
// cluster on purpose; every other field must take effect.
var unsupported = map[protoreflect.Name]string{
	"desired_emulated_version":                 "is not implemented",
	"desired_image":                            "is not implemented",
	"desired_image_project":                    "is not implemented",
	"desired_privileged_admission_config":      "is not implemented", // a cluster does not show it
	"desired_autopilot_workload_policy_config": "can be set only for Autopilot clusters",
	"desired_autopilot_cluster_policy_config":  "can be set only for Autopilot clusters",
}

// Whatever field a client sends, it changes the cluster or is refused in words:
// no update is accepted and then forgotten.
func TestEveryFieldOfAnUpdateIsAppliedOrRefused(t *testing.T) {
	fields := (&containerpb.ClusterUpdate{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Name() == "etag" || f.Name() == "desired_node_pool_id" || updatedTogether[f.Name()] != "" && unsupported[f.Name()] == "" {
			continue
		}
		t.Run(string(f.Name()), func(t *testing.T) {
			u := &containerpb.ClusterUpdate{}
			m := u.ProtoReflect()
			switch {
			case f.IsList():
				m.Mutable(f).List().Append(protoreflect.ValueOfString("us-west4-a"))
			case f.Kind() == protoreflect.MessageKind:
				fillIn(m.Mutable(f).Message(), 2)
			case f.Kind() == protoreflect.EnumKind:
				m.Set(f, protoreflect.ValueOfEnum(1))
			case f.Kind() == protoreflect.BoolKind:
				m.Set(f, protoreflect.ValueOfBool(true))
			default:
				m.Set(f, protoreflect.ValueOfString("1.36"))
			}
			c := &containerpb.Cluster{CurrentMasterVersion: "1.35.5-gke.1241000", Location: "us-west4-a", NetworkConfig: &containerpb.NetworkConfig{DatapathProvider: 1}}
			settle(c)
			ensure(&c.IpAllocationPolicy)
			if f.Name() == "removed_additional_pod_ranges_config" {
				c.IpAllocationPolicy.AdditionalPodRangesConfig = &containerpb.AdditionalPodRangesConfig{PodRangeNames: []string{"x"}}
			}
			before := proto.CloneOf(c)
			err := updateCluster(c, u)
			switch want := unsupported[f.Name()]; {
			case want != "":
				if !strings.Contains(errorText(err), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			case err != nil:
				t.Error(err)
			case proto.Equal(before, c) && f.Name() != "desired_datapath_provider":
				t.Errorf("%v changed nothing", u)
			}
		})
	}
}

// fillIn sets every field of m to something.
func fillIn(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			m.Mutable(f).List().Append(protoreflect.ValueOfString("x"))
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			m.Mutable(f).List().AppendMutable()
		case f.IsList():
		case f.Kind() == protoreflect.MessageKind && depth > 0:
			fillIn(m.Mutable(f).Message(), depth-1)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString("x"))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		}
	}
}

func TestAnUpdateMakesOneChange(t *testing.T) {
	for name, tc := range map[string]struct {
		update *containerpb.ClusterUpdate
		want   string
	}{
		"nothing": {&containerpb.ClusterUpdate{}, "Must specify a field to update."},
		"two": {&containerpb.ClusterUpdate{DesiredShieldedNodes: &containerpb.ShieldedNodes{}, DesiredMasterVersion: "1.36"},
			"Exactly one update can be applied to a cluster with each request, got 2."},
		"a version and a channel": {&containerpb.ClusterUpdate{DesiredReleaseChannel: &containerpb.ReleaseChannel{}, DesiredMasterVersion: "1.36"},
			"Exactly one update can be applied to a cluster with each request, got 2."},
		"nodes and the cluster": {&containerpb.ClusterUpdate{DesiredNodeVersion: "1.36", DesiredShieldedNodes: &containerpb.ShieldedNodes{}},
			"Exactly one update can be applied to a cluster with each request, got 2."},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				_, err := api.UpdateCluster(context.Background(), &containerpb.UpdateClusterRequest{Name: testCluster, Update: tc.update})
				wantError(t, err, codes.InvalidArgument, tc.want)
			})
		})
	}
}

func TestUpdatesThatGKERefuses(t *testing.T) {
	private := &containerpb.ControlPlaneEndpointsConfig{IpEndpointsConfig: &containerpb.ControlPlaneEndpointsConfig_IPEndpointsConfig{EnablePublicEndpoint: proto.Bool(false)}}
	for name, tc := range map[string]struct {
		update *containerpb.ClusterUpdate
		want   string
	}{
		"private endpoint without authorized networks": {&containerpb.ClusterUpdate{DesiredControlPlaneEndpointsConfig: private}, "Master authorized networks must be enabled if private endpoint is enabled."},
		"no endpoint at all": {&containerpb.ClusterUpdate{DesiredControlPlaneEndpointsConfig: &containerpb.ControlPlaneEndpointsConfig{
			IpEndpointsConfig: &containerpb.ControlPlaneEndpointsConfig_IPEndpointsConfig{Enabled: proto.Bool(false)}}},
			"The IP-based endpoints can be disabled only if the DNS-based endpoint allows external traffic."},
		"networks that are off": {&containerpb.ClusterUpdate{DesiredMasterAuthorizedNetworksConfig: &containerpb.MasterAuthorizedNetworksConfig{
			CidrBlocks: []*containerpb.MasterAuthorizedNetworksConfig_CidrBlock{{CidrBlock: "10.0.0.0/8"}}}},
			"Master authorized networks must be enabled to specify CIDR blocks."},
		"no network": {&containerpb.ClusterUpdate{DesiredMasterAuthorizedNetworksConfig: &containerpb.MasterAuthorizedNetworksConfig{
			Enabled: true, CidrBlocks: []*containerpb.MasterAuthorizedNetworksConfig_CidrBlock{{CidrBlock: "10.0.0.1/8"}}}},
			`Invalid master authorized networks: network "10.0.0.1/8" is not a CIDR block.`},
		"auto-provisioning without limits": {&containerpb.ClusterUpdate{DesiredClusterAutoscaling: &containerpb.ClusterAutoscaling{
			EnableNodeAutoprovisioning: true, ResourceLimits: []*containerpb.ResourceLimit{{ResourceType: "tpu-v5-lite-podslice", Maximum: 64}}}},
			"Resource limits for cpu, memory must be specified when enabling node autoprovisioning."},
		"limits that cross": {&containerpb.ClusterUpdate{DesiredClusterAutoscaling: &containerpb.ClusterAutoscaling{
			EnableNodeAutoprovisioning: true, ResourceLimits: []*containerpb.ResourceLimit{{ResourceType: "cpu", Minimum: 2, Maximum: 1}}}},
			"Resource limit for cpu is invalid: minimum 2, maximum 1."},
		"a foreign workload pool": {&containerpb.ClusterUpdate{DesiredWorkloadIdentityConfig: &containerpb.WorkloadIdentityConfig{WorkloadPool: "other.svc.id.goog"}},
			`Currently, the only supported Workload Pool is "acme.svc.id.goog", got "other.svc.id.goog".`},
		"Dataplane V2": {&containerpb.ClusterUpdate{DesiredDatapathProvider: containerpb.DatapathProvider_ADVANCED_DATAPATH},
			"Updating the datapath provider of a cluster is not supported: it is LEGACY_DATAPATH."},
		"workload logs alone": {&containerpb.ClusterUpdate{DesiredLoggingConfig: &containerpb.LoggingConfig{ComponentConfig: &containerpb.LoggingComponentConfig{
			EnableComponents: []containerpb.LoggingComponentConfig_Component{containerpb.LoggingComponentConfig_WORKLOADS}}}},
			"SYSTEM_COMPONENTS must be enabled when other logging components are enabled."},
		"a logging service of yore": {&containerpb.ClusterUpdate{DesiredLoggingService: "logging.googleapis.com"},
			`Logging service "logging.googleapis.com" is not supported, it must be "logging.googleapis.com/kubernetes" or "none".`},
		"zones elsewhere":       {&containerpb.ClusterUpdate{DesiredLocations: []string{"us-west4-a", "us-east5-a"}}, `Location "us-east5-a" is not a zone of region "us-west4".`},
		"without its own zone":  {&containerpb.ClusterUpdate{DesiredLocations: []string{"us-west4-b"}}, `Locations must contain the cluster's zone "us-west4-a".`},
		"VPC scope without DNS": {&containerpb.ClusterUpdate{DesiredDnsConfig: &containerpb.DNSConfig{ClusterDnsScope: containerpb.DNSConfig_VPC_SCOPE}}, "VPC scope needs Cloud DNS as the cluster's DNS provider."},
		"unknown version":       {&containerpb.ClusterUpdate{DesiredMasterVersion: "1.99"}, `Master version "1.99" is unsupported.`},
		"another channel's version": {&containerpb.ClusterUpdate{DesiredMasterVersion: "1.34"},
			`Master version must be one of "RAPID" channel supported versions [1.36.2-gke.1098000, 1.36.1-gke.1412000, 1.35.5-gke.1241000].`},
		"no pool of this name": {&containerpb.ClusterUpdate{DesiredNodeVersion: "1.36", DesiredNodePoolId: "none"}, "Not found: projects/acme/zones/us-west4-a/clusters/train/nodePools/none."},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, api *service) {
				_, err := api.UpdateCluster(context.Background(), &containerpb.UpdateClusterRequest{Name: testCluster, Update: tc.update})
				if errorText(err) != tc.want {
					t.Errorf("got %q\nwant %q", errorText(err), tc.want)
				}
				if c := api.Clusters()[0]; c.Status != containerpb.Cluster_RUNNING {
					t.Errorf("after a refusal the cluster is %s", c.Status)
				}
			})
		})
	}
}

func TestTheOlderSpellingsFollow(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		host := api.Clusters()[0].Endpoint
		c := api.changed(t, &containerpb.ClusterUpdate{DesiredMasterAuthorizedNetworksConfig: &containerpb.MasterAuthorizedNetworksConfig{
			Enabled: true, CidrBlocks: []*containerpb.MasterAuthorizedNetworksConfig_CidrBlock{{CidrBlock: "10.0.0.0/8"}},
		}})
		if n := c.ControlPlaneEndpointsConfig.IpEndpointsConfig.AuthorizedNetworksConfig; !n.Enabled || !n.GetGcpPublicCidrsAccessEnabled() || !proto.Equal(n, c.MasterAuthorizedNetworksConfig) {
			t.Errorf("authorized networks: %v and %v", n, c.MasterAuthorizedNetworksConfig)
		}
		if p := c.PrivateClusterConfig; p.EnablePrivateEndpoint || p.PublicEndpoint != host || p.PrivateEndpoint == host {
			t.Errorf("with a public endpoint: %v", p)
		}
		c = api.changed(t, &containerpb.ClusterUpdate{DesiredEnablePrivateEndpoint: proto.Bool(true)})
		if p := c.PrivateClusterConfig; !p.EnablePrivateEndpoint || p.PublicEndpoint != "" || p.PrivateEndpoint != host || c.Endpoint != host {
			t.Errorf("with a private endpoint: %v, endpoint %s", p, c.Endpoint)
		}
		c = api.changed(t, &containerpb.ClusterUpdate{DesiredDefaultEnablePrivateNodes: proto.Bool(true)})
		if !c.PrivateClusterConfig.EnablePrivateNodes {
			t.Errorf("with private nodes: %v", c.PrivateClusterConfig)
		}
		c = api.changed(t, &containerpb.ClusterUpdate{DesiredControlPlaneEndpointsConfig: &containerpb.ControlPlaneEndpointsConfig{
			DnsEndpointConfig: &containerpb.ControlPlaneEndpointsConfig_DNSEndpointConfig{AllowExternalTraffic: proto.Bool(true)},
		}})
		if e := c.ControlPlaneEndpointsConfig; !e.DnsEndpointConfig.GetAllowExternalTraffic() || e.DnsEndpointConfig.Endpoint == "" || !e.IpEndpointsConfig.GetEnabled() {
			t.Errorf("after a change of the DNS endpoint: %v", e)
		}
		c = api.changed(t, &containerpb.ClusterUpdate{DesiredLoggingService: "none", DesiredMonitoringService: "none"})
		if len(c.LoggingConfig.ComponentConfig.EnableComponents) != 0 || len(c.MonitoringConfig.ComponentConfig.EnableComponents) != 0 || !c.MonitoringConfig.ManagedPrometheusConfig.Enabled {
			t.Errorf("without services: %v, %v", c.LoggingConfig, c.MonitoringConfig)
		}
		c = api.changed(t, &containerpb.ClusterUpdate{DesiredMonitoringConfig: &containerpb.MonitoringConfig{ManagedPrometheusConfig: &containerpb.ManagedPrometheusConfig{}}})
		if c.MonitoringConfig.ManagedPrometheusConfig.Enabled || c.MonitoringService != "none" {
			t.Errorf("without Prometheus: %v", c.MonitoringConfig)
		}
	})
}

func TestTheOlderMethods(t *testing.T) {
	ctx := context.Background()
	inTime(t, func(t *testing.T, api *service) {
		for _, tc := range []struct {
			name   string
			change func() (*containerpb.Operation, error)
			typ    opType
			done   func(c *containerpb.Cluster) bool
		}{
			{"SetLocations", func() (*containerpb.Operation, error) {
				return api.SetLocations(ctx, &containerpb.SetLocationsRequest{Name: testCluster, Locations: []string{"us-west4-b", "us-west4-a"}})
			}, containerpb.Operation_UPDATE_CLUSTER, func(c *containerpb.Cluster) bool { return len(c.Locations) == 2 && c.Locations[0] == "us-west4-a" }},
			{"SetAddonsConfig", func() (*containerpb.Operation, error) {
				return api.SetAddonsConfig(ctx, &containerpb.SetAddonsConfigRequest{Name: testCluster, AddonsConfig: &containerpb.AddonsConfig{RayOperatorConfig: &containerpb.RayOperatorConfig{Enabled: true}}})
			}, containerpb.Operation_UPDATE_CLUSTER, func(c *containerpb.Cluster) bool { return c.AddonsConfig.RayOperatorConfig.GetEnabled() }},
			{"SetLoggingService", func() (*containerpb.Operation, error) {
				return api.SetLoggingService(ctx, &containerpb.SetLoggingServiceRequest{Name: testCluster, LoggingService: "none"})
			}, containerpb.Operation_UPDATE_CLUSTER, func(c *containerpb.Cluster) bool { return c.LoggingService == "none" }},
			{"SetMonitoringService", func() (*containerpb.Operation, error) {
				return api.SetMonitoringService(ctx, &containerpb.SetMonitoringServiceRequest{Name: testCluster, MonitoringService: "none"})
			}, containerpb.Operation_UPDATE_CLUSTER, func(c *containerpb.Cluster) bool { return c.MonitoringService == "none" }},
			{"SetNetworkPolicy", func() (*containerpb.Operation, error) {
				return api.SetNetworkPolicy(ctx, &containerpb.SetNetworkPolicyRequest{Name: testCluster, NetworkPolicy: &containerpb.NetworkPolicy{Enabled: true, Provider: containerpb.NetworkPolicy_CALICO}})
			}, containerpb.Operation_UPDATE_CLUSTER, func(c *containerpb.Cluster) bool { return c.NetworkPolicy.Enabled }},
			{"UpdateMaster", func() (*containerpb.Operation, error) {
				return api.UpdateMaster(ctx, &containerpb.UpdateMasterRequest{Name: testCluster, MasterVersion: "1.36.1"})
			}, containerpb.Operation_UPGRADE_MASTER, func(c *containerpb.Cluster) bool { return c.CurrentMasterVersion == "1.36.1-gke.1412000" }},
			{"the node version of the one pool", func() (*containerpb.Operation, error) {
				return api.UpdateCluster(ctx, &containerpb.UpdateClusterRequest{Name: testCluster, Update: &containerpb.ClusterUpdate{DesiredNodeVersion: "1.35"}})
			}, containerpb.Operation_UPGRADE_NODES, func(c *containerpb.Cluster) bool {
				return c.NodePools[0].Version == "1.35.5-gke.1241000" && c.CurrentNodeVersion == c.NodePools[0].Version
			}},
		} {
			op := must[*containerpb.Operation](t)(tc.change())
			if op.OperationType != tc.typ {
				t.Errorf("%s starts an operation %s, want %s", tc.name, op.OperationType, tc.typ)
			}
			pass(10 * time.Minute)
			if !tc.done(api.Clusters()[0]) {
				t.Errorf("%s has no effect", tc.name)
			}
		}
	})
}

func TestUpgradesOfTheControlPlane(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		ctx := context.Background()
		old := cluster("old")
		old.ReleaseChannel = &containerpb.ReleaseChannel{} // outside of channels every version is valid
		old.InitialClusterVersion = "1.33"
		must[*containerpb.Operation](t)(api.CreateCluster(ctx, &containerpb.CreateClusterRequest{Parent: testParent, Cluster: old}))
		pass(6 * time.Minute)
		name := testParent + "/clusters/old"
		upgrade := func(version string) error {
			_, err := api.UpdateMaster(ctx, &containerpb.UpdateMasterRequest{Name: name, MasterVersion: version})
			pass(10 * time.Minute)
			return err
		}
		wantError(t, upgrade("1.35"), codes.InvalidArgument, `Master cannot be upgraded to "1.35.5-gke.1241000": cannot upgrade the master more than a minor version at a time.`)
		for _, v := range []string{"1.34", "1.35.3", "1.35.5", "1.35.3"} {
			if err := upgrade(v); err != nil {
				t.Fatalf("upgrade to %s: %v", v, err)
			}
		}
		wantError(t, upgrade("1.34"), codes.InvalidArgument, "Master cannot be downgraded from 1.35.3-gke.1389000 to 1.34.6-gke.1154000.")
		wantError(t, upgrade("1.36"), codes.InvalidArgument,
			`Master cannot be upgraded to "1.36.2-gke.1098000": node pool "system" runs 1.33.9-gke.1072000, and nodes can be at most 2 minor versions older than the master.`)
		_, err := api.UpdateMaster(ctx, &containerpb.UpdateMasterRequest{Name: name})
		wantError(t, err, codes.InvalidArgument, "Master version is required.")
	})
}
