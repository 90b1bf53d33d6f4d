package accelerator

import (
	"fmt"
	"slices"
	"strconv"
)

// The further parts of a Filter that an Error names.
const (
	PartChips Part = "max_chips"
	PartHosts Part = "max_hosts"
)

// Check refuses a filter that can match nothing because a value of it is
// wrong, and returns it with the machine type as Google writes it. A filter
// that merely matches nothing is not refused. Errors are *Error with a Part.
func (f Filter) Check() (Filter, error) {
	for _, r := range []struct {
		part     Part
		of       string
		min, max int
	}{{PartChips, "chips", f.MinChips, f.MaxChips}, {PartHosts, "hosts", f.MinHosts, f.MaxHosts}} {
		if r.max > 0 && r.min > r.max {
			return f, &Error{Kind: Contradiction, Part: r.part, Input: strconv.Itoa(r.max),
				Reason: fmt.Sprintf("the least number of %s, %d, is more than the most, %d", r.of, r.min, r.max)}
		}
	}
	if f.MachineType != "" {
		machine, err := f.machine()
		if err != nil {
			err.Part = PartMachine
			return f, err
		}
		f.MachineType = machine
	}
	if !f.Topology.IsZero() {
		if err := f.checkTopology(); err != nil {
			err.Part = PartTopology
			return f, err
		}
	}
	return f, nil
}

// facts are the rows that the filter chooses.
func (f Filter) facts() []*Facts {
	var rows []*Facts
	for i := range table {
		if len(f.Generations) == 0 || slices.Contains(f.Generations, table[i].Generation) {
			rows = append(rows, &table[i])
		}
	}
	return rows
}

// machine finds the machine type among those of the generations; its size
// alone will do where that is one machine type.
func (f Filter) machine() (string, *Error) {
	word := compact(f.MachineType)
	var sized []string
	for _, row := range f.facts() {
		for _, m := range row.Machines {
			if m.Name == word {
				return m.Name, nil
			}
			if m.short() == word {
				sized = append(sized, m.Name)
			}
		}
	}
	if len(sized) == 1 {
		return sized[0], nil
	}
	if _, err := parseMachineType(f.MachineType); err != nil {
		return "", err
	}
	e := &Error{Kind: NoSuchMachine, Input: f.MachineType}
	for _, row := range f.facts() {
		for _, m := range row.Machines {
			e.Choices = append(e.Choices, m.Name)
		}
	}
	e.Reason = fmt.Sprintf("machine type %s belongs to %s, not to %s", word, madeOf(word).Generation, orList(words(f.Generations)))
	return "", e
}

// checkTopology wants a generation that has the topology. Of the answers, that of
// a generation that has it under another spelling helps most, then that of one
// with as many sides.
func (f Filter) checkTopology() *Error {
	var best *Error
	value := 0
	for _, row := range f.facts() {
		err := row.check(f.Topology)
		if err == nil {
			return nil
		}
		worth := 1
		switch {
		case err.Kind == Rotated:
			worth = 3
		case row.Dimensions == f.Topology.Dimensions():
			worth = 2
		}
		if worth > value {
			best, value = err, worth
		}
	}
	return best
}

func words(generations []Generation) []string {
	list := make([]string, len(generations))
	for i, g := range generations {
		list[i] = string(g)
	}
	return list
}
