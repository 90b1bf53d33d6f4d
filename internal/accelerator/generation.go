package accelerator

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Generation is a TPU generation, by its short name.
type Generation string

// The generations that GKE has machine types for.
const (
	V4    Generation = "v4"
	V5e   Generation = "v5e"
	V5p   Generation = "v5p"
	V6e   Generation = "v6e"   // Trillium
	TPU7x Generation = "tpu7x" // Ironwood
	TPU7  Generation = "tpu7"
)

// Machine is a GKE machine type with TPU chips.
type Machine struct {
	Name  string
	Chips int // per host
}

// short is the machine's size as its name ends: 1t, 4t, 8t.
func (m Machine) short() string { return strconv.Itoa(m.Chips) + "t" }

// Facts is one row of the catalogue: what is true of a whole generation.
type Facts struct {
	Generation Generation
	// NamePrefix begins the generation's type names: v5litepod in v5litepod-16.
	NamePrefix string
	// Aliases are further spellings of the generation that are understood.
	Aliases []string
	// AcceleratorLabel is the value of LabelAccelerator on its nodes.
	AcceleratorLabel string
	// CoresPerChip is the number of TensorCores in a chip.
	CoresPerChip int
	// NameCounts is what the number in a type name counts.
	NameCounts Unit
	// Dimensions of its topologies: 2 or 3.
	Dimensions int
	// Small are the topologies up to 64 chips (two dimensions: all of them).
	// Three-dimensional ones above 64 chips follow a rule, see shapes.go.
	Small []Topology
	// DocumentedChips is the largest slice in Google's documentation, and
	// MaxChips the largest that is accepted (with a warning above the former).
	DocumentedChips, MaxChips int
	// Machines in order of size. MultiHost names the one that slices of
	// several hosts are made of.
	Machines  []Machine
	MultiHost string
	// WorkloadPolicy: a multi-host slice is placed by a Compute workload policy
	// instead of GKE's compact placement with a topology.
	WorkloadPolicy bool
	// BootDisks the machines can boot from; the first is the default.
	BootDisks []string
	// ContainersPerHost is how many containers share a full host by default:
	// one per NUMA node.
	ContainersPerHost int
	FlexStart         bool // flex-start provisioning is offered
	MinGKEVersion     string
	Capacity          Capacity
	Source            string // where the row was read
}

// Unit is what the number in a type name counts.
type Unit string

// The units of type names.
const (
	Chips       Unit = "chips"
	TensorCores Unit = "TensorCores"
)

// Generations lists every generation, oldest first.
func Generations() []Generation {
	gens := make([]Generation, len(table))
	for i := range table {
		gens[i] = table[i].Generation
	}
	return gens
}

// ParseGeneration reads a generation's short name (v5e), the prefix of its
// type names (v5litepod), its node label (tpu-v5-lite-podslice) or a nickname
// (trillium). Errors are *Error.
func ParseGeneration(s string) (Generation, error) {
	if err := tooLong(s); err != nil {
		return "", err
	}
	if f := findGeneration(compact(s)); f != nil {
		return f.Generation, nil
	}
	return "", unknownGeneration(s, compact(s))
}

// Facts returns the generation's row of the catalogue, and false for a
// generation that does not exist.
func (g Generation) Facts() (Facts, bool) {
	if f := find(g); f != nil {
		return *f, true
	}
	return Facts{}, false
}

func find(g Generation) *Facts {
	for i := range table {
		if table[i].Generation == g {
			return &table[i]
		}
	}
	return nil
}

// findGeneration looks up a compacted spelling.
func findGeneration(s string) *Facts {
	for i := range table {
		f := &table[i]
		if s == string(f.Generation) || s == f.NamePrefix || s == f.AcceleratorLabel || slices.Contains(f.Aliases, s) {
			return f
		}
	}
	return nil
}

// unknownGeneration suggests the generations whose spelling is nearest.
func unknownGeneration(input, word string) *Error {
	e := &Error{Kind: UnknownGeneration, Input: input}
	var all []string
	for i := range table {
		f := &table[i]
		all = append(all, string(f.Generation))
		for _, spelling := range append([]string{string(f.Generation), f.NamePrefix}, f.Aliases...) {
			if near(word, spelling) && !slices.Contains(e.Choices, string(f.Generation)) {
				e.Choices = append(e.Choices, string(f.Generation))
			}
		}
	}
	e.Reason = "there is no TPU generation " + strconv.Quote(word) + " on GKE (known: " + strings.Join(all, ", ") + ")"
	return e
}

// near tells whether a person who wrote word may have meant spelling. A letter
// of two is no likeness: v9 is not v4.
func near(word, spelling string) bool {
	if len(word) < 2 {
		return false
	}
	return strings.HasPrefix(spelling, word) || len(word) > 2 && distance(word, spelling) <= 1
}

// distance is the number of single-letter edits between two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func (f *Facts) machine(name string) (Machine, bool) {
	for _, m := range f.Machines {
		if m.Name == name {
			return m, true
		}
	}
	return Machine{}, false
}

// perCount is the number of chips that one unit of a type name stands for,
// as a divisor: 2 where names count TensorCores and a chip has two of them.
func (f *Facts) perCount() int {
	if f.NameCounts == TensorCores {
		return f.CoresPerChip
	}
	return 1
}

// shapes of every generation, worked out once and only when asked for.
var shapes = func() map[Generation]func() *shapeSet {
	m := make(map[Generation]func() *shapeSet, len(table))
	for i := range table {
		f := &table[i]
		m[f.Generation] = sync.OnceValue(func() *shapeSet { return makeShapes(f) })
	}
	return m
}()
