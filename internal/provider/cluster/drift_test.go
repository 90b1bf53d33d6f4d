package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"google.golang.org/protobuf/proto"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
)

// only expects a plan that updates the cluster and shows a change of these
// attributes alone, written with dots.
type only []string

func (want only) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	var got []string
	for _, rc := range req.Plan.ResourceChanges {
		if !rc.Change.Actions.Update() {
			resp.Error = fmt.Errorf("%s: %v", rc.Address, rc.Change.Actions)
			return
		}
		got = append(got, differing("", rc.Change.Before, rc.Change.After)...)
		if unknown, _ := rc.Change.AfterUnknown.(map[string]any); len(unknown) > 0 {
			got = append(got, trues("", unknown)...)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string(want), slices.Compact(got)); diff != "" {
		resp.Error = fmt.Errorf("not the attributes that were changed by hand: %s", diff)
	}
}

func differing(at string, a, b any) []string {
	x, ok := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		if !cmp.Equal(a, b) {
			return []string{strings.TrimPrefix(at, ".")}
		}
		return nil
	}
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	var out []string
	for k := range keys {
		out = append(out, differing(at+"."+k, x[k], y[k])...)
	}
	return out
}

func trues(at string, v any) []string {
	if m, ok := v.(map[string]any); ok {
		var out []string
		for k, v := range m {
			out = append(out, trues(at+"."+k, v)...)
		}
		return out
	}
	if v == true {
		return []string{strings.TrimPrefix(at, ".")}
	}
	return nil
}

// What somebody changes by hand, with Google's own client, is shown as exactly
// that attribute, and the next apply puts it back.
func TestDriftIsShownWhereItIs(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	config := g.Config("", hcl(`
deletion_protection = false
private_nodes = false
zones = ["us-west4-a"]
control_plane = { dns_endpoint = false, authorized_networks = { "203.0.113.0/24" = "office" } }
maintenance = { daily_start = "03:00" }
logging = { components = ["SYSTEM_COMPONENTS", "WORKLOADS"] }
monitoring = { managed_prometheus = true }
addons = { gcs_fuse_csi_driver = true }
shielded_nodes = true
security_posture = { mode = "BASIC" }
release_channel = "REGULAR"
cluster_overrides = jsonencode({ costManagementConfig = { enabled = true } })
cpu_pools = { system = { machine_type = "e2-standard-8", node_count = 1, labels = { role = "system" } } }`))
	cluster := func(u *containerpb.ClusterUpdate) func() {
		return func() {
			op, err := raw(t, g).UpdateCluster(t.Context(), &containerpb.UpdateClusterRequest{Name: path(g), Update: u})
			wait(t, g, op, err)
		}
	}
	live := func() *containerpb.Cluster {
		c, err := raw(t, g).GetCluster(t.Context(), &containerpb.GetClusterRequest{Name: path(g)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pool := path(g) + "/nodePools/system"
	steps := []resource.TestStep{{Config: config}}
	for _, c := range []struct {
		shows only
		by    func()
	}{
		{only{"private_nodes"}, cluster(&containerpb.ClusterUpdate{DesiredDefaultEnablePrivateNodes: proto.Bool(true)})},
		{only{"zones"}, cluster(&containerpb.ClusterUpdate{DesiredLocations: []string{"us-west4-a", "us-west4-b"}})},
		{only{"control_plane.authorized_networks.10.0.0.0/8"}, func() {
			ends := live().GetControlPlaneEndpointsConfig()
			a := ends.GetIpEndpointsConfig().GetAuthorizedNetworksConfig()
			a.CidrBlocks = append(a.CidrBlocks, &containerpb.MasterAuthorizedNetworksConfig_CidrBlock{CidrBlock: "10.0.0.0/8"})
			cluster(&containerpb.ClusterUpdate{DesiredControlPlaneEndpointsConfig: ends})()
		}},
		{only{"maintenance.daily_start"}, func() {
			p := live().GetMaintenancePolicy()
			p.GetWindow().GetDailyMaintenanceWindow().StartTime = "05:00"
			op, err := raw(t, g).SetMaintenancePolicy(t.Context(), &containerpb.SetMaintenancePolicyRequest{Name: path(g), MaintenancePolicy: p})
			wait(t, g, op, err)
		}},
		{only{"logging.components"}, cluster(&containerpb.ClusterUpdate{DesiredLoggingConfig: &containerpb.LoggingConfig{ComponentConfig: &containerpb.LoggingComponentConfig{
			EnableComponents: []containerpb.LoggingComponentConfig_Component{containerpb.LoggingComponentConfig_SYSTEM_COMPONENTS}}}})},
		{only{"monitoring.managed_prometheus"}, func() {
			m := live().GetMonitoringConfig()
			m.ManagedPrometheusConfig = &containerpb.ManagedPrometheusConfig{Enabled: false}
			cluster(&containerpb.ClusterUpdate{DesiredMonitoringConfig: m})()
		}},
		{only{"addons.gcs_fuse_csi_driver"}, cluster(&containerpb.ClusterUpdate{DesiredAddonsConfig: &containerpb.AddonsConfig{GcsFuseCsiDriverConfig: &containerpb.GcsFuseCsiDriverConfig{}}})},
		{only{"shielded_nodes"}, cluster(&containerpb.ClusterUpdate{DesiredShieldedNodes: &containerpb.ShieldedNodes{}})},
		{only{"security_posture.mode"}, cluster(&containerpb.ClusterUpdate{DesiredSecurityPostureConfig: &containerpb.SecurityPostureConfig{
			Mode: containerpb.SecurityPostureConfig_DISABLED.Enum(), VulnerabilityMode: containerpb.SecurityPostureConfig_VULNERABILITY_DISABLED.Enum()}})},
		{only{"cluster_overrides"}, cluster(&containerpb.ClusterUpdate{DesiredCostManagementConfig: &containerpb.CostManagementConfig{}})},
		{only{"cpu_pools.system.node_count"}, func() {
			op, err := raw(t, g).SetNodePoolSize(t.Context(), &containerpb.SetNodePoolSizeRequest{Name: pool, NodeCount: 3})
			wait(t, g, op, err)
		}},
		{only{"cpu_pools.system.labels.role"}, func() {
			op, err := raw(t, g).UpdateNodePool(t.Context(), &containerpb.UpdateNodePoolRequest{Name: pool, Labels: &containerpb.NodeLabels{Labels: map[string]string{"role": "other"}}})
			wait(t, g, op, err)
		}},
	} {
		steps = append(steps, resource.TestStep{PreConfig: c.by, Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{c.shows}}})
	}
	// What is not configured is nobody's business.
	steps = append(steps, resource.TestStep{Config: config,
		PreConfig:        cluster(&containerpb.ClusterUpdate{DesiredAddonsConfig: &containerpb.AddonsConfig{RayOperatorConfig: &containerpb.RayOperatorConfig{Enabled: true}}}),
		ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}})
	resource.UnitTest(t, resource.TestCase{ProtoV6ProviderFactories: g.Factories(), Steps: steps})
}
