package gke

import (
	"maps"
	"strings"
	"testing"
)

// What GKE would refuse is refused at plan, at the attribute that is wrong and
// in words that say what is right; what is not known yet is left to GKE.
func TestClusterChecks(t *testing.T) {
	nodes := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		settings Settings
		pool     CPUPool
		location string
		min      string
		unknown  []string
		at, says string // "" where all is well
	}{
		"nothing":                         {},
		"both kinds of range":             {settings: Settings{"ip_ranges.pods_range": "pods", "ip_ranges.pods_cidr": "/14"}, at: "ip_ranges.pods_cidr", says: "leave one out"},
		"a network by path":               {settings: Settings{"network": "projects/host/global/networks/n", "subnetwork": "projects/host/regions/us-west4/subnetworks/s"}, location: "us-west4-a"},
		"a network by URL":                {settings: Settings{"network": "https://www.googleapis.com/compute/v1/projects/host/global/networks/n", "subnetwork": "regions/us-west4/subnetworks/s"}},
		"no network":                      {settings: Settings{"network": "http://foo"}, at: "network", says: "want its name"},
		"no subnetwork":                   {settings: Settings{"subnetwork": "projects/p/subnetworks/s"}, at: "subnetwork", says: "REGION/subnetworks/NAME"},
		"a subnetwork elsewhere":          {settings: Settings{"subnetwork": "projects/p/regions/us-east1/subnetworks/s"}, location: "us-west4-a", at: "subnetwork", says: "the cluster in us-west4"},
		"checkpoints without the driver":  {settings: Settings{"addons.high_scale_checkpointing": true}, at: "addons.high_scale_checkpointing", says: "set gcs_fuse_csi_driver = true too"},
		"a driver that is not known yet":  {settings: Settings{"addons.high_scale_checkpointing": true}, unknown: []string{"addons.gcs_fuse_csi_driver"}},
		"no range":                        {settings: Settings{"ip_ranges.pods_cidr": "10.0.0.0"}, at: "ip_ranges.pods_cidr", says: "not a range of IPv4 addresses"},
		"a range that begins elsewhere":   {settings: Settings{"ip_ranges.services_cidr": "10.0.1.0/20"}, at: "ip_ranges.services_cidr", says: "write 10.0.0.0/20"},
		"too small a range":               {settings: Settings{"ip_ranges.services_cidr": "/29"}, at: "ip_ranges.services_cidr", says: "GKE takes /16 to /28"},
		"overlapping ranges":              {settings: Settings{"ip_ranges.pods_cidr": "10.0.0.0/14", "ip_ranges.services_cidr": "10.1.0.0/20"}, at: "ip_ranges.services_cidr", says: "overlap"},
		"a range for the pools":           {settings: Settings{"ip_ranges.pods_cidr": "/21"}, pool: CPUPool{NodeCount: nodes(8)}},
		"no room for the pools":           {settings: Settings{"ip_ranges.pods_cidr": "/21"}, pool: CPUPool{NodeCount: nodes(9)}, at: "ip_ranges.pods_cidr", says: "9 nodes"},
		"no room in several zones":        {settings: Settings{"ip_ranges.pods_cidr": "/21", "zones": []string{"us-west4-a", "us-west4-b"}}, pool: CPUPool{NodeCount: nodes(5)}, location: "us-west4", at: "ip_ranges.pods_cidr", says: "10 nodes"},
		"no room in a whole region":       {settings: Settings{"ip_ranges.pods_cidr": "/22"}, pool: CPUPool{NodeCount: nodes(2)}, location: "us-west4", at: "ip_ranges.pods_cidr", says: "6 nodes that cpu_pools can have in the 3 zones that GKE chooses"},
		"room in a zone":                  {settings: Settings{"ip_ranges.pods_cidr": "/22"}, pool: CPUPool{NodeCount: nodes(4)}, location: "us-west4-a"},
		"room in the zones of a pool":     {settings: Settings{"ip_ranges.pods_cidr": "/22"}, pool: CPUPool{NodeCount: nodes(4), Zones: []string{"us-west4-a"}}, location: "us-west4"},
		"room in zones not known yet":     {settings: Settings{"ip_ranges.pods_cidr": "/22"}, unknown: []string{"zones"}, pool: CPUPool{NodeCount: nodes(2)}, location: "us-west4"},
		"room with fewer pods":            {settings: Settings{"ip_ranges.pods_cidr": "/21", "max_pods_per_node": 32}, pool: CPUPool{NodeCount: nodes(32)}},
		"no room when it is scaled up":    {settings: Settings{"ip_ranges.pods_cidr": "/24"}, pool: CPUPool{Autoscaling: &CPUAutoscaling{TotalMax: 2}}, at: "ip_ranges.pods_cidr", says: "2 nodes"},
		"too many pods":                   {settings: Settings{"max_pods_per_node": 300}, at: "max_pods_per_node", says: "between 8 and 256"},
		"private without networks":        {settings: Settings{"control_plane.private_endpoint": true}, at: "control_plane.private_endpoint", says: "authorized_networks"},
		"private with unknown networks":   {settings: Settings{"control_plane.private_endpoint": true}, unknown: []string{"control_plane.authorized_networks"}},
		"no way in":                       {settings: Settings{"control_plane.ip_endpoint": false, "control_plane.dns_endpoint": false}, at: "control_plane.ip_endpoint", says: "dns_endpoint = true"},
		"no way in by what is left out":   {settings: Settings{"control_plane.ip_endpoint": false}, at: "control_plane.ip_endpoint", says: "dns_endpoint = true"},
		"a way in that is not known yet":  {settings: Settings{"control_plane.ip_endpoint": false}, unknown: []string{"control_plane.dns_endpoint"}},
		"networks without an endpoint":    {settings: Settings{"control_plane.ip_endpoint": false, "control_plane.dns_endpoint": true, "control_plane.authorized_networks": map[string]string{}}, at: "control_plane.authorized_networks", says: "leave them out"},
		"global access without endpoint":  {settings: Settings{"control_plane.ip_endpoint": false, "control_plane.dns_endpoint": true, "control_plane.global_access": true}, at: "control_plane.global_access", says: "leave it out"},
		"a network that is a name":        {settings: Settings{"control_plane.authorized_networks": map[string]string{"office": "10.0.0.0/8"}}, at: "control_plane.authorized_networks", says: "the keys are ranges"},
		"a network that begins elsewhere": {settings: Settings{"control_plane.authorized_networks": map[string]string{"10.1.0.0/8": ""}}, at: "control_plane.authorized_networks", says: "write 10.0.0.0/8"},
		"a zone elsewhere":                {settings: Settings{"zones": []string{"us-east1-b"}}, location: "us-west4", at: "zones", says: "not a zone of the cluster's region, us-west4"},
		"a zonal cluster elsewhere":       {settings: Settings{"zones": []string{"us-west4-b"}}, location: "us-west4-a", at: "zones", says: "zone us-west4-a, which zones must name too"},
		"a pool elsewhere":                {pool: CPUPool{Zones: []string{"us-east1-b"}}, location: "us-west4", at: "cpu_pools", says: "us-east1-b"},
		"an hour that is none":            {settings: Settings{"maintenance.daily_start": "3am"}, at: "maintenance.daily_start", says: "HH:MM"},
		"two windows":                     {settings: setTo(window6, "maintenance.daily_start", "03:00"), at: "maintenance.daily_start", says: "exclude each other"},
		"half a window":                   {settings: Settings{"maintenance.window_start": "2026-01-03T00:00:00Z"}, at: "maintenance.window_end", says: "window_end and recurrence is missing"},
		"a window":                        {settings: window6},
		"a short window":                  {settings: setTo(window6, "maintenance.window_end", "2026-01-03T02:00:00Z"), at: "maintenance.window_end", says: "at least 4 hours"},
		"a window backwards":              {settings: setTo(window6, "maintenance.window_end", "2026-01-02T02:00:00Z"), at: "maintenance.window_end", says: "ends before it begins"},
		"a rare window":                   {settings: setTo(window6, "maintenance.recurrence", "FREQ=WEEKLY;BYDAY=SA"), at: "maintenance.recurrence", says: "48 hours"},
		"a day that is none":              {settings: setTo(window6, "maintenance.recurrence", "FREQ=WEEKLY;BYDAY=XX"), at: "maintenance.recurrence", says: "XX is no day"},
		"no recurrence":                   {settings: setTo(window6, "maintenance.recurrence", "every day"), at: "maintenance.recurrence", says: "RFC 5545"},
		"no time":                         {settings: setTo(window6, "maintenance.window_start", "tomorrow"), at: "maintenance.window_start", says: "RFC 3339"},
		"an exclusion":                    {settings: Settings{"maintenance.exclusions": exclusions("NO_UPGRADES")}},
		"an endless exclusion":            {settings: excluding("2026-12-01T00:00:00Z", "2027-12-01T00:00:00Z", "NO_UPGRADES", 1), at: "maintenance.exclusions", says: "at most 90"},
		"an exclusion backwards":          {settings: excluding("2026-12-01T00:00:00Z", "2026-11-01T00:00:00Z", "NO_UPGRADES", 1), at: "maintenance.exclusions", says: "ends before"},
		"too many exclusions":             {settings: excluding("2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z", "NO_MINOR_UPGRADES", 21), at: "maintenance.exclusions", says: "GKE takes 20"},
		"too many full exclusions":        {settings: excluding("2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z", "NO_UPGRADES", 4), at: "maintenance.exclusions", says: "GKE takes 3"},
		"a scope without channel":         {settings: setTo(Settings{"maintenance.exclusions": exclusions("NO_MINOR_UPGRADES")}, "release_channel", "UNSPECIFIED"), at: "maintenance.exclusions", says: "needs a release channel"},
		"a scope without Cloud DNS":       {settings: Settings{"dns.provider": "KUBE_DNS", "dns.scope": "CLUSTER_SCOPE"}, at: "dns.scope", says: "CLOUD_DNS"},
		"a VPC without a domain":          {settings: Settings{"dns.provider": "CLOUD_DNS", "dns.scope": "VPC_SCOPE"}, at: "dns.scope", says: "set domain"},
		"a domain without a VPC":          {settings: Settings{"dns.provider": "CLOUD_DNS", "dns.domain": "x.example"}, at: "dns.domain", says: "VPC_SCOPE"},
		"logs of workloads alone":         {settings: Settings{"logging.components": []string{"WORKLOADS"}}, at: "logging.components", says: "SYSTEM_COMPONENTS"},
		"logs of nothing there is":        {settings: Settings{"logging.components": []string{"SYSTEM"}}},
		"no logs":                         {settings: Settings{"logging.components": []string{}}},
		"metrics of jobs alone":           {settings: Settings{"monitoring.components": []string{"JOBSET"}}, at: "monitoring.components", says: "SYSTEM_COMPONENTS"},
		"buckets without identity":        {settings: Settings{"addons.gcs_fuse_csi_driver": true, "workload_identity": false}, at: "addons.gcs_fuse_csi_driver", says: "Workload Identity"},
		"checkpoints without buckets":     {settings: Settings{"addons.high_scale_checkpointing": true, "addons.gcs_fuse_csi_driver": false}, at: "addons.high_scale_checkpointing", says: "gcs_fuse_csi_driver"},
		"provisioning without limits":     {settings: Settings{"autoprovisioning.enabled": true, "autoprovisioning.limits": map[string]map[string]any{"cpu": {"maximum": 1}}}, at: "autoprovisioning.limits", says: "memory"},
		"limits without provisioning":     {settings: Settings{"autoprovisioning.limits": limits(4)}, at: "autoprovisioning.limits", says: "enabled = true"},
		"a limit of nothing":              {settings: provisioning("v5e", 0, 4), at: "autoprovisioning.limits", says: "tpu-v5-lite-podslice"},
		"a limit upside down":             {settings: provisioning("tpu-v5-lite-podslice", 8, 4), at: "autoprovisioning.limits", says: "below the minimum"},
		"counted and scaled":              {pool: CPUPool{NodeCount: nodes(1), Autoscaling: &CPUAutoscaling{Max: 2}}, at: "cpu_pools", says: "leave node_count out"},
		"scaled upside down":              {pool: CPUPool{Autoscaling: &CPUAutoscaling{Min: 3, Max: 2}}, at: "cpu_pools", says: "above max_nodes"},
		"pods of a pool":                  {pool: CPUPool{MaxPods: 4}, at: "cpu_pools", says: "max_pods_per_node 4"},
		"nodes newer than their cluster":  {pool: CPUPool{Version: "1.35"}, min: "1.34", at: "cpu_pools", says: "newer than the control plane"},
		"nodes as new as their cluster":   {pool: CPUPool{Version: "1.34"}, min: "1.34"},
	} {
		cluster := TrainingCluster{Name: ClusterName{Location: c.location}, MinVersion: c.min, Settings: c.settings, Unknown: c.unknown, CPUPools: map[string]CPUPool{"system": c.pool}}
		var said []string
		for _, p := range cluster.Check() {
			said = append(said, p.Attribute+": "+p.Text)
		}
		switch {
		case c.says == "" && len(said) > 0:
			t.Errorf("%s: %q", name, said)
		case c.says != "" && (len(said) != 1 || !strings.HasPrefix(said[0], c.at+": ") || !strings.Contains(said[0], c.says)):
			t.Errorf("%s: %q; want %q at %s", name, said, c.says, c.at)
		}
	}
}

var window6 = Settings{"maintenance.window_start": "2026-01-03T00:00:00Z", "maintenance.window_end": "2026-01-03T06:00:00Z", "maintenance.recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}

func setTo(s Settings, name string, v any) Settings {
	s = maps.Clone(s)
	s[name] = v
	return s
}

func excluding(start, end, scope string, n int) Settings {
	all := map[string]map[string]any{}
	for i := range n {
		all["e"+string(rune('a'+i))] = map[string]any{"start": start, "end": end, "scope": scope}
	}
	return Settings{"maintenance.exclusions": all}
}

func provisioning(name string, minimum, maximum int) Settings {
	l := limits(4)
	l[name] = map[string]any{"minimum": minimum, "maximum": maximum}
	return Settings{"autoprovisioning.enabled": true, "autoprovisioning.limits": l}
}

// Overrides reach what has no attribute, and nothing else.
func TestClusterOverrides(t *testing.T) {
	for text, says := range map[string]string{
		``: "",
		`{"costManagementConfig": {"enabled": true}}`:   "",
		`{"cost_management_config": {"enabled": true}}`: "",
		`[]`:                "not a JSON object",
		`{"nodePools": []}`: "set it there",
		`{"masterAuth": {"username": "x", "password": "hunter2"}}`:                       "do not belong into a state",
		`{"master_auth": {"clientCertificateConfig": {"issueClientCertificate": true}}}`: "do not belong into a state",
		`{"costManagment": {}}`:                                       "which no cluster",
		`{"costManagementConfig": {"on": true}}`:                      "not part of a cluster",
		`{"networkConfig": {"gatewayApiConfig": {"channel": "ODD"}}}`: "not part of a cluster",
	} {
		err := TrainingCluster{Overrides: text}.CheckOverrides()
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", text, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

// Overrides are changed in place where GKE has an update for the field, one
// operation each, and what somebody changes by hand is found.
func TestClusterOverridesChange(t *testing.T) {
	c, fake := against(t)
	spec := trainingCluster("main", nil)
	spec.Overrides = `{"costManagementConfig": {"enabled": true}, "networkConfig": {"gatewayApiConfig": {"channel": "CHANNEL_STANDARD"}}}`
	made, _, err := c.CreateTrainingCluster(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if !made.GetCostManagementConfig().GetEnabled() || made.GetNetworkConfig().GetGatewayApiConfig().GetChannel() != 4 {
		t.Fatal(made)
	}
	if got := spec.DriftedOverrides(made); got != spec.Overrides {
		t.Error(got)
	}
	next := spec
	next.Overrides = `{"costManagementConfig": {"enabled": false}, "networkConfig": {"gatewayApiConfig": {"channel": "CHANNEL_DISABLED"}}}`
	if got := next.DriftedOverrides(made); !strings.Contains(got, `"enabled":true`) || !strings.Contains(got, "CHANNEL_STANDARD") {
		t.Error(got)
	}
	if fixed := next.FixedOverrides(spec); len(fixed) > 0 {
		t.Error(fixed)
	}
	if err := c.UpdateTrainingCluster(t.Context(), next, []string{"system"}); err != nil {
		t.Fatal(err)
	}
	if n := fake.Calls()["UpdateCluster"]; n != 2 {
		t.Errorf("%d updates", n)
	}
	if err := c.UpdateTrainingCluster(t.Context(), next, []string{"system"}); err != nil {
		t.Fatal(err)
	}
	if n := fake.Calls()["UpdateCluster"]; n != 2 {
		t.Errorf("%d updates, some for nothing", n-2)
	}
	next.Overrides = `{"networkConfig": {"enableMultiNetworking": true, "inTransitEncryptionConfig": "IN_TRANSIT_ENCRYPTION_DISABLED"}, "enableKubernetesAlpha": true}`
	if fixed := next.FixedOverrides(spec); strings.Join(fixed, " ") != "enableKubernetesAlpha" {
		t.Error(fixed)
	}
}
