package slicepools

import (
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

type model struct {
	Cluster types.String `tfsdk:"cluster"`
	Name    types.String `tfsdk:"name"`
	Pools   []pool       `tfsdk:"pools"`
}

type pool struct {
	Name          string           `tfsdk:"name"`
	Owner         string           `tfsdk:"owner"`
	Managed       bool             `tfsdk:"managed"`
	Accelerator   string           `tfsdk:"accelerator"`
	Topology      string           `tfsdk:"topology"`
	Zone          string           `tfsdk:"zone"`
	Spot          bool             `tfsdk:"spot"`
	ChipsPerSlice int64            `tfsdk:"chips_per_slice"`
	Chips         int64            `tfsdk:"chips"`
	HostsPerSlice int64            `tfsdk:"hosts_per_slice"`
	ReadySlices   int64            `tfsdk:"ready_slices"`
	BusySlices    int64            `tfsdk:"busy_slices"`
	Slices        map[string]slice `tfsdk:"slices"`
}

type slice struct {
	NodePool   string `tfsdk:"node_pool"`
	Status     string `tfsdk:"status"`
	Message    string `tfsdk:"message"`
	Hosts      int64  `tfsdk:"hosts"`
	HostsReady int64  `tfsdk:"hosts_ready"`
	Jobs       []job  `tfsdk:"jobs"`
}

type job struct {
	Namespace string `tfsdk:"namespace"`
	Name      string `tfsdk:"name"`
	Slice     int64  `tfsdk:"slice"`
	Hosts     int64  `tfsdk:"hosts"`
}

// fill joins what GKE lists with what the cluster says about its nodes.
func (m *model) fill(listed []gke.ListedPool, uses map[string]training.PoolUse) {
	m.Pools = []pool{}
	for _, l := range listed {
		if !m.Name.IsNull() && m.Name.ValueString() != l.Name {
			continue
		}
		p := pool{
			Name: l.Name, Owner: l.Owner, Managed: l.Managed, Accelerator: l.Shape.Name, Zone: l.Zone, Spot: l.Spot,
			ChipsPerSlice: int64(l.Shape.Chips), Chips: int64(l.Shape.Chips * len(l.Slices)), HostsPerSlice: int64(l.Shape.Hosts),
			ReadySlices: int64(l.Slices.Ready()), Slices: map[string]slice{},
		}
		if l.Shape.Name != "" {
			p.Topology = l.Shape.Topology.String()
		}
		for i, s := range l.Slices {
			use := uses[s.NodePool]
			one := slice{
				NodePool: s.NodePool, Status: string(s.Status), Message: s.Message,
				Hosts: int64(use.Hosts), HostsReady: int64(use.HostsReady), Jobs: []job{},
			}
			for _, o := range use.Jobs {
				one.Jobs = append(one.Jobs, job{Namespace: o.Namespace, Name: o.Name, Slice: int64(o.Slice), Hosts: int64(o.Hosts)})
			}
			if use.Busy() {
				p.BusySlices++
			}
			p.Slices[strconv.Itoa(i)] = one
		}
		m.Pools = append(m.Pools, p)
	}
}
