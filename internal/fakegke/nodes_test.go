package fakegke

import (
	"regexp"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	corev1 "k8s.io/api/core/v1"
)

func TestNodesOfASliceLookLikeGKEs(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		p := slicePool("v5e")
		p.Config.Spot = true
		p.Config.Labels = map[string]string{"team": "research"}
		p.Config.Taints = []*containerpb.NodeTaint{{Key: "own", Value: "x", Effect: containerpb.NodeTaint_NO_EXECUTE}}
		must[*containerpb.Operation](t)(api.newPool(p))
		pass(3 * time.Minute)
		all := api.Nodes(testCluster)
		if len(all) != 5 {
			t.Fatalf("%d nodes, want 1 + 4", len(all))
		}
		names := map[string]bool{}
		for _, n := range all[1:] {
			names[n.Name] = true
		}
		if len(names) != 4 {
			t.Errorf("names repeat: %v", names)
		}
		n := all[1]
		if !regexp.MustCompile(`^gke-train-v5e-[0-9a-f]{8}-[0-9a-z]{4}$`).MatchString(n.Name) {
			t.Errorf("name %s", n.Name)
		}
		if want := "gce://acme/us-west4-a/" + n.Name; n.Spec.ProviderID != want {
			t.Errorf("provider id %s, want %s", n.Spec.ProviderID, want)
		}
		want := map[string]string{
			"cloud.google.com/gke-nodepool":          "v5e",
			"cloud.google.com/gke-tpu-accelerator":   "tpu-v5-lite-podslice",
			"cloud.google.com/gke-tpu-topology":      "4x4",
			"cloud.google.com/gke-accelerator-count": "4",
			"cloud.google.com/machine-family":        "ct5lp",
			"cloud.google.com/gke-spot":              "true",
			"cloud.google.com/gke-provisioning":      "spot",
			"node.kubernetes.io/instance-type":       "ct5lp-hightpu-4t",
			"topology.kubernetes.io/zone":            "us-west4-a",
			"topology.kubernetes.io/region":          "us-west4",
			"kubernetes.io/hostname":                 n.Name,
			"kubernetes.io/os":                       "linux",
			"kubernetes.io/arch":                     "amd64",
			"team":                                   "research",
		}
		got := map[string]string{}
		for k := range want {
			got[k] = n.Labels[k]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("labels (-want +got):\n", diff)
		}
		taints := []corev1.Taint{{Key: "own", Value: "x", Effect: "NoExecute"}, {Key: "google.com/tpu", Value: "present", Effect: "NoSchedule"}}
		if diff := cmp.Diff(taints, n.Spec.Taints); diff != "" {
			t.Error("taints (-want +got):\n", diff)
		}
		if diff := cmp.Diff(map[string]string{"cpu": "112", "memory": "192Gi", "pods": "15", "google.com/tpu": "4", "ephemeral-storage": "100Gi"}, plain(n.Status.Capacity)); diff != "" {
			t.Error("capacity (-want +got):\n", diff)
		}
		// 112 cores less 60+10+10+270 m; 192 GiB less 10.6 GiB and 100 MiB.
		if diff := cmp.Diff(map[string]string{"cpu": "111650m", "memory": "185653Mi", "pods": "15", "google.com/tpu": "4", "ephemeral-storage": "50Gi"}, plain(n.Status.Allocatable)); diff != "" {
			t.Error("allocatable (-want +got):\n", diff)
		}
		if a, b := n.Labels["cloud.google.com/gce-topology-subblock"], all[2].Labels["cloud.google.com/gce-topology-subblock"]; a == "" || a != b {
			t.Errorf("hosts of one slice are in subblocks %q and %q", a, b)
		}
		if system := all[0]; len(system.Spec.Taints) != 0 || system.Labels["cloud.google.com/gke-tpu-accelerator"] != "" {
			t.Errorf("a CPU node looks like a TPU node: %v", system)
		}
	})
}

func plain(l corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for k, v := range l {
		out[string(k)] = v.String()
	}
	return out
}

func TestTopologyLabelOfEveryKindOfHost(t *testing.T) {
	for _, tc := range []struct{ machine, topology, policy, want string }{
		{"ct5lp-hightpu-1t", "", "", "1x1"},
		{"ct5lp-hightpu-4t", "", "", "2x2"},
		{"ct5lp-hightpu-8t", "", "", "2x4"},
		{"ct5lp-hightpu-4t", "2x4", "", "2x4"},
		{"ct4p-hightpu-4t", "", "", "2x2x1"},
		{"ct5p-hightpu-4t", "2x2x2", "", "2x2x2"},
		{"tpu7x-standard-4t", "", "", "2x2x1"},
		{"tpu7x-standard-4t", "", "wp", "2x2x2"},
	} {
		p := &containerpb.NodePool{Name: "p", InitialNodeCount: 2, Config: &containerpb.NodeConfig{MachineType: tc.machine},
			PlacementPolicy: &containerpb.NodePool_PlacementPolicy{TpuTopology: tc.topology, PolicyName: tc.policy}}
		m, ok := machineOf(tc.machine)
		if !ok {
			t.Fatalf("%s is unknown", tc.machine)
		}
		if got := nodeLabels(p, m)["cloud.google.com/gke-tpu-topology"]; got != tc.want {
			t.Errorf("%s %s %s: label %q, want %q", tc.machine, tc.topology, tc.policy, got, tc.want)
		}
	}
}

func TestNodesOfARegionalPoolAreInAllItsZones(t *testing.T) {
	const c = "projects/acme/locations/us-central1/clusters/r"
	p := &containerpb.NodePool{Name: "cpu", InitialNodeCount: 2, Locations: zonesOf(place{"acme", "us-central1"}), Config: &containerpb.NodeConfig{MachineType: "n2-standard-8"}, Status: containerpb.NodePool_RUNNING}
	zones := map[string]int{}
	for _, n := range buildNodes(c, p) {
		zones[n.Labels["topology.kubernetes.io/zone"]]++
	}
	if diff := cmp.Diff(map[string]int{"us-central1-a": 2, "us-central1-c": 2, "us-central1-f": 2}, zones); diff != "" {
		t.Error(diff)
	}
}

func TestLongNamesAreCutAsGKECutsThem(t *testing.T) {
	got := groupName("projects/p/locations/us-west4-a/clusters/a-cluster-with-a-name/nodePools/and-a-pool-with-a-name", "us-west4-a")
	if !regexp.MustCompile(`^gke-a-cluster-with-a-name-and-a-pool-[0-9a-f]{8}$`).MatchString(got) {
		t.Error(got)
	}
}

func TestMachineTypes(t *testing.T) {
	for name, want := range map[string][2]float64{
		"e2-standard-8": {8, 32}, "e2-medium": {2, 4}, "n1-standard-4": {4, 15}, "n2-highmem-16": {16, 128}, "c3-standard-22": {22, 88},
		"ct5lp-hightpu-4t": {112, 192},
		"e2-standard-0":    {}, "n2-hypermem-4": {}, "ct5lp-hightpu-3t": {}, "": {}, "e2-standard-99999999999999999999": {},
	} {
		m, ok := machineOf(name)
		if ok != (want != [2]float64{}) || m.vcpus != want[0] || m.memoryGB != want[1] {
			t.Errorf("%s: %v vCPUs, %v GiB, want %v", name, m.vcpus, m.memoryGB, want)
		}
	}
}

// A TPU machine of the catalogue without a size would make nodes of nothing.
func TestEveryTPUMachineHasASize(t *testing.T) {
	for _, g := range accelerator.Generations() {
		f, _ := g.Facts()
		for _, want := range f.Machines {
			m, ok := machineOf(want.Name)
			if !ok || m.vcpus == 0 || m.memoryGB == 0 || m.chips != want.Chips || m.oneHost().Chips() != want.Chips {
				t.Errorf("%s: %+v, topology %s", want.Name, m, m.oneHost())
			}
		}
	}
}
