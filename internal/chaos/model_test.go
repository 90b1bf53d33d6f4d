package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
)

func nodePools(names ...string) map[string]*containerpb.NodePool {
	out := map[string]*containerpb.NodePool{}
	for _, n := range names {
		out[n] = &containerpb.NodePool{Name: n, Status: containerpb.NodePool_RUNNING, Config: &containerpb.NodeConfig{MachineType: four.machine, DiskSizeGb: 100}}
	}
	return out
}

func know(names ...string) state {
	s := state{names: map[string]bool{}}
	for _, n := range names {
		s.names[n] = true
	}
	return s
}

// A judge that lets everything pass proves nothing.
func TestWhatTheModelCatches(t *testing.T) {
	grown := scenario{before: slicesOf(1), after: slicesOf(2)}.model()
	all := []string{"main", systemPool, "slices-0", "slices-1"}
	good := func() facts {
		return facts{clusters: []string{"main"}, pools: nodePools(all[1:]...), created: map[string]int{"slices-1": 1}}
	}
	for name, c := range map[string]struct {
		world func(*facts)
		known []string
		want  string
	}{
		"as it should be":                 {func(*facts) {}, all, ""},
		"a slice that state forgot":       {func(*facts) {}, all[:3], "orphans: node pool slices-1"},
		"a cluster that state forgot":     {func(*facts) {}, all[1:], "orphans: cluster main"},
		"a slice too many":                {func(f *facts) { f.pools = nodePools(append(all[1:], "slices-7")...) }, append(all, "slices-7"), "duplicates: node pool slices-7"},
		"a slice that was made twice":     {func(f *facts) { f.created["slices-1"] = 2 }, all, "duplicates: slices-1 was created 2 times"},
		"a healthy slice that was remade": {func(f *facts) { f.deleted = map[string]int{"slices-0": 1}; f.created["slices-0"] = 1 }, all, "losses: slices-0 was deleted 1 times"},
		"a slice that is missing":         {func(f *facts) { delete(f.pools, "slices-0") }, all, "losses: node pool slices-0"},
		"a slice that failed":             {func(f *facts) { f.pools["slices-0"].Status = containerpb.NodePool_ERROR }, all, "losses: node pool slices-0 is ERROR"},
		"a slice of another machine":      {func(f *facts) { f.pools["slices-0"].Config.MachineType = "n1" }, all, "losses: node pool slices-0 has machines n1"},
		"a policy that is left":           {func(f *facts) { f.policies = []string{"p"} }, all, "orphans: workload policy p\nduplicates: 1 workload policies"},
		"no cluster":                      {func(f *facts) { f.clusters = nil }, all, "losses: cluster main"},
	} {
		f := good()
		c.world(&f)
		got := grown.judge(f, know(c.known...))
		if c.want == "" && !got.ok() || !strings.Contains(got.String(), c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatAScenarioMayMakeAndRemove(t *testing.T) {
	for _, c := range []struct {
		s             scenario
		made, removed []string
	}{
		{scenario{after: slicesOf(1)}, []string{"slices-0", "main"}, nil},
		{scenario{before: slicesOf(1)}, nil, []string{"slices-0", "main"}},
		{scenario{before: slicesOf(2), after: slicesOf(3)}, []string{"slices-2"}, nil},
		{scenario{before: slicesOf(2), after: slicesOf(1)}, nil, []string{"slices-1"}},
		{scenario{before: slicesOf(1), after: &pool{accelerator: "v5p-8", count: 1}, remade: true}, []string{"slices-0"}, []string{"slices-0"}},
		{scenario{before: &one, after: &oneLater}, []string{"system", "system-stand-in", "heads"}, []string{"system", "system-stand-in", "old"}},
	} {
		m := c.s.model()
		if d := cmp.Diff(c.made, m.made) + cmp.Diff(c.removed, m.removed); d != "" {
			t.Errorf("%s to %s: %s", c.s.before, c.s.after, d)
		}
	}
}

func TestReadState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "terraform.tfstate")
	if s, err := readState(file); err != nil || s.count != 0 {
		t.Errorf("no file: %+v, %v", s, err)
	}
	const content = `{"resources": [
		{"type": "tpu_training_cluster", "name": "main", "instances": [{"attributes": {"name": "main", "cpu_pools": {"system": {}}}}]},
		{"type": "tpu_slice_pool", "name": "s", "instances": [{"status": "tainted", "attributes": {"name": "slices", "placement_policy": "p", "slices": {"0": {"node_pool": "slices-0"}}}}]}
	]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readState(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"main", "p", "slices-0", "system"}, names(s.names)); d != "" {
		t.Error(d)
	}
	if s.count != 2 || len(s.tainted) != 1 {
		t.Errorf("%+v", s)
	}
}
