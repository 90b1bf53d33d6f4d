package gke

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
)

// A pool is READY when all of its slices' node pools are up, and only then.
func TestStatusOfAPool(t *testing.T) {
	up, failed, making := Slice{Status: SliceRunning}, Slice{Status: SliceError}, Slice{Status: SliceProvisioning}
	none := Slice{Status: SliceRunning, Outdated: []string{"hosts"}, Hostless: true}
	old := Slice{Status: SliceRunning, Outdated: []string{"node.boot_disk"}}
	for name, c := range map[string]struct {
		slices Slices
		count  int
		want   string
	}{
		"none of none":          {Slices{}, 0, PoolReady},
		"all up":                {Slices{0: up, 1: up}, 2, PoolReady},
		"all up with a gap":     {Slices{0: up, 5: up}, 2, PoolReady},
		"one missing":           {Slices{0: up}, 2, PoolDegraded},
		"one too many":          {Slices{0: up, 1: up, 2: up}, 2, PoolDegraded},
		"one failed":            {Slices{0: up, 1: failed}, 2, PoolDegraded},
		"one being made":        {Slices{0: up, 1: making}, 2, PoolProvisioning},
		"made, and one missing": {Slices{0: making}, 2, PoolDegraded},
		"earlier settings":      {Slices{0: up, 1: old}, 2, PoolOutdated},
		"without hosts":         {Slices{0: up, 1: none}, 2, PoolDegraded},
		"earlier, and one made": {Slices{0: old, 1: making}, 2, PoolProvisioning},
	} {
		if got := c.slices.Status(c.count); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A preempted spot slice is GKE's to heal, and no reason for an apply; the same
// status of other machines is.
func TestRunningWithError(t *testing.T) {
	np := &containerpb.NodePool{Status: containerpb.NodePool_RUNNING_WITH_ERROR, StatusMessage: "preempted", Config: &containerpb.NodeConfig{Spot: true}}
	if s := sliceOf(np); s.Status != SliceRunning || s.Message != "preempted" {
		t.Errorf("spot: %+v", s)
	}
	np.Config.Spot = false
	if s := sliceOf(np); s.Status != SliceError {
		t.Errorf("on demand: %+v", s)
	}
}

func poolsOf(status map[int]containerpb.NodePool_Status) map[int]*containerpb.NodePool {
	out := map[int]*containerpb.NodePool{}
	for i, s := range status {
		out[i] = &containerpb.NodePool{Name: SlicePool{Name: "p"}.NodePoolName(i), Status: s}
	}
	return out
}

// Growing fills the lowest free indices and leaves what is there.
func TestFill(t *testing.T) {
	const up = containerpb.NodePool_RUNNING
	mine := poolsOf(map[int]containerpb.NodePool_Status{1: up, 4: up})
	if diff := cmp.Diff([]int{1, 4, 0, 2, 3}, SlicePool{Name: "p", Count: 5}.fill(mine)); diff != "" {
		t.Error(diff)
	}
}

// Shrinking removes what is broken, then what is idle, the highest index first.
func TestSurplus(t *testing.T) {
	const up, broken = containerpb.NodePool_RUNNING, containerpb.NodePool_ERROR
	mine := poolsOf(map[int]containerpb.NodePool_Status{0: up, 1: broken, 2: up, 3: up})
	busy := func(names ...string) Busy {
		return func(context.Context) (map[string][]string, error) {
			jobs := map[string][]string{}
			for _, n := range names {
				jobs[n] = []string{"default/train[0]"}
			}
			return jobs, nil
		}
	}
	silent := func(context.Context) (map[string][]string, error) { return nil, errors.New("no answer") }
	for name, c := range map[string]struct {
		count  int
		busy   Busy
		force  bool
		gone   []int
		spared int
	}{
		"nothing to do":             {4, busy(), false, nil, 0},
		"the broken one first":      {3, busy("p-3"), false, []int{1}, 0},
		"then the highest idle":     {2, busy("p-3"), false, []int{1, 2}, 0},
		"a busy one stays":          {0, busy("p-3"), false, []int{0, 1, 2}, 1},
		"unless it is forced":       {0, busy("p-3"), true, []int{0, 1, 2, 3}, 0},
		"force takes idle first":    {2, busy("p-3"), true, []int{1, 2}, 0},
		"no answer spares":          {2, silent, false, []int{1}, 1},
		"no answer, but by force":   {2, silent, true, []int{1, 3}, 0},
		"nobody who could be asked": {2, nil, false, []int{1, 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := &slicePoolApply{p: SlicePool{Name: "p", Count: c.count, Force: c.force}, run: SlicePoolRun{Busy: c.busy}}
			gone, kept, spared := a.surplus(t.Context(), mine)
			if diff := cmp.Diff(c.gone, slices.Sorted(maps.Keys(gone))); diff != "" || len(spared) != c.spared || len(kept) != c.spared {
				t.Errorf("gone: %s; kept: %v; spared: %v", diff, kept, spared)
			}
		})
	}
}

// A slice that is down is kept as long as a job is known to run on it; when
// nothing is known, only if it is up in part.
func TestOccupiedByStatus(t *testing.T) {
	jobs := func(context.Context) (map[string][]string, error) {
		return map[string][]string{"p-0": {"default/train[0]"}}, nil
	}
	idle := func(context.Context) (map[string][]string, error) { return nil, nil }
	silent := func(context.Context) (map[string][]string, error) { return nil, errors.New("no answer") }
	for status, c := range map[containerpb.NodePool_Status]struct{ job, unknown bool }{
		containerpb.NodePool_RUNNING:            {true, true},
		containerpb.NodePool_RECONCILING:        {true, true},
		containerpb.NodePool_RUNNING_WITH_ERROR: {true, true},
		containerpb.NodePool_ERROR:              {true, false},
		containerpb.NodePool_PROVISIONING:       {true, false},
		containerpb.NodePool_STOPPING:           {false, false},
	} {
		np := poolsOf(map[int]containerpb.NodePool_Status{0: status})[0]
		kept := func(busy Busy, force bool) bool {
			return SlicePoolRun{Busy: busy}.occupied(t.Context(), force)(np) != nil
		}
		if got := kept(jobs, false); got != c.job {
			t.Errorf("%s with a job: kept is %v", status, got)
		}
		if got := kept(silent, false); got != c.unknown {
			t.Errorf("%s without an answer: kept is %v", status, got)
		}
		if kept(idle, false) || kept(jobs, true) || kept(silent, true) || kept(nil, false) {
			t.Errorf("%s is kept although it is idle or force is set", status)
		}
	}
}

// A slice that is up in part counts with those that run as long as a job runs
// there: an idle one goes first.
func TestSurplusOfBrokenSlices(t *testing.T) {
	jobs := func(context.Context) (map[string][]string, error) {
		return map[string][]string{"p-1": {"default/train[0]"}}, nil
	}
	for force, status := range map[bool]containerpb.NodePool_Status{false: containerpb.NodePool_RUNNING_WITH_ERROR, true: containerpb.NodePool_ERROR} {
		mine := poolsOf(map[int]containerpb.NodePool_Status{0: containerpb.NodePool_RUNNING, 1: status})
		a := &slicePoolApply{p: SlicePool{Name: "p", Count: 1, Force: force}, run: SlicePoolRun{Busy: jobs}}
		if gone, kept, _ := a.surplus(t.Context(), mine); !gone[0] || gone[1] || len(kept) > 0 {
			t.Errorf("force %v: gone %v, kept %v; want the idle one gone", force, gone, kept)
		}
	}
}

// Each facet sees no difference in the node pool that the same specification
// asked for: the second plan is empty.
func TestFacetsOfAFreshSlice(t *testing.T) {
	yes := true
	p := testPool(t, "v5litepod-16", func(p *SlicePool) {
		p.NodeLabels, p.ResourceLabels, p.Tags, p.Taints = map[string]string{"a": "b"}, map[string]string{"c": "d"}, []string{"x"}, []Taint{{"k", "v", "NoExecute"}}
		p.Upgrade, p.AutoRepair, p.Autoscaling = &Upgrade{Strategy: "surge", MaxSurge: 1}, &yes, &Autoscaling{}
		p.DiskSizeGB, p.ImageType, p.ServiceAccount, p.MaxPods = 200, "cos_containerd", "a@b", 20
		p.ImageStreaming, p.Private, p.NetworkProfile, p.SecondaryDisks = &yes, &yes, "auto", []string{"projects/p/global/images/i"}
		p.Version, p.Overrides = "1.34.1-gke.100", `{"config": {"minCpuPlatform": "x"}}`
	})
	np, err := p.NodePool(0, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range facets {
		if !f.same(p, np) {
			t.Errorf("%s differs", f.name)
		}
		if f.nodes && f.same(p, &containerpb.NodePool{Version: "1.33.0-gke.1", Config: &containerpb.NodeConfig{}}) {
			t.Errorf("%s does not notice another node pool", f.name)
		}
	}
}
