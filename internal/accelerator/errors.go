package accelerator

import (
	"fmt"
	"strings"
)

// Kind says what is wrong with an accelerator that was asked for.
type Kind string

// The kinds of Error.
const (
	Syntax            Kind = "syntax"             // neither a name nor a topology
	UnknownGeneration Kind = "unknown_generation" // no such TPU
	NoSuchSize        Kind = "no_such_size"       // no slice of this many chips
	NoSuchTopology    Kind = "no_such_topology"   // the generation has no such arrangement
	Rotated           Kind = "rotated_topology"   // a known topology, its sides in another order
	NoSuchMachine     Kind = "no_such_machine"    // the machine type does not exist, or cannot have this topology
	Contradiction     Kind = "contradiction"      // two parts of a Choice ask for different slices
)

// Error refuses an accelerator. Choices are the nearest valid inputs of the
// same sort (names for a name, topologies for a topology), nearest first in
// order of size; it is empty when nothing is near.
type Error struct {
	Kind    Kind
	Part    Part // what of a Choice to change; empty elsewhere
	Input   string
	Reason  string
	Choices []string
}

func (e *Error) Error() string {
	if len(e.Choices) == 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s; %s", e.Reason, e.Hint())
}

// Hint says what to use instead, or is empty.
func (e *Error) Hint() string {
	switch {
	case len(e.Choices) == 0:
		return ""
	case e.Kind == Rotated:
		return "write " + e.Choices[0]
	}
	return "try " + orList(e.Choices)
}

// orList joins words as "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
