package gke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// doomed is a fake GKE whose client dies at the nth request that changes
// anything: before it arrives, or after its effect.
type doomed struct {
	*fakegke.Server
	die    context.CancelFunc
	at     int // 0 is never
	after  bool
	mu     sync.Mutex
	writes int
	bare   bool // at some moment no CPU pool was up
}

func (d *doomed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := false
	if r.Method != http.MethodGet {
		d.mu.Lock()
		d.writes++
		now = d.writes == d.at
		d.mu.Unlock()
	}
	if now && !d.after {
		d.die()
		panic(http.ErrAbortHandler)
	}
	d.Server.ServeHTTP(w, r)
	if len(d.up()) == 0 {
		d.mu.Lock()
		d.bare = true
		d.mu.Unlock()
	}
	if now {
		d.die()
		panic(http.ErrAbortHandler)
	}
}

// up are the machine types of the pools that run, by name.
func (d *doomed) up() map[string]string {
	found := map[string]string{}
	for _, c := range d.Clusters() {
		for _, np := range c.GetNodePools() {
			if s := np.GetStatus(); s == containerpb.NodePool_RUNNING || s == containerpb.NodePool_RECONCILING {
				found[np.GetName()] = np.GetConfig().GetMachineType()
				if np.GetConfig().GetSpot() {
					found[np.GetName()] += " spot"
				}
			}
		}
	}
	return found
}

// run is one apply of a client that lives until it is killed.
func (d *doomed) run(t *testing.T, spec TrainingCluster, at int, after bool) error {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	d.mu.Lock()
	d.die, d.at, d.after, d.writes = die, at, after, 0
	d.mu.Unlock()
	c := client(t, d)
	cluster, err := c.GetCluster(t.Context(), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	return c.UpdateTrainingCluster(ctx, spec, OwnCPUPools(cluster, spec.Owner))
}

func spotPool() (p CPUPool) {
	one, yes := 1, true
	return CPUPool{MachineType: "e2-standard-8", NodeCount: &one, Spot: &yes}
}

// A pool that is made anew is never without one that its pods can run on,
// wherever the client is killed; the next run ends as one that nobody disturbed.
func TestCPUPoolMadeAnewWhereverItIsKilled(t *testing.T) {
	t.Parallel()
	want := map[string]string{"system": "e2-standard-8 spot"}
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			_, fake := against(t)
			d := &doomed{Server: fake}
			spec := trainingCluster("main", nil)
			if _, _, err := client(t, fake).CreateTrainingCluster(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			spec.CPUPools = map[string]CPUPool{"system": spotPool()}
			err := d.run(t, spec, at, after)
			killed := d.writes >= at
			if killed != (err != nil) {
				t.Fatalf("call %d: %v", at, err)
			}
			if err := d.run(t, spec, 0, false); err != nil {
				t.Errorf("the run after a kill at call %d: %v", at, err)
			}
			if diff := cmp.Diff(want, d.up()); diff != "" || d.bare {
				t.Errorf("killed at call %d (after its effect: %v): without a pool: %v, %s", at, after, d.bare, diff)
			}
			if n := fake.Calls()["CreateNodePool"]; n > 3 { // a lost one is sent again
				t.Errorf("killed at call %d: %d creates", at, n)
			}
			if !killed {
				if at != 5 {
					t.Errorf("an undisturbed run has %d calls", at-1)
				}
				break
			}
		}
	}
}

// A configuration that goes back after a kill, or gives the pool up, leaves no
// stand-in behind either.
func TestNoStandInIsLeft(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 4; at++ {
		for name, then := range map[string]map[string]CPUPool{
			"back":     trainingCluster("main", nil).CPUPools,
			"given up": {"other": spotPool()},
			"further":  {"system": {MachineType: "e2-standard-8", NodeCount: spotPool().NodeCount, Spot: spotPool().Spot, MaxPods: 32}},
		} {
			_, fake := against(t)
			d := &doomed{Server: fake}
			spec := trainingCluster("main", nil)
			if _, _, err := client(t, fake).CreateTrainingCluster(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			spec.CPUPools = map[string]CPUPool{"system": spotPool()}
			if err := d.run(t, spec, at, true); err == nil {
				t.Fatal("not killed")
			}
			spec.CPUPools = then
			if err := d.run(t, spec, 0, false); err != nil {
				t.Errorf("%s, killed at call %d: %v", name, at, err)
			}
			if got := slices.Sorted(maps.Keys(d.up())); !slices.Equal(got, slices.Sorted(maps.Keys(then))) || d.bare {
				t.Errorf("%s, killed at call %d: %v, without a pool: %v", name, at, got, d.bare)
			}
		}
	}
}

// What GKE refuses takes nothing down: before the old pool goes its pods stay,
// and afterwards they are on the stand-in. The error says which.
func TestCPUPoolThatCannotBeMadeAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pool string // that there is no capacity for
		up   []string
		says string
	}{
		"the stand-in": {"system-stand-in", []string{"system"}, "system is as it was"},
		"the pool":     {"system", []string{"system-stand-in"}, "its pods run on the stand-in, system-stand-in"},
	} {
		_, fake := against(t)
		d := &doomed{Server: fake}
		spec := trainingCluster("main", nil)
		if _, _, err := client(t, fake).CreateTrainingCluster(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		fake.SetStockout(fakegke.Stockout{Pool: c.pool})
		spec.CPUPools = map[string]CPUPool{"system": spotPool()}
		for range 2 { // the second finds what the first left
			err := d.run(t, spec, 0, false)
			if !errors.Is(err, Stockout) || !strings.Contains(fmt.Sprint(err), c.says) && c.pool != "system" {
				t.Errorf("%s: %v", name, err)
			}
			if says := fmt.Sprint(err); !strings.Contains(says, "or another machine type") || strings.Contains(says, "flex_start") {
				t.Errorf("%s: %v: want advice for machines without TPUs", name, err)
			}
			if got := slices.Sorted(maps.Keys(d.up())); !slices.Equal(got, c.up) || d.bare {
				t.Errorf("%s: %v, without a pool: %v", name, got, d.bare)
			}
		}
		fake.SetStockout()
		if err := d.run(t, spec, 0, false); err != nil {
			t.Errorf("%s, with capacity: %v", name, err)
		}
		if diff := cmp.Diff(map[string]string{"system": "e2-standard-8 spot"}, d.up()); diff != "" || d.bare {
			t.Errorf("%s, in the end: %s", name, diff)
		}
	}
}

// Whatever this provider did not make as a CPU pool is never deleted, also when
// the state has it.
func TestOnlyOwnPoolsAreDeleted(t *testing.T) {
	t.Parallel()
	c, fake := against(t)
	spec := trainingCluster("main", nil)
	spec.CPUPools["second"] = spec.CPUPools["system"]
	if _, _, err := c.CreateTrainingCluster(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateNodePool(t.Context(), spec.Name, &containerpb.NodePool{Name: "theirs", InitialNodeCount: 1, Config: &containerpb.NodeConfig{MachineType: "e2-standard-2"}}, nil); err != nil {
		t.Fatal(err)
	}
	delete(spec.CPUPools, "second")
	if err := c.UpdateTrainingCluster(t.Context(), spec, []string{"second", "system", "theirs"}); err != nil {
		t.Fatal(err)
	}
	found := fake.Clusters()[0]
	var got []string
	for _, np := range found.GetNodePools() {
		got = append(got, np.GetName())
	}
	if slices.Sort(got); !slices.Equal(got, []string{"system", "theirs"}) {
		t.Error(got)
	}
	if got := ForeignPools(found); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("foreign: %v", got)
	}
	spec.CPUPools["theirs"] = spec.CPUPools["system"]
	if err := c.UpdateTrainingCluster(t.Context(), spec, []string{"system"}); !errors.Is(err, AlreadyExists) || !strings.Contains(err.Error(), "--labels tpu-provider-kind=cpu-pool") {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := c.UpdateTrainingCluster(t.Context(), spec, []string{"system", "theirs"}); err != nil {
		t.Errorf("a pool that was imported: %v", err)
	}
}

// A CPU pool that an interrupted run made, and lists do not show yet, is
// recognised as it is for slices; then it is made what is wanted now.
func TestCPUPoolThatIsShownLate(t *testing.T) {
	for what, c := range map[string]struct {
		owner, want string
		resized     bool
	}{
		"ours":      {owner: "me", resized: true},
		"another's": {owner: "you", want: `its owner is "you"`},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec, began := trainingCluster("main", nil), time.Now()
				spec.Name, spec.Owner = name, "me"
				theirs, three := spec, 3
				theirs.Owner = c.owner
				made := theirs.cpuPool("system", CPUPool{MachineType: "e2-standard-8", NodeCount: &three}, theirs.ownershipOfPool("", began))
				made.Status = containerpb.NodePool_RUNNING
				g, resized := newCloud(0), false
				g.script = func(method, path string) *http.Response {
					switch {
					case strings.HasSuffix(path, "/nodePools") && method == http.MethodPost:
						return busy(409, "Already exists: "+path+"/system.")
					case strings.HasSuffix(path, "/nodePools") && time.Since(began) < 20*time.Second:
						return reply(&containerpb.ListNodePoolsResponse{})
					case strings.HasSuffix(path, "/nodePools"):
						return reply(&containerpb.ListNodePoolsResponse{NodePools: []*containerpb.NodePool{made}})
					case strings.HasSuffix(path, "/nodePools/system:setSize"):
						resized = true
						return reply(&containerpb.Operation{Name: "resize", Status: containerpb.Operation_DONE})
					}
					return nil
				}
				err := g.client(t, nil).updateCPUPools(t.Context(), spec, nil)
				if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, AlreadyExists) || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if took := time.Since(began); resized != c.resized || took < 20*time.Second || took > 30*time.Second {
					t.Errorf("resized: %v, after %s", resized, took)
				}
			})
		})
	}
}

// A pool that is added to a cluster without Workload Identity, of which the
// configuration says nothing, does not ask for what needs it.
func TestCPUPoolWithoutWorkloadIdentity(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		c, fake := against(t)
		if _, _, err := c.CreateTrainingCluster(t.Context(), trainingCluster("main", Settings{"workload_identity": on})); err != nil {
			t.Fatal(err)
		}
		spec := trainingCluster("main", nil)
		spec.CPUPools["heads"] = spec.CPUPools["system"]
		if err := c.UpdateTrainingCluster(t.Context(), spec, []string{"system"}); err != nil {
			t.Fatal(err)
		}
		for _, np := range fake.Clusters()[0].GetNodePools() {
			if got := np.GetConfig().GetWorkloadMetadataConfig() != nil; got != on {
				t.Errorf("Workload Identity %v, the metadata server of %s %v", on, np.GetName(), got)
			}
		}
	}
}

func TestNamesOfStandIns(t *testing.T) {
	u := &cpuUpdate{have: map[string]*containerpb.NodePool{"taken-stand-in": {}}, t: TrainingCluster{CPUPools: map[string]CPUPool{"wanted-stand-in": {}}}}
	for _, pool := range []string{"system", "taken", "wanted", strings.Repeat("a", MaxName), strings.Repeat("a", 24) + "-" + strings.Repeat("b", 15)} {
		name := u.standInName(pool)
		_, there := u.have[name]
		_, wanted := u.t.CPUPools[name]
		if len(name) > MaxName || there || wanted || !strings.HasSuffix(name, standInSuffix) || strings.Contains(name, "--") || name != u.standInName(pool) {
			t.Errorf("%s: %s", pool, name)
		}
	}
	if a, b := u.standInName(strings.Repeat("a", 40)), u.standInName(strings.Repeat("a", 39)); a == b {
		t.Errorf("two pools, one stand-in: %s", a)
	}
}
