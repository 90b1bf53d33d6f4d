package accelerator

import "fmt"

// Part is one of the settings that together ask for a slice.
type Part string

// The parts of a Choice.
const (
	PartName       Part = "name"
	PartGeneration Part = "generation"
	PartTopology   Part = "topology"
	PartMachine    Part = "machine_type"
)

// Choice asks for a slice in parts; empty parts are not given. What is given
// twice must agree: a choice is refused rather than read as one of two things.
type Choice struct {
	// Name is a type name, or a generation alone where Topology is given.
	Name                              string
	Generation, Topology, MachineType string
}

// Resolve finds the slice. Errors are *Error, whose Part says which part to
// change.
func (c Choice) Resolve() (Slice, error) {
	if c.Name == "" {
		return c.lookup(c.Generation, PartGeneration)
	}
	if findGeneration(compact(c.Name)) != nil {
		if c.Topology == "" {
			e := notAName(c.Name, compact(c.Name))
			e.Part, e.Reason = PartName, e.Reason+" or topology"
			return Slice{}, e
		}
		return c.lookup(c.Name, PartName)
	}
	named, err := readName(c.Name)
	if err != nil {
		err.Part = PartName
		return Slice{}, err
	}
	return c.agree(named)
}

// lookup finds the slice of a choice without a type name.
func (c Choice) lookup(generation string, part Part) (Slice, error) {
	t, err := c.topology()
	if err != nil {
		return Slice{}, err
	}
	s, fault := lookup(Generation(generation), t, c.MachineType)
	if fault != nil {
		switch fault.Kind {
		case UnknownGeneration, Syntax:
			fault.Part = part
		case NoSuchMachine:
			fault.Part = PartMachine
		default:
			fault.Part = PartTopology
		}
		return Slice{}, fault
	}
	return s, nil
}

func (c Choice) topology() (Topology, error) {
	if c.Topology == "" {
		return Topology{}, &Error{Kind: Syntax, Part: PartTopology, Reason: "no topology was given"}
	}
	t, err := parseTopologyText(c.Topology)
	if err != nil {
		err.Part = PartTopology
		return Topology{}, err
	}
	return t, nil
}

// agree holds the other parts against what the name says.
func (c Choice) agree(named reading) (Slice, error) {
	f, t, m := named.facts, named.topology, named.machine
	if c.Topology != "" {
		given, err := c.topology()
		if err != nil {
			return Slice{}, err
		}
		if err := f.check(given); err != nil {
			err.Part = PartTopology
			return Slice{}, err
		}
		if given != t && (named.spelled || given.Chips() != t.Chips()) {
			return Slice{}, &Error{Kind: Contradiction, Part: PartTopology, Input: c.Topology,
				Reason: fmt.Sprintf("%s is %s (%s), and topology %s has %s: they are different slices; leave topology out, or name %s",
					c.Name, t, count(t.Chips(), "chip"), given, count(given.Chips(), "chip"), f.slice(given, f.machines(given)[0]).Name)}
		}
		if given != t {
			t, m = given, f.machines(given)[0]
		}
	}
	if c.MachineType == "" {
		return f.slice(t, m), nil
	}
	given, err := f.choose(t, compact(c.MachineType))
	if err != nil {
		err.Part = PartMachine
		return Slice{}, err
	}
	if named.onMachine && given != m {
		return Slice{}, &Error{Kind: Contradiction, Part: PartMachine, Input: c.MachineType,
			Reason: fmt.Sprintf("%s is made of %s, not of %s: leave machine_type out, or name %s", c.Name, m.Name, given.Name, f.slice(t, given).Name)}
	}
	return f.slice(t, given), nil
}
