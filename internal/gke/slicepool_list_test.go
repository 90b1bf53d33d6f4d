package gke

import (
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Every TPU slice is listed once, under the pool and owner that it belongs to;
// machines without TPUs are not.
func TestGroupSlicePools(t *testing.T) {
	shape, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	np := func(name, machine, topology string, labels map[string]string) *containerpb.NodePool {
		p := &containerpb.NodePool{
			Name: name, Status: containerpb.NodePool_RUNNING, Locations: []string{"us-west4-a"},
			Config: &containerpb.NodeConfig{MachineType: machine, ResourceLabels: labels},
		}
		if topology != "" {
			p.PlacementPolicy = &containerpb.NodePool_PlacementPolicy{TpuTopology: topology}
		}
		return p
	}
	own := func(pool, owner string) map[string]string {
		return Ownership{Kind: KindSlice, Pool: pool, Owner: owner}.Labels()
	}
	got := groupSlicePools([]*containerpb.NodePool{
		np("system", "e2-standard-8", "", nil),
		np("v5e-1", shape.MachineType, "4x4", own("v5e", "team-a")),
		np("v5e-0", shape.MachineType, "4x4", own("v5e", "team-a")),
		np("v5e-2", shape.MachineType, "4x4", own("v5e", "team-b")),
		np("by-hand-0", shape.MachineType, "4x4", map[string]string{"team": "c"}),
		np("new-0", "ct9-future-4t", "", own("new", "")),
		np("copied", shape.MachineType, "4x4", own("v5e", "team-a")), // labels, but not the name
	})
	slices := func(names map[int]string) Slices {
		out := Slices{}
		for i, n := range names {
			out[i] = Slice{NodePool: n, Status: SliceRunning}
		}
		return out
	}
	want := []ListedPool{
		{Name: "by-hand-0", Shape: shape, Zone: "us-west4-a", Slices: slices(map[int]string{0: "by-hand-0"})},
		{Name: "copied", Shape: shape, Zone: "us-west4-a", Slices: slices(map[int]string{0: "copied"})},
		{Name: "new", Managed: true, Zone: "us-west4-a", Slices: slices(map[int]string{0: "new-0"})},
		{Name: "v5e", Owner: "team-a", Managed: true, Shape: shape, Zone: "us-west4-a", Slices: slices(map[int]string{0: "v5e-0", 1: "v5e-1"})},
		{Name: "v5e", Owner: "team-b", Managed: true, Shape: shape, Zone: "us-west4-a", Slices: slices(map[int]string{2: "v5e-2"})},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
