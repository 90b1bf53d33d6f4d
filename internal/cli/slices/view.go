package slices

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// The states of a slice.
const (
	free     = "Free"
	busy     = "Busy"
	notReady = "NotReady"
)

var states = []string{free, busy, notReady}

// slice is a slice as json and yaml show it. Keys are ours to keep stable.
type slice struct {
	NodePool    string `json:"node_pool"`
	State       string `json:"state"`
	Accelerator string `json:"accelerator"` // type name, or GKE's label for a shape unknown here
	Generation  string `json:"generation,omitempty"`
	Topology    string `json:"topology"`
	Spot        bool   `json:"spot"`
	Chips       int    `json:"chips,omitempty"`
	Hosts       hosts  `json:"hosts"`
	Jobs        []job  `json:"jobs"`
}

type hosts struct {
	Wanted int `json:"wanted"`
	Joined int `json:"joined"`
	Ready  int `json:"ready"`
}

type job struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Slice     int    `json:"slice"`
	Hosts     int    `json:"hosts"`
}

// slicesOf lists the slices by generation, size and name.
func slicesOf(uses map[string]training.PoolUse) []slice {
	all := make([]slice, 0, len(uses))
	for pool, u := range uses {
		s := slice{
			NodePool: pool, Accelerator: cmp.Or(u.Slice.Name, u.Accelerator), Generation: string(u.Slice.Generation), Topology: u.Topology,
			Spot: u.Spot, Chips: u.Slice.Chips, Hosts: hosts{Wanted: max(u.Slice.Hosts, u.Hosts), Joined: u.Hosts, Ready: u.HostsReady}, Jobs: []job{},
		}
		for _, o := range u.Jobs {
			s.Jobs = append(s.Jobs, job(o))
		}
		switch {
		case u.Busy():
			s.State = busy
		case s.Hosts.Ready < s.Hosts.Wanted:
			s.State = notReady
		default:
			s.State = free
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Chips, b.Chips), cmp.Compare(a.Accelerator, b.Accelerator), natural(a.NodePool, b.NodePool))
	})
	return all
}

// natural orders v5e-2 before v5e-10.
func natural(a, b string) int {
	stem := func(s string) string { return strings.TrimRight(s, "0123456789") }
	sa, sb := stem(a), stem(b)
	if sa == sb {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(sa, sb)
}

func list(found []slice, empty string) output.View {
	v := output.View{Table: output.Table{
		Columns: []output.Column{
			{Name: "node pool"}, {Name: "slice"}, {Name: "topology", Yield: 2}, {Name: "chips", Wide: true}, {Name: "spot", Yield: 3},
			{Name: "state", Style: stateStyle}, {Name: "hosts", Yield: 1}, {Name: "jobs"},
		},
		Empty: empty,
	}}
	for _, s := range found {
		v.Names = append(v.Names, s.NodePool)
		var jobs []string
		for _, j := range s.Jobs {
			jobs = append(jobs, training.Occupant(j).String())
		}
		v.Table.Rows = append(v.Table.Rows, []string{
			s.NodePool, s.Accelerator, s.Topology, fmt.Sprint(s.Chips), yes(s.Spot), s.State,
			fmt.Sprintf("%d/%d", s.Hosts.Ready, s.Hosts.Wanted), strings.Join(jobs, ", "),
		})
	}
	v.Data = append([]slice{}, found...) // [] in json, never null
	return v
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// kind counts the slices that a job could use alike.
type kind struct {
	Accelerator string `json:"accelerator"`
	Topology    string `json:"topology"`
	Spot        bool   `json:"spot"`
	Slices      int    `json:"slices"`
	Free        int    `json:"free"`
	Busy        int    `json:"busy"`
	NotReady    int    `json:"not_ready"`
	FreeChips   int    `json:"free_chips"`
}

func summary(found []slice, empty string) output.View {
	var kinds []kind
	for _, s := range found {
		i := slices.IndexFunc(kinds, func(k kind) bool {
			return k.Accelerator == s.Accelerator && k.Topology == s.Topology && k.Spot == s.Spot
		})
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{Accelerator: s.Accelerator, Topology: s.Topology, Spot: s.Spot})
		}
		k := &kinds[i]
		k.Slices++
		switch s.State {
		case free:
			k.Free++
			k.FreeChips += s.Chips
		case busy:
			k.Busy++
		case notReady:
			k.NotReady++
		}
	}
	v := output.View{Data: append([]kind{}, kinds...), Table: output.Table{
		Columns: []output.Column{
			{Name: "slice"}, {Name: "topology", Yield: 1}, {Name: "spot"}, {Name: "slices"}, {Name: "free"}, {Name: "busy"}, {Name: "not ready"}, {Name: "free chips", Yield: 2},
		},
		Empty: empty,
	}}
	for _, k := range kinds {
		v.Names = append(v.Names, k.Accelerator)
		v.Table.Rows = append(v.Table.Rows, []string{
			k.Accelerator, k.Topology, yes(k.Spot), fmt.Sprint(k.Slices), fmt.Sprint(k.Free), fmt.Sprint(k.Busy), fmt.Sprint(k.NotReady), fmt.Sprint(k.FreeChips),
		})
	}
	return v
}
