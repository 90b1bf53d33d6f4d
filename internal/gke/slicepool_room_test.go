package gke

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// A cluster that cannot hold the hosts and their pods is told at plan, with how
// many slices fit and which max_pods would do; what may be otherwise is a
// warning.
func TestRoom(t *testing.T) {
	ranges := func(pods, nodes string, others ...*containerpb.NodePool) *containerpb.Cluster {
		return &containerpb.Cluster{NodePools: others, IpAllocationPolicy: &containerpb.IPAllocationPolicy{
			ClusterIpv4CidrBlock: pods, NodeIpv4CidrBlock: nodes, ClusterSecondaryRangeName: "pods"}}
	}
	other := func(name string, nodes int32, edit func(*containerpb.NodePool)) *containerpb.NodePool {
		np := &containerpb.NodePool{Name: name, InitialNodeCount: nodes, PodIpv4CidrSize: 24, Locations: []string{"us-west4-a"}, Config: &containerpb.NodeConfig{}}
		if edit != nil {
			edit(np)
		}
		return np
	}
	slice := func(np *containerpb.NodePool) { np.Config.ResourceLabels = map[string]string{LabelKind: KindSlice} }
	count := func(n int) func(*SlicePool) { return func(p *SlicePool) { p.Count = n } }
	extra := ranges("10.0.0.0/26", "")
	extra.IpAllocationPolicy.AdditionalPodRangesConfig = &containerpb.AdditionalPodRangesConfig{PodRangeNames: []string{"more"}}
	for name, c := range map[string]struct {
		accelerator   string
		edit          func(*SlicePool)
		cluster       *containerpb.Cluster
		refused, warn []string
	}{
		"no cluster yet":      {"v5litepod-256", count(4), &containerpb.Cluster{}, nil, nil},
		"enough":              {"v5litepod-16", count(2), ranges("10.0.0.0/24", "10.1.0.0/28"), nil, nil},
		"pods":                {"v5litepod-16", count(3), ranges("10.0.0.0/24", ""), []string{"take 384 addresses for pods, 32 per host", "10.0.0.0/24 has 256", "at most 2 slices fit", "max_pods = 8", "--additional-pod-ipv4-ranges"}, nil},
		"many pods":           {"v5litepod-16", func(p *SlicePool) { p.MaxPods = 110 }, ranges("10.0.0.0/22", ""), []string{"256 per host for up to 110 pods", "at most 1 slices fit", "node.max_pods = 55"}, nil},
		"beside other slices": {"v5litepod-16", count(2), ranges("10.0.0.0/24", "", other("x-0", 1, slice)), []string{"of which other node pools take 256", "at most 0 slices fit"}, nil},
		"beside other nodes":  {"v5litepod-16", count(2), ranges("10.0.0.0/24", "", other("system", 1, nil)), nil, []string{"Pods may not have enough addresses"}},
		"a range of its own": {"v5litepod-16", count(2), ranges("10.0.0.0/24", "", other("x-0", 1, func(np *containerpb.NodePool) {
			slice(np)
			np.NetworkConfig = &containerpb.NodeNetworkConfig{PodRange: "own"}
		})), nil, nil},
		"slices of this pool":    {"v5litepod-16", count(2), ranges("10.0.0.0/24", "", other("pool-0", 4, slice)), nil, nil},
		"more ranges":            {"v5litepod-16", count(3), extra, nil, nil},
		"own range by overrides": {"v5litepod-16", func(p *SlicePool) { p.Overrides = `{"networkConfig": {"podRange": "own"}}` }, ranges("10.0.0.0/26", ""), nil, nil},
		"small range by overrides": {"v5litepod-16", func(p *SlicePool) {
			p.Overrides = `{"networkConfig": {"createPodRange": true, "podIpv4CidrBlock": "10.9.0.0/26"}}`
		}, &containerpb.Cluster{},
			[]string{"the node pools' pod range 10.9.0.0/26 has 64", "at most 0 slices fit"}, nil},
		"a size, no range":   {"v5litepod-16", count(2), ranges("/14", ""), nil, nil},
		"nodes":              {"v5litepod-16", count(4), ranges("", "10.1.0.0/28"), []string{"need 16 addresses for nodes", "has 12", "at most 3 slices"}, nil},
		"nodes of a cluster": {"v5litepod-256", count(200), ranges("", "", other("x", 3000, nil)), nil, []string{"would have 15800 nodes", "15000"}},
		"far too many nodes": {"v5litepod-256", count(1000), ranges("", "", other("x", 2000, nil)), []string{"would have 66000 nodes", "at most 984 slices fit"}, []string{}},
		"a huge slice":       {"v5p-12288", count(1), ranges("", ""), nil, []string{"1536 nodes", "1000 nodes per pool and zone"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := testPool(t, c.accelerator, c.edit)
			np, err := p.NodePool(0, time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			warnings, err := p.room(c.cluster, np)
			if (err != nil) != (c.refused != nil) || (len(warnings) > 0) != (len(c.warn) > 0) {
				t.Fatalf("refused: %v; warned: %q", err, warnings)
			}
			for _, w := range c.refused {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			for _, w := range c.warn {
				if !strings.Contains(strings.Join(warnings, "\n"), w) {
					t.Errorf("%q lacks %q", warnings, w)
				}
			}
		})
	}
}
