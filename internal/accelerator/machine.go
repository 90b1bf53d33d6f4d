package accelerator

import "fmt"

// ParseMachineType reads a TPU machine type and returns it as Google writes it;
// case and spaces are forgiven. Errors are *Error of kind NoSuchMachine.
func ParseMachineType(s string) (string, error) {
	name, err := parseMachineType(s)
	if err != nil {
		return "", err
	}
	return name, nil
}

func parseMachineType(s string) (string, *Error) {
	if err := tooLong(s); err != nil {
		return "", err
	}
	word := compact(s)
	if madeOf(word) != nil {
		return word, nil
	}
	e := unknownMachine(word)
	if word == "" {
		e = &Error{Reason: "no machine type was given"}
	}
	e.Kind, e.Input, e.Part = NoSuchMachine, s, PartMachine
	for i := range table {
		for _, m := range table[i].Machines {
			if m.short() == word {
				e.Reason = fmt.Sprintf("%q is the size of a TPU machine type, not its name", s)
				e.Choices = append(e.Choices, m.Name)
			}
		}
	}
	return "", e
}
