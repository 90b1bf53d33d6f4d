package accelerator

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date (go test -update rewrites it):\n%s", path, diff)
	}
}

// The golden table is for reading: one row per shape, all that follows from it.
func TestEveryShape(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s %-6s %-10s %5s %6s %5s %4s %-18s %-20s %-15s %-18s %4s\n",
		"name", "gen", "topology", "chips", "cores", "hosts", "c/h", "machine", "label", "placement", "boot disk", "cont")
	for _, s := range List(Filter{}) {
		fmt.Fprintf(&b, "%-18s %-6s %-10s %5d %6d %5d %4d %-18s %-20s %-15s %-18s %4d\n",
			s.Name, s.Generation, s.Topology, s.Chips, s.TensorCores, s.Hosts, s.ChipsPerHost, s.MachineType,
			s.AcceleratorLabel, s.Placement, s.BootDisk, s.ContainersPerHost)
	}
	golden(t, "shapes.txt", b.String())
}

func TestListFilters(t *testing.T) {
	names := func(f Filter) []string {
		var names []string
		for _, s := range List(f) {
			names = append(names, s.Name)
		}
		return names
	}
	tests := map[string]struct {
		filter Filter
		want   []string
	}{
		"one size": {Filter{Generations: []Generation{V5p}, Chips: 1024}, []string{"v5p-2048", "v5p-4x16x16", "v5p-4x8x32", "v5p-4x4x64"}},
		"compact":  {Filter{Generations: []Generation{V5p}, Chips: 1024, Compact: true}, []string{"v5p-2048"}},
		"both machines of a shape": {Filter{Generations: []Generation{V5e, V6e}, Chips: 8},
			[]string{"v5litepod-8", "v5litepod-8-8t", "v6e-8", "v6e-8-8t"}},
		"single hosts":     {Filter{Generations: []Generation{V6e}, MaxHosts: 1}, []string{"v6e-1", "v6e-4", "v6e-8-8t"}},
		"range of chips":   {Filter{Generations: []Generation{V6e}, MinChips: 16, MaxChips: 64}, []string{"v6e-16", "v6e-32", "v6e-64"}},
		"range of hosts":   {Filter{Generations: []Generation{V4}, MinHosts: 2, MaxHosts: 8}, []string{"v4-16", "v4-32", "v4-64"}},
		"machine type":     {Filter{MachineType: "ct5lp-hightpu-8t"}, []string{"v5litepod-8-8t"}},
		"topology":         {Filter{Topology: MakeTopology(1, 1, 1)}, []string{"tpu7x-2", "tpu7-2"}},
		"exactly 64 hosts": {Filter{Generations: []Generation{V5e, V6e}, Hosts: 64}, []string{"v5litepod-256", "v6e-256"}},
		"nothing":          {Filter{Generations: []Generation{V5e}, MinChips: 257}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, names(tt.filter)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAlternatives(t *testing.T) {
	for name, want := range map[string][]string{
		"v5litepod-16":   nil,
		"v5litepod-8":    {"v5litepod-8-8t"},
		"v5litepod-8-8t": {"v5litepod-8"},
		"v5p-4x16x16":    {"v5p-2048", "v5p-4x8x32", "v5p-4x4x64"},
	} {
		s, err := Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range s.Alternatives() {
			got = append(got, a.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("alternatives of %s: %s", name, diff)
		}
	}
}

func TestNodeLabels(t *testing.T) {
	s, err := Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"cloud.google.com/gke-tpu-accelerator":   "tpu-v5-lite-podslice",
		"cloud.google.com/gke-tpu-topology":      "4x4",
		"cloud.google.com/gke-accelerator-count": "4",
	}
	if diff := cmp.Diff(want, s.NodeLabels()); diff != "" {
		t.Error(diff)
	}
}

func TestNotesAndWarnings(t *testing.T) {
	text := func(name string) string {
		s, err := Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(s.Notes(), s.Warnings()...), "\n")
	}
	for name, want := range map[string]string{
		"v5p-8":            "this slice has 8 TensorCores and 4 chips",
		"v5litepod-8":      "machine type ct5lp-hightpu-8t makes it 1 host",
		"v5litepod-8-8t":   "This is 1 host of ct5lp-hightpu-8t; machine type ct5lp-hightpu-4t makes it 2 hosts",
		"v5p-4x4x64":       "4 topologies have 1024 chips; a name with the number alone means the most compact, 8x8x16",
		"v5p-17920":        "8960 chips are more than the 6144 that Google documents",
		"tpu7x-8":          "by default 2 containers share it, 2 chips each",
		"tpu7-8":           "not in Google's documentation",
		"tpu7x-16x16x36":   "this slice has 18432 TensorCores and 9216 chips",
		"v5p-16x16x24-4t":  "6144 chips",
		"v5litepod-16":     "",
		"trillium-16x16":   "",
		"v4-16x16x16":      "8192 TensorCores",
		"tpu7x-2":          "2 TensorCores and 1 chip.",
		"v5litepod-4":      "",
		"v6e-8-8t":         "makes it 2 hosts",
		"tpu-v6e-slice-16": "",
	} {
		got := text(name)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("notes on %s:\n%s\nwant: %s", name, got, want)
		}
	}
	if w := text("v5p-16x16x24"); strings.Contains(w, "documents") {
		t.Errorf("the largest documented v5p is warned about: %s", w)
	}
}

// What the table says of a generation must agree with itself.
func TestTable(t *testing.T) {
	spellings := map[string]Generation{}
	for _, f := range table {
		for _, s := range append([]string{string(f.Generation), f.NamePrefix, f.AcceleratorLabel}, f.Aliases...) {
			if other, taken := spellings[s]; taken && other != f.Generation {
				t.Errorf("%q means both %s and %s", s, other, f.Generation)
			}
			spellings[s] = f.Generation
			if g, err := ParseGeneration(s); g != f.Generation || err != nil {
				t.Errorf("ParseGeneration(%q) = %v, %v", s, g, err)
			}
		}
		if _, ok := f.machine(f.MultiHost); !ok {
			t.Errorf("%s: %s makes its multi-host slices but is not among its machines", f.Generation, f.MultiHost)
		}
		if f.Source == "" || f.Capacity.AsOf == "" || len(f.BootDisks) == 0 || f.ContainersPerHost == 0 {
			t.Errorf("%s: incomplete row", f.Generation)
		}
		if f.MaxChips < f.DocumentedChips {
			t.Errorf("%s: %d chips are documented, but %d is the limit", f.Generation, f.DocumentedChips, f.MaxChips)
		}
		for _, top := range f.Small {
			if top.Dimensions() != f.Dimensions || top.Chips() > f.MaxChips {
				t.Errorf("%s: topology %s does not fit", f.Generation, top)
			}
		}
	}
}

func TestCapacity(t *testing.T) {
	v5e, _ := V5e.Facts()
	for location, want := range map[string]bool{"us-west4-a": true, "us-west4": true, "us-west4-b": false, "mars": false} {
		if got, known := v5e.Capacity.Offered(location); got != want || !known {
			t.Errorf("v5e offered in %s: %v, %v", location, got, known)
		}
	}
	ironwood, _ := TPU7x.Facts()
	for location, want := range map[string]bool{"us-central1": true, "us-central1-ai1a": true, "us-central1-a": false, "us-central1-ai": false} {
		if got, known := ironwood.Capacity.Offered(location); got != want || !known {
			t.Errorf("tpu7x offered in %s: %v, %v", location, got, known)
		}
	}
	tpu7, _ := TPU7.Facts()
	if _, known := tpu7.Capacity.Offered("us-west4"); known {
		t.Error("zones of tpu7 are not in the table, but Offered claims to know")
	}
	s, _ := Resolve("tpu7-8")
	if c := s.Describe().Capacity; c.Zones == nil || c.FlexStartZones == nil {
		t.Errorf("lists of a description are nil: %#v", c)
	}
}
