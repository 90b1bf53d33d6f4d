package fakegke

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// machine is what a machine type gives a node.
type machine struct {
	name     string
	family   string  // "ct5lp", "e2"
	vcpus    float64 // e2-medium has one that is shared by two
	memoryGB float64 // GiB, whatever the documentation calls them
	tpu      *accelerator.Facts
	chips    int // of a TPU machine
}

// tpuHosts are vCPUs and memory of TPU machine types (Google's "TPU machine
// types" page; tpu7x-standard-1t and tpu7 by proportion).
var tpuHosts = map[string][2]float64{
	"ct4p-hightpu-4t":   {240, 407},
	"ct5lp-hightpu-1t":  {24, 48},
	"ct5lp-hightpu-4t":  {112, 192},
	"ct5lp-hightpu-8t":  {224, 384},
	"ct5p-hightpu-4t":   {208, 448},
	"ct6e-standard-1t":  {44, 176},
	"ct6e-standard-4t":  {180, 720},
	"ct6e-standard-8t":  {180, 1440},
	"tpu7x-standard-1t": {56, 240},
	"tpu7x-standard-4t": {224, 960},
	"tpu7-standard-1t":  {56, 240},
	"tpu7-standard-4t":  {224, 960},
}

// gbPerVCPU of CPU families, by class. Families that are not here do not exist.
var gbPerVCPU = map[string]map[string]float64{
	"e2":  {"standard": 4, "highmem": 8, "highcpu": 1},
	"n1":  {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9},
	"n2":  {"standard": 4, "highmem": 8, "highcpu": 1},
	"n2d": {"standard": 4, "highmem": 8, "highcpu": 1},
	"n4":  {"standard": 4, "highmem": 8, "highcpu": 2},
	"t2d": {"standard": 4},
	"c2":  {"standard": 4},
	"c2d": {"standard": 4, "highmem": 8, "highcpu": 2},
	"c3":  {"standard": 4, "highmem": 8, "highcpu": 2},
	"c3d": {"standard": 4, "highmem": 8, "highcpu": 2},
	"c4":  {"standard": 3.75, "highmem": 7.75, "highcpu": 2},
	"c4d": {"standard": 3.875, "highmem": 7.75, "highcpu": 1.875},
	"m1":  {"megamem": 14.9, "ultramem": 24},
	"m3":  {"megamem": 15.25, "ultramem": 30.5},
}

// sharedCore machine types: vCPUs that count, and memory.
var sharedCore = map[string][2]float64{
	"e2-micro": {2, 1}, "e2-small": {2, 2}, "e2-medium": {2, 4}, "f1-micro": {1, 0.6}, "g1-small": {1, 1.7},
}

var cpuMachine = regexp.MustCompile(`^([a-z]\d[a-z]?)-([a-z]+)-(\d+)$`)

// machineOf knows a machine type by its name.
func machineOf(name string) (machine, bool) {
	family, _, _ := strings.Cut(name, "-")
	for _, g := range accelerator.Generations() {
		f, _ := g.Facts()
		for _, m := range f.Machines {
			if m.Name == name {
				size := tpuHosts[name]
				return machine{name: name, family: family, vcpus: size[0], memoryGB: size[1], tpu: &f, chips: m.Chips}, true
			}
		}
	}
	if size, ok := sharedCore[name]; ok {
		return machine{name: name, family: family, vcpus: size[0], memoryGB: size[1]}, true
	}
	m := cpuMachine.FindStringSubmatch(name)
	if m == nil {
		return machine{}, false
	}
	per, ok := gbPerVCPU[m[1]][m[2]]
	n, err := strconv.Atoi(m[3])
	if !ok || err != nil || n < 1 || n > 416 {
		return machine{}, false
	}
	return machine{name: name, family: m[1], vcpus: float64(n), memoryGB: per * float64(n)}, true
}

// oneHost is the topology of the chips of a single TPU machine.
func (m machine) oneHost() accelerator.Topology {
	i := slices.IndexFunc(m.tpu.Small, func(t accelerator.Topology) bool { return t.Chips() == m.chips })
	if i < 0 {
		return accelerator.Topology{}
	}
	return m.tpu.Small[i]
}

// hyperdiskOnly reports whether the machine boots from no persistent disk.
func (m machine) hyperdiskOnly() bool {
	return m.tpu != nil && strings.HasPrefix(m.tpu.BootDisks[0], "hyperdisk")
}

// allocatable is what GKE leaves to pods: it reserves a falling share of
// memory and cores, and 100 MiB for eviction (GKE's "node sizing" page).
// Units: millicores and MiB.
func (m machine) allocatable() (milliCPU, mib int64) {
	reserve := func(total float64, steps [][2]float64) (r float64) {
		for _, step := range steps {
			part := min(total, step[0])
			r += part * step[1]
			total -= part
		}
		return r
	}
	const rest = 1e9
	gb := reserve(m.memoryGB, [][2]float64{{4, 0.25}, {4, 0.20}, {8, 0.10}, {112, 0.06}, {rest, 0.02}})
	cores := reserve(m.vcpus, [][2]float64{{1, 0.06}, {1, 0.01}, {2, 0.005}, {rest, 0.0025}})
	if _, shared := sharedCore[m.name]; shared {
		cores = 1.06
	}
	return int64((m.vcpus - cores) * 1000), int64((m.memoryGB-gb)*1024) - 100
}
