package accelerator

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each field of a filter is refused when it cannot be meant, and only then.
func TestFilterCheck(t *testing.T) {
	v5e, v6e := []Generation{V5e}, []Generation{V6e}
	for name, tt := range map[string]struct {
		filter Filter
		want   string // the machine type, or the part that is refused and the text
	}{
		"nothing":                              {Filter{}, ""},
		"a size that no slice has":             {Filter{Chips: 3}, ""},
		"equal bounds":                         {Filter{MinChips: 4, MaxChips: 4, MinHosts: 1, MaxHosts: 1}, ""},
		"no upper bound":                       {Filter{MinChips: 64, MinHosts: 4}, ""},
		"chips from more to less":              {Filter{MinChips: 5, MaxChips: 4}, "max_chips: the least number of chips, 5, is more than the most, 4"},
		"hosts from more to less":              {Filter{MinHosts: 2, MaxHosts: 1}, "max_hosts: the least number of hosts, 2, is more than the most, 1"},
		"a machine type in upper case":         {Filter{MachineType: "CT6E-Standard-4T"}, "ct6e-standard-4t"},
		"a size, of one generation":            {Filter{Generations: v6e, MachineType: "8t"}, "ct6e-standard-8t"},
		"a size, of any generation":            {Filter{MachineType: "1t"}, `machine_type: "1t" is the size of a TPU machine type`},
		"a machine type of another generation": {Filter{Generations: v5e, MachineType: "ct6e-standard-4t"}, "machine_type: machine type ct6e-standard-4t belongs to v6e, not to v5e; try ct5lp-hightpu-1t"},
		"no machine type":                      {Filter{MachineType: "nope"}, `machine_type: "nope" is not a TPU machine type`},
		"a topology that some have":            {Filter{Topology: MakeTopology(4, 4, 4)}, ""},
		"a rotation":                           {Filter{Topology: MakeTopology(4, 2)}, "topology: v5e topologies are written one way only"},
		"a topology of others":                 {Filter{Generations: v5e, Topology: MakeTopology(4, 4, 4)}, "topology: v5e has no topology 4x4x4"},
		"a topology of none":                   {Filter{Topology: MakeTopology(5, 5, 5)}, "topology: v4 has no topology 5x5x5: above 64"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := tt.filter.Check()
			got := f.MachineType
			var e *Error
			if errors.As(err, &e) {
				got = string(e.Part) + ": " + err.Error()
			}
			if !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Every field of a filter takes part in the choice, alone.
func TestEachFilterChooses(t *testing.T) {
	all := List(Filter{})
	for name, tt := range map[string]struct {
		filter Filter
		keeps  func(Slice) bool
	}{
		"generations":  {Filter{Generations: []Generation{V4, V6e}}, func(s Slice) bool { return s.Generation == V4 || s.Generation == V6e }},
		"topology":     {Filter{Topology: MakeTopology(4, 4)}, func(s Slice) bool { return s.Topology == MakeTopology(4, 4) }},
		"machine type": {Filter{MachineType: "ct6e-standard-8t"}, func(s Slice) bool { return s.MachineType == "ct6e-standard-8t" }},
		"chips":        {Filter{Chips: 64}, func(s Slice) bool { return s.Chips == 64 }},
		"min chips":    {Filter{MinChips: 65}, func(s Slice) bool { return s.Chips >= 65 }},
		"max chips":    {Filter{MaxChips: 64}, func(s Slice) bool { return s.Chips <= 64 }},
		"hosts":        {Filter{Hosts: 4}, func(s Slice) bool { return s.Hosts == 4 }},
		"min hosts":    {Filter{MinHosts: 4}, func(s Slice) bool { return s.Hosts >= 4 }},
		"max hosts":    {Filter{MaxHosts: 4}, func(s Slice) bool { return s.Hosts <= 4 }},
	} {
		var want []Slice
		for _, s := range all {
			if tt.keeps(s) {
				want = append(want, s)
			}
		}
		if diff := cmp.Diff(want, List(tt.filter)); diff != "" || len(want) == 0 || len(want) == len(all) {
			t.Errorf("%s: %d of %d slices, %s", name, len(want), len(all), diff)
		}
	}
}
