package sandbox

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Limits that are set from outside hold back what is made, and outlive the
// process.
func TestLimitsOfARunningSandbox(t *testing.T) {
	dir := t.TempDir()
	s := start(t, WithDir(dir))
	for _, l := range []Limit{
		{Kind: Quota, Count: 64},
		{Kind: Quota, Region: "us-west4", Count: 16},
		{Kind: Stockout, Zone: DefaultZone, Count: 3},
		{Kind: Quota, Count: 32}, // in the place of the first
		{Kind: Reservation, Name: "team", Zone: DefaultZone, Machine: "ct5lp-hightpu-4t", Count: 8},
	} {
		if _, err := SetLimit(t.Context(), dir, l); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, s)
	s = start(t, WithDir(dir))
	limits, err := LimitsOf(t.Context(), dir)
	if err != nil || len(limits) != 4 || limits[0].ID != "1" || limits[0].Count != 32 {
		t.Fatalf("after a restart: %+v, %v", limits, err)
	}
	c := client(t, s)
	createCluster(t, c, "train")
	create := func() error {
		_, err := c.CreateNodePool(t.Context(), &containerpb.CreateNodePoolRequest{Parent: parent + "/clusters/train", NodePool: &containerpb.NodePool{
			Name: "v5e", InitialNodeCount: 8,
			Config:            &containerpb.NodeConfig{MachineType: "ct5lp-hightpu-4t"},
			PlacementPolicy:   &containerpb.NodePool_PlacementPolicy{Type: containerpb.NodePool_PlacementPolicy_COMPACT, TpuTopology: "4x8"},
			MaxPodsConstraint: &containerpb.MaxPodsConstraint{MaxPodsPerNode: 15},
		}})
		return err
	}
	if err := create(); err == nil || !strings.Contains(err.Error(), "project has a quota of '16.0'") {
		t.Errorf("beyond the quota: %v", err)
	}
	if gone, err := RemoveLimits(t.Context(), dir, "2"); err != nil || len(gone) != 1 {
		t.Fatalf("%+v, %v", gone, err)
	}
	if err := create(); err != nil {
		t.Errorf("within the quota that is left: %v", err)
	}
	if gone, err := RemoveLimits(t.Context(), dir); err != nil || len(gone) != 3 {
		t.Errorf("%+v, %v", gone, err)
	}
}

func TestLimitsThatAreRefused(t *testing.T) {
	s := start(t)
	for want, l := range map[string]Limit{
		`kind "typo"`:                        {Kind: "typo"},
		`"us-west4" is not a zone`:           {Kind: Stockout, Zone: "us-west4"},
		`trouble "BAD"`:                      {Kind: Stockout, Trouble: "BAD"},
		"-1 is less than nothing":            {Kind: Stockout, Count: -1},
		`"us-west4-a" is not a region`:       {Kind: Quota, Region: "us-west4-a"},
		`no TPU machine type begins with`:    {Kind: Quota, Machine: "n2"},
		`want its name alone`:                {Kind: Reservation, Name: "projects/p/reservations/r"},
		`want the zone it is in`:             {Kind: Reservation, Name: "r", Machine: "ct5lp-hightpu-4t"},
		`machine type "e2-medium": want one`: {Kind: Reservation, Name: "r", Zone: DefaultZone, Machine: "e2-medium"},
	} {
		if _, err := SetLimit(t.Context(), s.Dir(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	if _, err := RemoveLimits(t.Context(), s.Dir(), "7"); err == nil || !strings.Contains(err.Error(), "there is no limit 7") {
		t.Errorf("an unknown limit: %v", err)
	}
	if _, err := SetHosts(t.Context(), s.Dir(), Hosts{Pool: "v5e-0"}); err == nil || !strings.Contains(err.Error(), "there is no node pool v5e-0, nor any other") {
		t.Errorf("an unknown node pool: %v", err)
	}
	for _, path := range []string{capacityPath, hostsPath} {
		resp, err := http.Post(s.Endpoint()+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without the token: %s", path, resp.Status)
		}
	}
	var stopped *NotRunningError
	if _, err := LimitsOf(t.Context(), t.TempDir()); !errors.As(err, &stopped) {
		t.Errorf("where no sandbox runs: %v", err)
	}
}

// Hosts go and come back, of the node pool that a short name means.
func TestHostsOfANodePool(t *testing.T) {
	s := start(t)
	createCluster(t, client(t, s), "train")
	pools := s.fake.NodePools(parent + "/clusters/train")
	if len(pools) != 1 || pools[0].Name != "system" {
		t.Fatalf("node pools: %v", pools)
	}
	set := func(h Hosts, want string) {
		t.Helper()
		got, err := SetHosts(t.Context(), s.Dir(), h)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %+v, %v, want %q", h, got, err, want)
		}
	}
	set(Hosts{Pool: "system", All: true}, "has lost no hosts")
	set(Hosts{Pool: "pool"}, "there is no node pool pool; there are "+short(parent+"/clusters/train/nodePools/system"))
	set(Hosts{Pool: "system", Left: 2}, "has 2 hosts: 2 cannot be what is left")
	set(Hosts{Pool: "train/system"}, "")
	if n := len(s.fake.Nodes(parent + "/clusters/train")); n != 0 {
		t.Errorf("%d nodes, want none", n)
	}
	set(Hosts{Pool: "system", All: true}, "")
	if n := len(s.fake.Nodes(parent + "/clusters/train")); n != 2 {
		t.Errorf("%d nodes, want both", n)
	}
}
