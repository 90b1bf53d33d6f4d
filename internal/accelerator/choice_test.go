package accelerator

import (
	"errors"
	"strings"
	"testing"
)

// What is said twice must agree; what is said once is kept.
func TestChoice(t *testing.T) {
	for name, tt := range map[string]struct {
		choice Choice
		want   string // the slice's name, or the part that is refused and the kind
	}{
		"a type name":                                  {Choice{Name: "v5p-128"}, "v5p-128"},
		"a generation and a topology":                  {Choice{Name: "v5p", Topology: "4x4x8"}, "v5p-256"},
		"the same, in its own part":                    {Choice{Generation: "v5p", Topology: "4x4x8"}, "v5p-256"},
		"a machine type and a topology":                {Choice{MachineType: "ct5lp-hightpu-8t", Topology: "2x4"}, "v5litepod-8-8t"},
		"another arrangement of the size":              {Choice{Name: "v5p-2048", Topology: "4x16x16"}, "v5p-4x16x16"},
		"the named machine stays":                      {Choice{Name: "v5e-8-8t", Topology: "2x4"}, "v5litepod-8-8t"},
		"the named machine, said again":                {Choice{Name: "v5e-8-8t", MachineType: "8T"}, "v5litepod-8-8t"},
		"a machine for a size":                         {Choice{Name: "v5e-8", MachineType: "ct5lp-hightpu-8t"}, "v5litepod-8-8t"},
		"a machine for a spelled topology":             {Choice{Name: "v5e-2x4", Topology: "2X4", MachineType: "8t"}, "v5litepod-8-8t"},
		"another machine than the named":               {Choice{Name: "v5e-8-8t", MachineType: "ct5lp-hightpu-4t"}, "machine_type contradiction"},
		"another machine than the named, sized":        {Choice{Name: "v5e-8-4t", MachineType: "8t"}, "machine_type contradiction"},
		"another topology than the spelled":            {Choice{Name: "v5p-4x4x64", Topology: "8x8x16"}, "topology contradiction"},
		"a topology of another size":                   {Choice{Name: "v5p-8", Topology: "4x4x4"}, "topology contradiction"},
		"a rotation":                                   {Choice{Name: "v5p", Topology: "8x4x4"}, "topology rotated_topology"},
		"a topology of another generation":             {Choice{Name: "v5e", Topology: "4x4x4"}, "topology no_such_topology"},
		"a generation alone":                           {Choice{Name: "v5p"}, "name syntax"},
		"a machine too large":                          {Choice{Name: "v5e-16", MachineType: "ct5lp-hightpu-8t"}, "machine_type no_such_machine"},
		"a machine that is none":                       {Choice{Name: "v5e-16", MachineType: "nope"}, "machine_type no_such_machine"},
		"a machine that is none, with a topology":      {Choice{MachineType: "nope", Topology: "4x4"}, "machine_type no_such_machine"},
		"a machine of another generation":              {Choice{Generation: "v5e", Topology: "4x4", MachineType: "ct6e-standard-4t"}, "machine_type no_such_machine"},
		"a generation that is none":                    {Choice{Generation: "v9", Topology: "4x4"}, "generation unknown_generation"},
		"a size that is none":                          {Choice{Name: "v5p-12", Topology: "4x4x4"}, "name no_such_size"},
		"text that is no topology":                     {Choice{Generation: "v5e", Topology: "flat"}, "topology syntax"},
		"no topology":                                  {Choice{Generation: "v5e"}, "topology syntax"},
		"a topology of neither generation nor machine": {Choice{Topology: "4x4"}, "generation syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tt.choice.Resolve()
			got := s.Name
			var e *Error
			if errors.As(err, &e) {
				got = string(e.Part) + " " + string(e.Kind)
			}
			if got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

// A contradiction names a spelling that works.
func TestContradictionsSayWhatToWrite(t *testing.T) {
	for want, c := range map[string]Choice{
		"leave machine_type out, or name v5litepod-8":  {Name: "v5e-8-8t", MachineType: "4t"},
		"leave topology out, or name v5p-2048":         {Name: "v5p-4x4x64", Topology: "8x8x16"},
		"v5p-8 is 2x2x1 (4 chips), and topology 4x4x4": {Name: "v5p-8", Topology: "4x4x4"},
	} {
		if _, err := c.Resolve(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q in it", c, err, want)
		}
	}
}

func TestParseMachineType(t *testing.T) {
	for in, want := range map[string]string{
		"ct6e-standard-4t":   "ct6e-standard-4t",
		" CT6E-Standard-4T ": "ct6e-standard-4t",
		"ct6e-standrd-4t":    `"ct6e-standrd-4t" is not a TPU machine type; try ct6e-standard-4t`,
		"8t":                 `"8t" is the size of a TPU machine type, not its name; try ct5lp-hightpu-8t or ct6e-standard-8t`,
		"":                   "no machine type was given",
		"n2-standard-8":      `"n2-standard-8" is not a TPU machine type`,
	} {
		got, err := ParseMachineType(in)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("ParseMachineType(%q) = %s; want %s", in, got, want)
		}
	}
}

// Near misses are answered with the name that was meant.
func TestNearMisses(t *testing.T) {
	for in, want := range map[string]string{
		"v5p-4x4x4-":           `"v5p-4x4x4-" ends in a dash; try v5p-4x4x4`,
		"v5litepod16":          "; try v5litepod-16",
		"v5p128":               "; try v5p-128",
		"ct5lp-hightpu-8t-2x4": "; try v5litepod-8-8t",
		"ct5lp-hightpu-8t":     "is a machine type, not a TPU type name",
		"v5p-1":                "v5p has no slice of 1 TensorCore (",
	} {
		if _, err := Resolve(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q): %v; want %q in it", in, err, want)
		}
	}
}

// A megabyte of text is refused at once and not repeated.
func TestLongInputIsNotRepeated(t *testing.T) {
	long := strings.Repeat("v5p-", 1<<18)
	for name, ask := range map[string]func() error{
		"Resolve":          func() error { _, err := Resolve(long); return err },
		"ParseTopology":    func() error { _, err := ParseTopology(long); return err },
		"ParseGeneration":  func() error { _, err := ParseGeneration(long); return err },
		"ParseMachineType": func() error { _, err := ParseMachineType(long); return err },
		"Lookup":           func() error { _, err := Lookup(V5p, MakeTopology(4, 4, 4), long); return err },
	} {
		if err := ask(); err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
