package gke

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

func testPool(t testing.TB, name string, edit func(*SlicePool)) SlicePool {
	t.Helper()
	shape, err := accelerator.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	p := SlicePool{Cluster: ClusterName{"p", "us-west4", "c"}, Name: "pool", Shape: shape, Count: 2, Zone: "us-west4-a"}
	if shape.Placement == accelerator.PlacementWorkloadPolicy {
		p.PlacementPolicy = "policy"
	}
	if edit != nil {
		edit(&p)
	}
	return p
}

// What GKE would refuse is refused before it is asked, with the nearest valid
// choice.
func TestCheckRefuses(t *testing.T) {
	yes := true
	model := func(m ProvisioningModel) func(*SlicePool) {
		return func(p *SlicePool) { p.Provisioning.Model = m }
	}
	for name, c := range map[string]struct {
		accelerator string
		edit        func(*SlicePool)
		want        []string
	}{
		"a long name":             {"v5litepod-16", func(p *SlicePool) { p.Name = strings.Repeat("x", 36) }, []string{"36 characters", "the most is 35"}},
		"too many slices":         {"v5litepod-1", func(p *SlicePool) { p.Count = MaxSlices + 1 }, []string{"want 0 to 10000"}},
		"too many nodes":          {"v5litepod-256", func(p *SlicePool) { p.Count = 1016 }, []string{"65024 nodes", "at most 1015 slices"}},
		"no zone":                 {"v5litepod-16", func(p *SlicePool) { p.Zone = "" }, []string{"set zone", "us-west4-a"}},
		"a zone elsewhere":        {"v5litepod-16", func(p *SlicePool) { p.Zone = "us-east1-c" }, []string{"not in the cluster's region us-west4"}},
		"several reservations":    {"v5litepod-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: FromReservation, Reservation: "a,b"} }, []string{"several reservations", "a slice pool for each"}},
		"no reservation":          {"v5litepod-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: FromReservation, Reservation: "projects/p/a"} }, []string{"projects/PROJECT/reservations/NAME"}},
		"spot from a reservation": {"v5litepod-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: Spot, Reservation: "a"} }, []string{`model "spot" takes no reservation`, "leave the reservation out"}},
		"flex_start from a reservation": {"v5litepod-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: FlexStart, Reservation: "a"} },
			[]string{`model "flex_start" takes no reservation`}},
		"queued from a reservation": {"v5litepod-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: Queued, Reservation: "a"} }, []string{`model "queued" takes no reservation`}},
		"flex_start of v4":          {"v4-16", model(FlexStart), []string{"not offered for v4", "use on_demand, spot or reservation"}},
		"flex_start repaired": {"v5litepod-16", func(p *SlicePool) { p.Provisioning.Model, p.AutoRepair = FlexStart, &yes },
			[]string{"set management.auto_repair = false"}},
		"flex_start kept up": {"v5litepod-16", func(p *SlicePool) { p.Provisioning.Model, p.Autoscaling = FlexStart, &Autoscaling{Min: 4} },
			[]string{"flex_start", "set autoscaling.min_hosts = 0"}},
		"flex_start for longer than a week": {"v5litepod-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: FlexStart, MaxRunDuration: 200 * time.Hour} },
			[]string{"at most 7 days", "168h"}},
		"a run duration on demand": {"v5litepod-16", func(p *SlicePool) { p.Provisioning.MaxRunDuration = time.Hour }, []string{"for flex_start and queued"}},
		"queued kept up": {"v5litepod-16", func(p *SlicePool) { p.Provisioning.Model, p.Autoscaling = Queued, &Autoscaling{Min: 4} },
			[]string{"queued", "set autoscaling.min_hosts = 0"}},
		"another maximum":   {"v5litepod-16", func(p *SlicePool) { p.Autoscaling = &Autoscaling{Max: 8} }, []string{"max_hosts is 8", "has 4 hosts", "set 4"}},
		"a minimum between": {"v5litepod-16", func(p *SlicePool) { p.Autoscaling = &Autoscaling{Min: 2} }, []string{"min_hosts is 2", "set 0 or 4"}},
		"blue_green":        {"v5litepod-16", func(p *SlicePool) { p.Upgrade = &Upgrade{Strategy: "blue_green"} }, []string{`upgrade.strategy = "surge"`}},
		"v6e on pd":         {"v6e-16", func(p *SlicePool) { p.DiskType = "pd-balanced" }, []string{"do not boot from pd-balanced", "hyperdisk-balanced"}},
		"tpu7x on pd":       {"tpu7x-16", func(p *SlicePool) { p.DiskType = "pd-ssd" }, []string{"hyperdisk-balanced"}},
		"v5p on hyperdisk":  {"v5p-16", func(p *SlicePool) { p.DiskType = "hyperdisk-balanced" }, []string{"pd-balanced or pd-standard"}},
		"too many pods":     {"v5litepod-16", func(p *SlicePool) { p.MaxPods = 300 }, []string{"want 8 to 256"}},
		"a reserved label":  {"v5litepod-16", func(p *SlicePool) { p.NodeLabels = map[string]string{"node.kubernetes.io/x": "y"} }, []string{"is reserved"}},
		"a label of GKE's": {"v5litepod-16", func(p *SlicePool) { p.NodeLabels = map[string]string{"cloud.google.com/compute-class": "y"} },
			[]string{"reserved for GKE and Kubernetes", "example.com/compute-class"}},
		"a label of the sandbox":     {"v5litepod-16", func(p *SlicePool) { p.NodeLabels = map[string]string{"sandbox.gke.io/runtime": "gvisor"} }, []string{"is reserved"}},
		"a label that is none":       {"v5litepod-16", func(p *SlicePool) { p.NodeLabels = map[string]string{"a b": "y"} }, []string{`"a b" is not a label key`}},
		"a value that is none":       {"v5litepod-16", func(p *SlicePool) { p.NodeLabels = map[string]string{"a": "b c"} }, []string{`a = "b c" is not a label value`}},
		"a taint of Kubernetes":      {"v5litepod-16", func(p *SlicePool) { p.Taints = []Taint{{"node.kubernetes.io/not-ready", "", "NoSchedule"}} }, []string{"a domain of your own"}},
		"a taint that is none":       {"v5litepod-16", func(p *SlicePool) { p.Taints = []Taint{{"a b", "", "NoSchedule"}} }, []string{"is not a taint key"}},
		"a taint twice":              {"v5litepod-16", func(p *SlicePool) { p.Taints = []Taint{{"a", "b", "NoSchedule"}, {"a", "c", "NoSchedule"}} }, []string{"a is there twice"}},
		"GKE's own taint":            {"v5litepod-16", func(p *SlicePool) { p.Taints = []Taint{{"google.com/tpu", "present", "NoSchedule"}} }, []string{"leave it out"}},
		"a version that moves":       {"v5litepod-16", func(p *SlicePool) { p.Version = "latest" }, []string{`version: "latest" is not a GKE version`}},
		"an account without domain":  {"v5litepod-16", func(p *SlicePool) { p.ServiceAccount = "foo" }, []string{`node.service_account: "foo"`, "NAME@PROJECT"}},
		"an unknown image type":      {"v5litepod-16", func(p *SlicePool) { p.ImageType = "ubuntoo" }, []string{"COS_CONTAINERD or UBUNTU_CONTAINERD"}},
		"an unknown profile":         {"v5litepod-16", func(p *SlicePool) { p.NetworkProfile = "foo" }, []string{`network_profile is "foo"`, "auto"}},
		"a tag that is none":         {"v5litepod-16", func(p *SlicePool) { p.Tags = []string{"A_b"} }, []string{`"A_b" is not a network tag`}},
		"a tag twice":                {"v5litepod-16", func(p *SlicePool) { p.Tags = []string{"a", "a"} }, []string{`"a" is there twice`}},
		"a disk image that is none":  {"v5litepod-16", func(p *SlicePool) { p.SecondaryDisks = []string{"foo"} }, []string{"projects/PROJECT/global/images/IMAGE"}},
		"a disk image twice":         {"v5litepod-16", func(p *SlicePool) { p.SecondaryDisks = []string{"global/images/i", "global/images/i"} }, []string{"twice"}},
		"fewer than no hosts":        {"v5litepod-16", func(p *SlicePool) { p.Autoscaling = &Autoscaling{Min: -1} }, []string{"has 0 or 4 hosts"}},
		"too many in an upgrade":     {"v5litepod-16", func(p *SlicePool) { p.Upgrade = &Upgrade{"surge", 30, 30} }, []string{"60 together", "at most 20"}},
		"none in an upgrade":         {"v5litepod-16", func(p *SlicePool) { p.Upgrade = &Upgrade{"surge", 0, 0} }, []string{"both 0"}},
		"overrides that are no JSON": {"v5litepod-16", func(p *SlicePool) { p.Overrides = "{" }, []string{"not a JSON object"}},
		"overrides of what has an attribute": {"v5litepod-16", func(p *SlicePool) { p.Overrides = `{"config": {"machine_type": "e2-medium"}}` },
			[]string{"sets config.machineType", "machine_type: set it there"}},
		"overrides with a topology":        {"v5litepod-1", func(p *SlicePool) { p.Overrides = `{"placementPolicy": {"tpuTopology": "1x1"}}` }, []string{"placementPolicy", "accelerator"}},
		"overrides that are a list":        {"v5litepod-16", func(p *SlicePool) { p.Overrides = `[]` }, []string{"not a JSON object: want jsonencode"}},
		"overrides of another type":        {"v5litepod-16", func(p *SlicePool) { p.Overrides = `{"config": {"localSsdCount": "many"}}` }, []string{"cannot have: invalid value for int32 field localSsdCount"}},
		"overrides that GKE does not know": {"v5litepod-16", func(p *SlicePool) { p.Overrides = `{"config": {"colour": "red"}}` }, []string{"sets config.colour", "no such field"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := testPool(t, c.accelerator, c.edit).Check()
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	for name, c := range map[string]struct {
		accelerator string
		edit        func(*SlicePool)
	}{
		"v4": {"v4-8", nil}, "v5e": {"v5litepod-16", nil}, "v5p": {"v5p-128", nil}, "v6e": {"v6e-256", nil}, "tpu7x": {"tpu7x-128", nil}, "a single host": {"v6e-1", nil},
		"flex_start": {"v6e-16", func(p *SlicePool) { p.Provisioning = Provisioning{Model: FlexStart, MaxRunDuration: 168 * time.Hour} }},
		"queued":     {"v6e-16", func(p *SlicePool) { p.Provisioning.Model = Queued }},
		"a shared sub-block": {"v5p-16", func(p *SlicePool) {
			p.Provisioning = Provisioning{Model: FromReservation, Reservation: "projects/a/reservations/r/reservationBlocks/b/reservationSubBlocks/s"}
		}},
		"a block of one's own": {"v5p-16", func(p *SlicePool) {
			p.Provisioning = Provisioning{Model: FromReservation, Reservation: "r/reservationBlocks/b"}
		}},
		"autoscaled": {"v5litepod-16", func(p *SlicePool) { p.Autoscaling = &Autoscaling{Min: 4, Max: 4} }},
		"taints": {"v5litepod-16", func(p *SlicePool) {
			p.Taints = []Taint{{"cloud.google.com/gke-spot", "true", "NoSchedule"}, {"a", "b", "NoSchedule"}, {"a", "b", "NoExecute"}}
		}},
		"values in every form": {"v5litepod-16", func(p *SlicePool) {
			p.Version, p.ServiceAccount, p.ImageType, p.NetworkProfile = "1.34", "1-compute@developer.gserviceaccount.com", "UBUNTU_CONTAINERD", "auto"
			p.Tags, p.SecondaryDisks, p.Upgrade = []string{"a", "a-1"}, []string{"projects/p/global/images/i", "global/images/family/f"}, &Upgrade{"surge", 20, 0}
		}},
		"overrides": {"v5litepod-16", func(p *SlicePool) {
			p.Overrides = `{"config": {"linux_node_config": {"sysctls": {"net.core.somaxconn": "4096"}}}}`
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := testPool(t, c.accelerator, c.edit).Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Overrides are merged field by field; null removes; what they do not name
// stays.
func TestOverridesAreMerged(t *testing.T) {
	p := testPool(t, "v5litepod-16", func(p *SlicePool) {
		p.Overrides = `{"config": {"linux_node_config": {"sysctls": {"net.core.somaxconn": "4096"}}, "workload_metadata_config": null, "oauthScopes": ["a"]}}`
	})
	np, err := p.NodePool(3, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	c := np.GetConfig()
	if c.GetLinuxNodeConfig().GetSysctls()["net.core.somaxconn"] != "4096" || c.GetWorkloadMetadataConfig() != nil || len(c.GetOauthScopes()) != 1 ||
		np.GetName() != "pool-3" || np.GetInitialNodeCount() != 4 || c.GetResourceLabels()[LabelOverrides] != p.overridesHash() {
		t.Errorf("got %v", np)
	}
}

// What the cluster does not allow its nodes is refused before it is asked.
func TestWhatTheClusterAllows(t *testing.T) {
	no := false
	cluster := &containerpb.Cluster{CurrentMasterVersion: "1.35.5-gke.1241000", ReleaseChannel: &containerpb.ReleaseChannel{Channel: containerpb.ReleaseChannel_RAPID}}
	for name, c := range map[string]struct {
		cluster *containerpb.Cluster
		edit    func(*SlicePool)
		want    string
	}{
		"not upgraded on a channel":   {cluster, func(p *SlicePool) { p.AutoUpgrade = &no }, "release channel RAPID"},
		"not upgraded without one":    {&containerpb.Cluster{}, func(p *SlicePool) { p.AutoUpgrade = &no }, ""},
		"newer than the cluster":      {cluster, func(p *SlicePool) { p.Version = "1.99" }, "nodes are never newer"},
		"the cluster's own, in short": {cluster, func(p *SlicePool) { p.Version = "1.35" }, ""},
		"a cluster to come":           {&containerpb.Cluster{}, func(p *SlicePool) { p.Version = "1.99" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := testPool(t, "v5litepod-16", c.edit).allowedBy(c.cluster)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
