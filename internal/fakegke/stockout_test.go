package fakegke

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// A zone with room for so many slices: that many come up of however many are
// made at once, other machines and projects do not count, and what is deleted
// makes room.
func TestRoomForSomeSlices(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		for _, name := range []string{"a", "b", "c", "d"} {
			must[*containerpb.Operation](t)(api.newPool(named(name)))
		}
		up := func() (running []string) {
			for _, p := range api.NodePools(testCluster) {
				if m, _ := machineOf(p.Config.MachineType); m.tpu == nil {
					continue
				}
				switch p.Status {
				case containerpb.NodePool_RUNNING:
					running = append(running, p.Name)
				case containerpb.NodePool_ERROR, containerpb.NodePool_PROVISIONING:
				default:
					t.Errorf("%s is in %s", p.Name, p.Status)
				}
			}
			return running
		}
		pass(10 * time.Minute)
		first := up()
		if len(first) != 3 {
			t.Fatalf("%v are up, want three", first)
		}
		pass(30 * time.Minute)
		if n := len(up()); n != 3 {
			t.Errorf("%d are up after the stockout's end, want 3", n)
		}
		must[*containerpb.Operation](t)(api.DeleteNodePool(context.Background(), &containerpb.DeleteNodePoolRequest{Name: testCluster + "/nodePools/" + first[0]}))
		pass(5 * time.Minute)
		must[*containerpb.Operation](t)(api.newPool(named("e")))
		must[*containerpb.Operation](t)(api.newPool(named("f")))
		pass(40 * time.Minute)
		if n := len(up()); n != 3 {
			t.Errorf("%d are up after one was deleted and two were made, want 3", n)
		}
		if len(api.placed) != 0 {
			t.Errorf("places held by nobody: %v", api.placed)
		}
	}, WithStockout(Stockout{Project: "other"}, Stockout{Zone: "us-west4-b", TPUs: true}, Stockout{Project: "acme", Zone: "us-west4-a", TPUs: true, Room: 3}))
}

// What is still looking when capacity returns comes up at its time's end.
func TestRoomThatReturns(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(named("a")))
		pass(10 * time.Minute)
		api.SetStockout()
		pass(30 * time.Minute)
		if p := api.pool(t, "a"); p.Status != containerpb.NodePool_RUNNING {
			t.Errorf("%s: %s", p.Status, p.StatusMessage)
		}
	}, WithStockout(Stockout{TPUs: true}))
}

func TestHostsThatComeBack(t *testing.T) {
	inTime(t, func(t *testing.T, api *service) {
		must[*containerpb.Operation](t)(api.newPool(named("v5e", spot)))
		pass(3 * time.Minute)
		const path = testCluster + "/nodePools/v5e"
		all := len(api.Nodes(testCluster))
		if !api.Break(path, 1, OutOfStock) || len(api.Nodes(testCluster)) != all-3 {
			t.Errorf("%d nodes after three of %d went", len(api.Nodes(testCluster)), all)
		}
		if !api.Mend(path) || len(api.Nodes(testCluster)) != all {
			t.Errorf("%d nodes after they came back, want %d", len(api.Nodes(testCluster)), all)
		}
		if p := api.pool(t, "v5e"); p.Status != containerpb.NodePool_RUNNING || p.StatusMessage != "" || len(p.Conditions) != 0 {
			t.Errorf("pool: %v", p)
		}
	})
}
