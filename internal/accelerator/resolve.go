package accelerator

import (
	"fmt"
	"strconv"
	"strings"
)

// Resolve turns a type name into a slice. It reads PREFIX-SIZE (v5p-128), where
// SIZE counts TensorCores or chips as the generation's names do, and
// PREFIX-TOPOLOGY (v6e-4x4); either may end in a machine size (v5litepod-8-8t).
// A size that several shapes have means the most compact one: the shortest
// longest side, then the smallest sum of sides. Case and spaces are forgiven.
// Errors are *Error.
func Resolve(name string) (Slice, error) {
	r, err := readName(name)
	if err != nil {
		return Slice{}, err
	}
	return r.facts.slice(r.topology, r.machine), nil
}

// reading is what a type name says.
type reading struct {
	facts     *Facts
	topology  Topology
	machine   Machine
	spelled   bool // the name has the topology, not a count
	onMachine bool // the name has the machine's size
}

func readName(name string) (r reading, fault *Error) {
	if fault := tooLong(name); fault != nil {
		return r, fault
	}
	word := compact(name)
	prefix, rest, found := cutName(word)
	if !found {
		return r, notAName(name, word)
	}
	if r.facts = findGeneration(prefix); r.facts == nil {
		return r, unknownGenerationName(name, word, prefix, rest)
	}
	size, machine, onMachine := strings.Cut(rest, "-")
	if onMachine && machine == "" {
		return r, &Error{Kind: Syntax, Input: name, Choices: []string{strings.TrimSuffix(word, "-")}, Reason: fmt.Sprintf("%q ends in a dash", name)}
	}
	if r.topology, r.spelled, fault = r.facts.shape(name, size); fault != nil {
		return r, fault
	}
	r.onMachine = onMachine
	r.machine, fault = r.facts.choose(r.topology, machine)
	return r, fault
}

// maxInput is longer than any name, topology or machine type, spaces included.
const maxInput = 128

// tooLong refuses what is no name at a glance, and does not repeat it.
func tooLong(s string) *Error {
	if len(s) <= maxInput {
		return nil
	}
	start := strings.ToValidUTF8(s[:16], "")
	return &Error{Kind: Syntax, Input: start, Reason: fmt.Sprintf("%q... has %d characters: that is no TPU name, topology or machine type", start, len(s))}
}

// cutName splits a compacted name before its size: "tpu-v5p-slice-8" at the
// first "-" that a digit follows and that does not belong to a generation's
// spelling.
func cutName(word string) (prefix, rest string, found bool) {
	for i := range len(word) - 1 {
		if word[i] == '-' && word[i+1] >= '0' && word[i+1] <= '9' {
			return word[:i], word[i+1:], true
		}
	}
	return word, "", false
}

// notAName says what a name looks like, by the generation's example if the
// input is one.
func notAName(input, word string) *Error {
	if f := findGeneration(word); f != nil {
		sizes := shapes[f.Generation]().sizes
		largest := sizes[len(sizes)-1]
		for i := len(sizes) - 1; largest > f.DocumentedChips; i-- {
			largest = sizes[i]
		}
		return &Error{Kind: Syntax, Input: input, Choices: []string{f.bare(sizes[0]), f.bare(largest)},
			Reason: fmt.Sprintf("%q names a TPU generation without a size", input)}
	}
	if word == "" {
		return &Error{Kind: Syntax, Input: input, Reason: "no accelerator was given: want a type name such as v5litepod-16 or v5p-4x4x8"}
	}
	e := &Error{Kind: Syntax, Input: input,
		Reason: fmt.Sprintf("%q is not a TPU type name: want GENERATION-SIZE or GENERATION-TOPOLOGY, such as v5litepod-16 or v5p-4x4x8", input)}
	if name, ok := missingDash(word); ok {
		e.Choices = []string{name}
	}
	return e
}

// missingDash reads v5p128 as v5p-128.
func missingDash(word string) (string, bool) {
	for i := len(word) - 1; i > 0; i-- {
		if findGeneration(word[:i]) == nil {
			continue
		}
		if s, err := Resolve(word[:i] + "-" + word[i:]); err == nil {
			return s.Name, true
		}
	}
	return "", false
}

// unknownGenerationName suggests whole names: the near generations with the
// size that was asked for, as far as they have it.
func unknownGenerationName(input, word, prefix, rest string) *Error {
	if e := machineName(input, word); e != nil {
		return e
	}
	e := unknownGeneration(input, prefix)
	var names []string
	for _, g := range e.Choices {
		f := find(Generation(g))
		if s, err := Resolve(f.NamePrefix + "-" + rest); err == nil {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		e.Choices = names
	}
	return e
}

// machineName recognises MACHINETYPE-TOPOLOGY, which is no type name, and says
// what its type name is.
func machineName(input, word string) *Error {
	for i := range table {
		for _, m := range table[i].Machines {
			rest, ok := strings.CutPrefix(word, m.Name)
			if !ok {
				continue
			}
			e := &Error{Kind: Syntax, Input: input, Reason: fmt.Sprintf("%q is a machine type, not a TPU type name: want GENERATION-SIZE or GENERATION-TOPOLOGY", input)}
			if t, ok := parseTopology(strings.TrimPrefix(rest, "-")); ok {
				if s, err := Lookup("", t, m.Name); err == nil {
					e.Choices = []string{s.Name}
				}
			}
			return e
		}
	}
	return nil
}

// shape reads the size of a name: a count or a topology.
func (f *Facts) shape(input, size string) (t Topology, spelled bool, fault *Error) {
	if n, ok := parseCount(size); ok {
		t, fault = f.sized(input, n)
		return t, false, fault
	}
	switch {
	case size != "" && strings.Trim(size, "0") == "":
		t, fault = f.sized(input, 0)
		return t, false, fault
	case len(size) > maxDigits && strings.Trim(size, "0123456789") == "":
		_, fault = f.sized(input, tooMany)
		fault.Reason = fmt.Sprintf("%s has no slice of %s %s", f.Generation, size, f.NameCounts)
		return Topology{}, false, fault
	}
	t, ok := parseTopology(size)
	if !ok {
		return Topology{}, true, &Error{Kind: Syntax, Input: input,
			Reason: fmt.Sprintf("%q is not a TPU type name: after %s- want a number of %s, or a topology such as %s", input, f.NamePrefix, f.NameCounts, f.Small[len(f.Small)-1])}
	}
	if err := f.check(t); err != nil {
		err.Input = input
		for i := range err.Choices {
			err.Choices[i] = f.NamePrefix + "-" + err.Choices[i]
		}
		return Topology{}, true, err
	}
	return t, true, nil
}

// sized finds the most compact topology of a name's count.
func (f *Facts) sized(input string, n int) (Topology, *Error) {
	set, per := shapes[f.Generation](), f.perCount()
	if n%per == 0 {
		if ts := set.byChips[n/per]; len(ts) > 0 {
			return ts[0], nil
		}
	}
	e := &Error{Kind: NoSuchSize, Input: input, Reason: fmt.Sprintf("%s has no slice of %s", f.Generation, f.counted(n))}
	switch {
	case n%per != 0:
		e.Reason += fmt.Sprintf(" (the number counts TensorCores, %d to a chip)", per)
	case per > 1:
		e.Reason += fmt.Sprintf(" (%s)", count(n/per, "chip"))
	}
	// Rounding up keeps an odd count between its neighbours.
	below, above := set.near((n + per - 1) / per)
	if n%per != 0 {
		below, _ = set.near(n/per + 1)
		if len(set.byChips[n/per+1]) > 0 {
			above = n/per + 1
		}
	}
	for _, chips := range []int{below, above} {
		if chips > 0 {
			e.Choices = append(e.Choices, f.bare(chips))
		}
	}
	return Topology{}, e
}

// bare is the name of the most compact slice of chips.
func (f *Facts) bare(chips int) string {
	return f.NamePrefix + "-" + strconv.Itoa(chips*f.perCount())
}

// counted is a number with the unit of the generation's names.
func (f *Facts) counted(n int) string {
	return count(n, strings.TrimSuffix(string(f.NameCounts), "s"))
}

// Lookup finds the slice of a topology. One of gen and machineType may be
// empty: the machine type tells the generation, and without one the shape's
// default is taken. Errors are *Error.
func Lookup(gen Generation, t Topology, machineType string) (Slice, error) {
	s, err := lookup(gen, t, machineType)
	if err != nil {
		return Slice{}, err
	}
	return s, nil
}

func lookup(gen Generation, t Topology, machineType string) (Slice, *Error) {
	for _, text := range []string{string(gen), machineType} {
		if err := tooLong(text); err != nil {
			return Slice{}, err
		}
	}
	machineType = compact(machineType)
	var f *Facts
	if gen != "" {
		if f = findGeneration(compact(string(gen))); f == nil {
			return Slice{}, unknownGeneration(string(gen), compact(string(gen)))
		}
	} else if f = madeOf(machineType); f == nil {
		return Slice{}, unknownMachine(machineType)
	}
	if err := f.check(t); err != nil {
		return Slice{}, err
	}
	m, err := f.choose(t, machineType)
	if err != nil {
		return Slice{}, err
	}
	return f.slice(t, m), nil
}

// madeOf finds the generation of a machine type.
func madeOf(machineType string) *Facts {
	for i := range table {
		if _, ok := table[i].machine(machineType); ok {
			return &table[i]
		}
	}
	return nil
}

// choose picks the machine for a topology; want is "", a machine type or its
// size (8t).
func (f *Facts) choose(t Topology, want string) (Machine, *Error) {
	options := f.machines(t)
	if want == "" {
		return options[0], nil
	}
	for _, m := range options {
		if m.Name == want || m.short() == want {
			return m, nil
		}
	}
	e := &Error{Kind: NoSuchMachine, Input: want}
	for _, m := range options {
		e.Choices = append(e.Choices, m.Name)
	}
	switch _, mine := f.machine(want); {
	case mine:
		e.Reason = fmt.Sprintf("a %s slice of topology %s cannot be made of %s", f.Generation, t, want)
	case madeOf(want) != nil:
		e.Reason = fmt.Sprintf("machine type %s belongs to %s, not to %s", want, madeOf(want).Generation, f.Generation)
	default:
		e.Reason = fmt.Sprintf("%s has no machine type %q for topology %s", f.Generation, want, t)
	}
	return Machine{}, e
}

func unknownMachine(machineType string) *Error {
	if machineType == "" {
		return &Error{Kind: Syntax, Reason: "neither a TPU generation nor a machine type was given"}
	}
	e := &Error{Kind: NoSuchMachine, Input: machineType, Reason: fmt.Sprintf("%q is not a TPU machine type", machineType)}
	nearest := 3 // edits; beyond them a name is not a slip of the pen
	for i := range table {
		for _, m := range table[i].Machines {
			switch d := distance(machineType, m.Name); {
			case d < nearest:
				nearest, e.Choices = d, []string{m.Name}
			case d == nearest:
				e.Choices = append(e.Choices, m.Name)
			}
		}
	}
	return e
}
