package gke

import (
	"maps"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// samples are two values of every setting, and what else it needs.
var samples = map[string]struct {
	from, to any
	with     Settings
}{
	"network":                             {"training", "other", nil},
	"subnetwork":                          {"training", "other", nil},
	"ip_ranges.pods_range":                {"pods", "more-pods", Settings{"network": "training", "subnetwork": "west"}},
	"ip_ranges.pods_cidr":                 {"/14", "10.64.0.0/12", nil},
	"ip_ranges.services_range":            {"services", "more-services", Settings{"network": "training", "subnetwork": "west"}},
	"ip_ranges.services_cidr":             {"/20", "10.80.0.0/20", nil},
	"max_pods_per_node":                   {64, 32, nil},
	"dataplane_v2":                        {true, false, nil},
	"zones":                               {[]string{"us-west4-a"}, []string{"us-west4-a", "us-west4-b"}, nil},
	"private_nodes":                       {false, true, nil},
	"dns.provider":                        {"KUBE_DNS", "CLOUD_DNS", nil},
	"dns.scope":                           {"CLUSTER_SCOPE", "VPC_SCOPE", Settings{"dns.provider": "CLOUD_DNS", "dns.domain": "train.example"}},
	"dns.domain":                          {"a.example", "b.example", Settings{"dns.provider": "CLOUD_DNS", "dns.scope": "VPC_SCOPE"}},
	"control_plane.dns_endpoint":          {false, true, nil},
	"control_plane.ip_endpoint":           {true, false, Settings{"control_plane.dns_endpoint": true}},
	"control_plane.private_endpoint":      {false, true, Settings{"control_plane.authorized_networks": map[string]string{"10.0.0.0/8": "vpc"}}},
	"control_plane.global_access":         {false, true, nil},
	"control_plane.authorized_networks":   {map[string]string{"203.0.113.0/24": "office"}, map[string]string{"203.0.113.0/24": "office", "10.0.0.0/8": ""}, nil},
	"control_plane.google_cloud_access":   {false, true, Settings{"control_plane.authorized_networks": map[string]string{}}},
	"control_plane.subnetwork":            {"control", "other", nil},
	"release_channel":                     {"REGULAR", "RAPID", nil},
	"maintenance.daily_start":             {"03:00", "05:00", nil},
	"maintenance.window_start":            {"2026-01-03T00:00:00Z", "2026-01-03T01:00:00Z", Settings{"maintenance.window_end": "2026-01-03T12:00:00Z", "maintenance.recurrence": "FREQ=DAILY"}},
	"maintenance.window_end":              {"2026-01-03T12:00:00Z", "2026-01-03T13:00:00Z", Settings{"maintenance.window_start": "2026-01-03T00:00:00Z", "maintenance.recurrence": "FREQ=DAILY"}},
	"maintenance.recurrence":              {"FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SA,SU", Settings{"maintenance.window_start": "2026-01-03T00:00:00Z", "maintenance.window_end": "2026-01-03T12:00:00Z"}},
	"maintenance.exclusions":              {exclusions("NO_MINOR_UPGRADES"), exclusions("NO_MINOR_OR_NODE_UPGRADES"), nil},
	"logging.components":                  {[]string{"SYSTEM_COMPONENTS"}, []string{"SYSTEM_COMPONENTS", "WORKLOADS"}, nil},
	"monitoring.components":               {[]string{"SYSTEM_COMPONENTS"}, []string{"JOBSET", "SYSTEM_COMPONENTS"}, nil},
	"monitoring.managed_prometheus":       {false, true, nil},
	"autoscaling_profile":                 {"BALANCED", "OPTIMIZE_UTILIZATION", nil},
	"autoprovisioning.enabled":            {false, true, nil},
	"autoprovisioning.limits":             {limits(16), limits(64), Settings{"autoprovisioning.enabled": true}},
	"autoprovisioning.service_account":    {"a@acc-project.iam.gserviceaccount.com", "b@acc-project.iam.gserviceaccount.com", Settings{"autoprovisioning.enabled": true, "autoprovisioning.limits": limits(16)}},
	"autoprovisioning.oauth_scopes":       {[]string{scope}, []string{scope, "https://www.googleapis.com/auth/userinfo.email"}, Settings{"autoprovisioning.enabled": true, "autoprovisioning.limits": limits(16)}},
	"autoprovisioning.zones":              {[]string{"us-west4-a"}, []string{"us-west4-b"}, Settings{"autoprovisioning.enabled": true, "autoprovisioning.limits": limits(16)}},
	"addons.gcs_fuse_csi_driver":          {false, true, nil},
	"addons.filestore_csi_driver":         {false, true, nil},
	"addons.lustre_csi_driver":            {false, true, nil},
	"addons.parallelstore_csi_driver":     {false, true, nil},
	"addons.persistent_disk_csi_driver":   {true, false, nil},
	"addons.high_scale_checkpointing":     {false, true, Settings{"addons.gcs_fuse_csi_driver": true}},
	"addons.slice_controller":             {false, true, nil},
	"addons.ray_operator":                 {false, true, nil},
	"addons.node_local_dns_cache":         {false, true, nil},
	"addons.http_load_balancing":          {true, false, nil},
	"addons.horizontal_pod_autoscaling":   {true, false, nil},
	"workload_identity":                   {false, true, nil},
	"shielded_nodes":                      {true, false, nil},
	"security_posture.mode":               {"DISABLED", "BASIC", nil},
	"security_posture.vulnerability_mode": {"VULNERABILITY_DISABLED", "VULNERABILITY_BASIC", Settings{"security_posture.mode": "BASIC"}},
}

func exclusions(scope string) map[string]map[string]any {
	return map[string]map[string]any{"run": {"start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z", "scope": scope}}
}

func limits(chips int) map[string]map[string]any {
	return map[string]map[string]any{
		"cpu": {"maximum": 1000, "minimum": 0}, "memory": {"maximum": 4000, "minimum": 0}, "tpu-v5-lite-podslice": {"maximum": chips, "minimum": 0},
	}
}

// against is a client of a fake GKE, and the fake.
func against(t *testing.T, opts ...fakegke.Option) (*Client, *fakegke.Server) {
	t.Helper()
	s, err := fakegke.New(append([]fakegke.Option{fakegke.WithTimeScale(1.0 / 100000)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return client(t, s), s
}

func trainingCluster(name string, settings Settings) TrainingCluster {
	one := 1
	return TrainingCluster{
		Name: ClusterName{Project: "acc-project", Location: "us-west4", Cluster: name}, Settings: settings,
		CPUPools: map[string]CPUPool{"system": {MachineType: "e2-standard-8", NodeCount: &one}},
	}
}

// Each setting: a new cluster has it; nothing is sent while it is as wanted; a
// change is one operation that changes this and nothing else; and a setting
// that is not managed is never changed.
func TestEverySetting(t *testing.T) {
	c, fake := against(t)
	writes := []string{"UpdateCluster", "SetMaintenancePolicy", "SetLabels", "UpdateNodePool", "CreateNodePool", "DeleteNodePool"}
	sent := func() int {
		n, calls := 0, fake.Calls()
		for _, w := range writes {
			n += calls[w]
		}
		return n
	}
	for i, s := range clusterSettings {
		sample, ok := samples[s.Name]
		if !ok {
			t.Errorf("%s has no samples", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			name := "project-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			settings := maps.Clone(sample.with)
			if settings == nil {
				settings = Settings{}
			}
			settings[s.Name] = sample.from
			of := func(v Settings) TrainingCluster { // each in a project, and so a network, of its own
				cluster := trainingCluster("main", v)
				cluster.Name.Project = name
				return cluster
			}
			created, _, err := c.CreateTrainingCluster(t.Context(), of(settings))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Of(created); !s.Same(sample.from, got) {
				t.Fatalf("created with %v, has %v", sample.from, got)
			}
			before := sent()
			if err := c.UpdateTrainingCluster(t.Context(), of(settings), []string{"system"}); err != nil {
				t.Fatal(err)
			}
			if err := c.UpdateTrainingCluster(t.Context(), of(nil), []string{"system"}); err != nil {
				t.Fatal(err)
			}
			if n := sent() - before; n != 0 {
				t.Fatalf("%d requests while everything is as it should be", n)
			}
			if _, fixed := s.Replaces(); fixed {
				return
			}
			if s.Name == "autoprovisioning.enabled" {
				settings["autoprovisioning.limits"] = limits(16)
			}
			settings[s.Name] = sample.to
			if err := c.UpdateTrainingCluster(t.Context(), of(settings), []string{"system"}); err != nil {
				t.Fatal(err)
			}
			if n := sent() - before; n != 1 {
				t.Errorf("%d requests for one change", n)
			}
			after, err := c.GetCluster(t.Context(), of(nil).Name)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Of(after); !s.Same(sample.to, got) {
				t.Errorf("changed to %v, has %v", sample.to, got)
			}
			for _, other := range clusterSettings {
				if _, managed := settings[other.Name]; !managed && other.Name != s.Name && !other.Same(other.Of(created), other.Of(after)) {
					t.Errorf("%s changed too: %v, then %v", other.Name, other.Of(created), other.Of(after))
				}
			}
		})
	}
}

// No sample is of a setting that is gone.
func TestSamplesAreOfSettings(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		if _, ok := settingsByName[name]; !ok {
			t.Errorf("%s is no setting", name)
		}
	}
}

// What a user's words mean, GKE may spell otherwise; that is no difference.
func TestSpellings(t *testing.T) {
	for name, c := range map[string]struct {
		setting    string
		want, have any
		same       bool
	}{
		"name of a network":        {"network", "training", "projects/p/global/networks/training", true},
		"link of a network":        {"network", "https://www.googleapis.com/compute/v1/projects/p/global/networks/training", "projects/p/global/networks/training", true},
		"another project's":        {"network", "projects/host/global/networks/training", "projects/p/global/networks/training", false},
		"another network":          {"network", "training", "other", false},
		"size of a range":          {"ip_ranges.pods_cidr", "/14", "10.4.0.0/14", true},
		"another size":             {"ip_ranges.pods_cidr", "/4", "10.4.0.0/14", false},
		"the same moment":          {"maintenance.window_start", "2026-01-03T02:00:00+02:00", "2026-01-03T00:00:00Z", true},
		"another moment":           {"maintenance.window_start", "2026-01-03T02:00:00Z", "2026-01-03T00:00:00Z", false},
		"a minimum left out":       {"autoprovisioning.limits", map[string]map[string]any{"cpu": {"maximum": 4}}, map[string]map[string]any{"cpu": {"minimum": 0, "maximum": 4}}, true},
		"an exclusion's time zone": {"maintenance.exclusions", map[string]map[string]any{"a": {"start": "2026-01-03T02:00:00+02:00", "end": "x", "scope": "NO_UPGRADES"}}, map[string]map[string]any{"a": {"start": "2026-01-03T00:00:00Z", "end": "x", "scope": "NO_UPGRADES"}}, true},
	} {
		if got := settingsByName[c.setting].Same(c.want, c.have); got != c.same {
			t.Errorf("%s: %v and %v: %v", name, c.want, c.have, got)
		}
	}
}

// One operation per facet, in the order of the table; a run that is cut off in
// the middle is finished by the next one, which does nothing twice.
func TestChangesGoOnWhereTheyStopped(t *testing.T) {
	c, fake := against(t)
	spec := trainingCluster("main", nil)
	if _, _, err := c.CreateTrainingCluster(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	spec.ResourceLabels = map[string]string{"team": "research"}
	spec.Settings = Settings{"addons.gcs_fuse_csi_driver": true, "addons.ray_operator": true, "shielded_nodes": false,
		"maintenance.daily_start": "03:00", "logging.components": []string{"SYSTEM_COMPONENTS"}}
	four := 4
	spec.CPUPools = map[string]CPUPool{"system": {MachineType: "e2-standard-8", NodeCount: &four}}
	fake.Fail(fakegke.Fault{Method: "UpdateCluster", Call: 2, Code: 7, Message: "cut off"})
	if err := c.UpdateTrainingCluster(t.Context(), spec, []string{"system"}); err == nil {
		t.Fatal("no error")
	}
	half, err := c.GetCluster(t.Context(), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	if half.GetShieldedNodes().GetEnabled() || half.GetAddonsConfig().GetRayOperatorConfig().GetEnabled() || half.GetResourceLabels()["team"] == "" {
		t.Errorf("the order is not that of the table: %v", half)
	}
	calls := fake.Calls()["UpdateCluster"]
	if err := c.UpdateTrainingCluster(t.Context(), spec, []string{"system"}); err != nil {
		t.Fatal(err)
	}
	if n := fake.Calls()["UpdateCluster"] - calls; n != 2 { // logging and addons
		t.Errorf("%d updates to finish", n)
	}
	whole, err := c.GetCluster(t.Context(), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	if left := spec.Settings.differing(whole); len(left) > 0 || whole.GetNodePools()[0].GetInitialNodeCount() != 4 {
		t.Errorf("left: %v", left)
	}
}

// Two settings of one message do not undo each other, and what the message has
// besides stays.
func TestUpdatesKeepTheRestOfAMessage(t *testing.T) {
	have := &containerpb.Cluster{AddonsConfig: &containerpb.AddonsConfig{
		RayOperatorConfig:      &containerpb.RayOperatorConfig{RayClusterLoggingConfig: &containerpb.RayClusterLoggingConfig{Enabled: true}},
		GcsFuseCsiDriverConfig: &containerpb.GcsFuseCsiDriverConfig{Enabled: true},
	}}
	want, facets := TrainingCluster{Settings: Settings{"addons.ray_operator": true, "addons.gcs_fuse_csi_driver": true}}.wanted(have)
	if !facets[facetAddons] || len(facets) != 1 {
		t.Fatal(facets)
	}
	for _, f := range clusterFacets {
		if f.name != facetAddons {
			continue
		}
		sent := &containerpb.ClusterUpdate{DesiredAddonsConfig: &containerpb.AddonsConfig{
			RayOperatorConfig: &containerpb.RayOperatorConfig{Enabled: true, RayClusterLoggingConfig: &containerpb.RayClusterLoggingConfig{Enabled: true}}}}
		if diff := cmp.Diff(sent, f.update(want, have), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
}

// The specification's hash tells clusters apart that cannot become each other,
// and no others; that of what has no new setting is as it was before there were.
func TestHash(t *testing.T) {
	base := trainingCluster("main", Settings{"network": "training"})
	if got, want := base.Hash(), SpecHash(struct{ Network, Subnetwork string }{"training", ""}); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	same := trainingCluster("main", Settings{"network": "training", "shielded_nodes": false})
	other := trainingCluster("main", Settings{"network": "training", "dataplane_v2": true})
	if base.Hash() != same.Hash() || base.Hash() == other.Hash() {
		t.Error("it is not of what cannot change, alone")
	}
}

// A request is complete by itself, and whoever asks for nothing gets Workload
// Identity.
func TestRequest(t *testing.T) {
	r, err := trainingCluster("main", nil).Request(time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if r.GetWorkloadIdentityConfig().GetWorkloadPool() != "acc-project.svc.id.goog" || !r.GetIpAllocationPolicy().GetUseIpAliases() {
		t.Error(r)
	}
	without, err := trainingCluster("main", Settings{"workload_identity": false}).Request(time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if without.WorkloadIdentityConfig != nil || without.NodePools[0].Config.WorkloadMetadataConfig != nil {
		t.Error(without)
	}
	if proto.Equal(r, without) {
		t.Error("the setting does nothing")
	}
}

// Fields that the overrides set no more are named, however deep.
func TestDroppedOverrides(t *testing.T) {
	for _, c := range []struct {
		was, now string
		want     []string
	}{
		{`{"costManagementConfig": {"enabled": true}}`, ``, []string{"costManagementConfig"}},
		{`{"costManagementConfig": {"enabled": true}}`, `{"costManagementConfig": {"enabled": false}}`, nil},
		{`{"costManagementConfig": {"enabled": true}}`, `{"costManagementConfig": {}}`, []string{"costManagementConfig.enabled"}},
		{`{"cost_management_config": {"enabled": true}}`, `{"costManagementConfig": {"enabled": true}}`, nil},
		{`{"networkConfig": {"gatewayApiConfig": {"channel": "CHANNEL_STANDARD"}, "enableFqdnNetworkPolicy": true}, "description": "x"}`, `{"networkConfig": {"enableFqdnNetworkPolicy": true}}`,
			[]string{"description", "networkConfig.gatewayApiConfig"}},
		{``, `{"description": "x"}`, nil},
		{`{"description": "x"}`, `no JSON`, nil},
	} {
		if d := cmp.Diff(c.want, TrainingCluster{Overrides: c.now}.DroppedOverrides(TrainingCluster{Overrides: c.was})); d != "" {
			t.Errorf("%s -> %s (-want +got):\n%s", c.was, c.now, d)
		}
	}
}
