package accelerator

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read is what the traps are about.
type read struct {
	Name, Topology, Machine string
	Chips, Cores, Hosts     int
	Placement               Placement
}

func readOf(s Slice) read {
	return read{s.Name, s.Topology.String(), s.MachineType, s.Chips, s.TensorCores, s.Hosts, s.Placement}
}

// Each is a name that some tool reads otherwise.
func TestResolveTraps(t *testing.T) {
	tests := map[string]struct {
		name string
		want read
	}{
		"v5p counts TensorCores, not chips": {
			"v5p-8", read{"v5p-8", "2x2x1", "ct5p-hightpu-4t", 4, 8, 1, PlacementNone}},
		"eight v5e chips are two hosts, so that several slices can train together": {
			"v5litepod-8", read{"v5litepod-8", "2x4", "ct5lp-hightpu-4t", 8, 8, 2, PlacementCompact}},
		"eight v5e chips on one host, when asked for": {
			"v5litepod-8-8t", read{"v5litepod-8-8t", "2x4", "ct5lp-hightpu-8t", 8, 8, 1, PlacementNone}},
		"eight v6e chips are two hosts too": {
			"v6e-8", read{"v6e-8", "2x4", "ct6e-standard-4t", 8, 8, 2, PlacementCompact}},
		"the most compact shape, not 4x4x256": {
			"v4-8192", read{"v4-8192", "16x16x16", "ct4p-hightpu-4t", 4096, 8192, 1024, PlacementCompact}},
		"a size that is no power of two": {
			"v5p-3072", read{"v5p-3072", "8x12x16", "ct5p-hightpu-4t", 1536, 3072, 384, PlacementCompact}},
		"equal longest sides: the smaller sum": {
			"v5p-2048", read{"v5p-2048", "8x8x16", "ct5p-hightpu-4t", 1024, 2048, 256, PlacementCompact}},
		"another shape of that size keeps its topology in the name": {
			"v5p-4x16x16", read{"v5p-4x16x16", "4x16x16", "ct5p-hightpu-4t", 1024, 2048, 256, PlacementCompact}},
		"tpu7x counts TensorCores": {
			"tpu7x-8", read{"tpu7x-8", "2x2x1", "tpu7x-standard-4t", 4, 8, 1, PlacementNone}},
		"several hosts of tpu7x are placed by a workload policy": {
			"tpu7x-64", read{"tpu7x-64", "2x4x4", "tpu7x-standard-4t", 32, 64, 8, PlacementWorkloadPolicy}},
		"one chip of tpu7x": {
			"tpu7x-1x1x1", read{"tpu7x-2", "1x1x1", "tpu7x-standard-1t", 1, 2, 1, PlacementNone}},
		"one chip of v5e": {
			"v5litepod-1", read{"v5litepod-1", "1x1", "ct5lp-hightpu-1t", 1, 1, 1, PlacementNone}},
		"elongated shapes are real, and sometimes all there is": {
			"v5p-4x4x28", read{"v5p-896", "4x4x28", "ct5p-hightpu-4t", 448, 896, 112, PlacementCompact}},
		"the largest documented tpu7x": {
			"tpu7x-16x16x36", read{"tpu7x-16x16x36", "16x16x36", "tpu7x-standard-4t", 9216, 18432, 2304, PlacementWorkloadPolicy}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Resolve(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, readOf(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolveForgives(t *testing.T) {
	for spelling, want := range map[string]string{
		"v5e-16":                  "v5litepod-16",
		"V5LITEPOD-16":            "v5litepod-16",
		" v5litepod-16\t":         "v5litepod-16",
		"v5lite-16":               "v5litepod-16",
		"tpu-v5-lite-podslice-16": "v5litepod-16",
		"v6e-4X4":                 "v6e-16",
		"trillium-4 x 4":          "v6e-16",
		"ironwood-4x4x4":          "tpu7x-128",
		"v7x-8":                   "tpu7x-8",
		"v5p-8x8x16":              "v5p-2048",
		"v5litepod-2x4-4t":        "v5litepod-8",
		"v5e-2x4-ct5lp":           "",
	} {
		s, err := Resolve(spelling)
		if got := s.Name; got != want || (err == nil) != (want != "") {
			t.Errorf("Resolve(%q) = %q, %v; want %q", spelling, got, err, want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	tests := map[string]struct {
		kind    Kind
		choices []string
	}{
		"":                   {Syntax, nil},
		"v5p":                {Syntax, []string{"v5p-8", "v5p-12288"}},
		"h100":               {Syntax, nil},
		"v5p-":               {Syntax, nil},
		"v5p--8":             {UnknownGeneration, []string{"v5p-8"}},
		"v5p-+8":             {Syntax, nil},
		"v5p-08":             {Syntax, nil},
		"v5p-4x":             {Syntax, nil},
		"v5p-4x4x4x4":        {Syntax, nil},
		"v5p-99999999999999": {NoSuchSize, []string{"v5p-17920"}},
		"v5-16":              {UnknownGeneration, []string{"v5litepod-16", "v5p-16"}},
		"v6p-16":             {UnknownGeneration, []string{"v5p-16", "v6e-16"}},
		"tpu8x-8":            {UnknownGeneration, []string{"tpu7x-8"}},
		"v9-8":               {UnknownGeneration, nil},
		"nvidia-h100-8":      {UnknownGeneration, nil},
		"v5p-12":             {NoSuchSize, []string{"v5p-8", "v5p-16"}},
		"v5p-0":              {NoSuchSize, []string{"v5p-8"}},
		"v6e-000":            {NoSuchSize, []string{"v6e-1"}},
		"v5p-9999999999":     {NoSuchSize, []string{"v5p-17920"}},
		"v5p-7":              {NoSuchSize, []string{"v5p-8"}},
		"v5p-9":              {NoSuchSize, []string{"v5p-8", "v5p-16"}},
		"v5p-17921":          {NoSuchSize, []string{"v5p-17920"}},
		"v5litepod-2":        {NoSuchSize, []string{"v5litepod-1", "v5litepod-4"}},
		"v5litepod-512":      {NoSuchSize, []string{"v5litepod-256"}},
		"v5p-1x1x1":          {NoSuchTopology, []string{"v5p-2x2x1"}},
		"v5p-4x4":            {NoSuchTopology, []string{"v5p-2x2x2", "v5p-2x2x4", "v5p-2x4x4"}},
		"v5litepod-2x8":      {NoSuchTopology, []string{"v5litepod-2x4", "v5litepod-4x4", "v5litepod-4x8"}},
		"v5p-5x5x5":          {NoSuchTopology, []string{"v5p-4x4x4", "v5p-4x4x8"}},
		"v4-16x16x20":        {NoSuchTopology, []string{"v4-16x16x16"}},
		"v5p-8x4x4":          {Rotated, []string{"v5p-4x4x8"}},
		"v5p-1x2x2":          {Rotated, []string{"v5p-2x2x1"}},
		"v6e-4x2":            {Rotated, []string{"v6e-2x4"}},
		"v5litepod-16-8t":    {NoSuchMachine, []string{"ct5lp-hightpu-4t"}},
		"v5p-8-99t":          {NoSuchMachine, []string{"ct5p-hightpu-4t"}},
	}
	for name, tt := range tests {
		s, err := Resolve(name)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("Resolve(%q) = %v, %v; want an *Error", name, s, err)
			continue
		}
		if e.Kind != tt.kind || e.Input == "" && name != "" {
			t.Errorf("Resolve(%q): kind %q, input %q (%v); want kind %q", name, e.Kind, e.Input, err, tt.kind)
		}
		if diff := cmp.Diff(tt.choices, e.Choices); diff != "" {
			t.Errorf("choices for %q: %s", name, diff)
		}
		for _, choice := range e.Choices {
			if e.Kind == NoSuchMachine {
				continue
			}
			if _, err := Resolve(choice); err != nil {
				t.Errorf("Resolve(%q) suggests %q, which is refused: %v", name, choice, err)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	tests := map[string]struct {
		gen     Generation
		top     Topology
		machine string
		want    string // name, or text of the error
	}{
		"generation and topology":         {V5p, MakeTopology(4, 4, 8), "", "v5p-256"},
		"machine type and topology":       {"", MakeTopology(2, 4), "ct5lp-hightpu-8t", "v5litepod-8-8t"},
		"all three":                       {V6e, MakeTopology(2, 4), "ct6e-standard-4t", "v6e-8"},
		"a generation by another name":    {"v5litepod", MakeTopology(4, 4), "", "v5litepod-16"},
		"the machine's size alone":        {V6e, MakeTopology(2, 4), "8t", "v6e-8-8t"},
		"upper case":                      {"V6E", MakeTopology(4, 4), "CT6E-standard-4t", "v6e-16"},
		"rotation":                        {V5p, MakeTopology(8, 4, 4), "", "v5p topologies are written one way only, and 8x4x4 is a rotation; write 4x4x8"},
		"no topology":                     {V5p, Topology{}, "", "no topology of v5p was given"},
		"machine too large":               {V5e, MakeTopology(4, 4), "ct5lp-hightpu-8t", "a v5e slice of topology 4x4 cannot be made of ct5lp-hightpu-8t; try ct5lp-hightpu-4t"},
		"machine of another generation":   {V5e, MakeTopology(4, 4), "ct6e-standard-4t", "machine type ct6e-standard-4t belongs to v6e, not to v5e; try ct5lp-hightpu-4t"},
		"machine with a slip of the pen":  {"", MakeTopology(4, 4), "ct6e-standrd-4t", `"ct6e-standrd-4t" is not a TPU machine type; try ct6e-standard-4t`},
		"neither generation nor machine":  {"", MakeTopology(4, 4), "", "neither a TPU generation nor a machine type was given"},
		"generation that does not exist":  {"v6x", MakeTopology(4, 4), "", `there is no TPU generation "v6x" on GKE (known: v4, v5e, v5p, v6e, tpu7x, tpu7); try v6e or tpu7x`},
		"topology of another generation":  {V5e, MakeTopology(4, 4, 4), "", "v5e has no topology 4x4x4: its topologies have 2 sides; try 4x8, 8x8 or 8x16"},
		"a machine that is not a TPU one": {V5e, MakeTopology(4, 4), "n2-standard-8", `v5e has no machine type "n2-standard-8" for topology 4x4; try ct5lp-hightpu-4t`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Lookup(tt.gen, tt.top, tt.machine)
			got := s.Name
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
