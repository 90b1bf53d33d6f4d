package slices

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

func use(t *testing.T, name string, ready int, jobs ...training.Occupant) training.PoolUse {
	t.Helper()
	s, err := accelerator.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return training.PoolUse{Hosts: s.Hosts, HostsReady: ready, Accelerator: s.AcceleratorLabel, Topology: s.Topology.String(), Slice: s, Jobs: jobs}
}

// sample has one slice of each kind that looks different.
func sample(t *testing.T) map[string]training.PoolUse {
	spot := use(t, "v5p-16", 2)
	spot.Spot = true
	lost := use(t, "v5litepod-16", 3, training.Occupant{Namespace: "research", Name: "train", Slice: 1, Hosts: 3})
	lost.Hosts = 3
	return map[string]training.PoolUse{
		"v5e-2":  use(t, "v5litepod-16", 4, training.Occupant{Namespace: "research", Name: "train", Slice: 0, Hosts: 4}),
		"v5e-10": use(t, "v5litepod-16", 4),
		"v5e-3":  lost,
		"v5e-4":  use(t, "v5litepod-16", 1),
		"one": use(t, "v5litepod-8", 1,
			training.Occupant{Namespace: "vision", Name: "a", Hosts: 1}, training.Occupant{Namespace: "vision", Name: "b", Hosts: 1}),
		"v5p-0":  spot,
		"future": {Hosts: 1, HostsReady: 1, Accelerator: "tpu-v9", Topology: "2x2"},
	}
}

func run(t *testing.T, uses map[string]training.PoolUse, width int, color bool, args ...string) (string, error) {
	t.Helper()
	s, out, _ := clitest.Streams(width, color)
	d := Deps{Streams: s, Read: func(context.Context, target.Options) (map[string]training.PoolUse, error) { return uses, nil }}
	err := clitest.Run(newSlices(d), args...)
	return out.String(), err
}

// What is printed, in every form.
func TestSlices(t *testing.T) {
	for golden, tt := range map[string]struct {
		args  []string
		width int
		color bool
		none  bool
	}{
		"list.txt":          {},
		"list-wide.txt":     {args: []string{"-o", "wide"}},
		"list-60.txt":       {width: 60},
		"list-color.txt":    {width: 120, color: true},
		"list-free.txt":     {args: []string{"--state", "free,NotReady"}},
		"list-v5e.yaml":     {args: []string{"--accelerator", "v5litepod-8", "-o", "yaml"}},
		"list-v5p.txt":      {args: []string{"--accelerator", "v5p"}},
		"list-name.txt":     {args: []string{"-o", "name"}},
		"list.json":         {args: []string{"-o", "json"}},
		"list-none.txt":     {none: true},
		"list-nothing.txt":  {args: []string{"--accelerator", "v6e"}},
		"summary.txt":       {args: []string{"--summary"}},
		"summary.json":      {args: []string{"--summary", "-o", "json"}},
		"summary-none.json": {args: []string{"--summary", "-o", "json"}, none: true},
	} {
		t.Run(golden, func(t *testing.T) {
			uses := sample(t)
			if tt.none {
				uses = nil
			}
			out, err := run(t, uses, tt.width, tt.color, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, golden, out)
		})
	}
}

// A program that reads the json finds lists, never null.
func TestJSONOfNothing(t *testing.T) {
	out, err := run(t, nil, 0, false, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	if err := json.Unmarshal([]byte(out), &got); err != nil || got == nil {
		t.Errorf("got %s (%v)", out, err)
	}
}

// Wrong flags are found before any cluster is asked.
func TestWrongFlags(t *testing.T) {
	for _, tt := range []struct{ args, want []string }{
		{[]string{"--state", "idle"}, []string{`no state "idle"`, "Free, Busy, NotReady"}},
		{[]string{"--accelerator", "v5litepod-17"}, []string{"17"}},
	} {
		s, _, _ := clitest.Streams(0, false)
		d := Deps{Streams: s, Read: func(context.Context, target.Options) (map[string]training.PoolUse, error) {
			t.Error("the cluster was asked")
			return nil, nil
		}}
		err := clitest.Run(newSlices(d), tt.args...)
		if err == nil || exit.Code(err) != exit.Usage {
			t.Fatalf("%v: got %v", tt.args, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want %q in it", tt.args, err, want)
			}
		}
	}
}

// What the cluster answers is passed on, and nothing is printed.
func TestErrors(t *testing.T) {
	denied := errors.New("permission denied")
	s, out, _ := clitest.Streams(0, false)
	d := Deps{Streams: s, Read: func(context.Context, target.Options) (map[string]training.PoolUse, error) { return nil, denied }}
	if err := clitest.Run(newSlices(d)); !errors.Is(err, denied) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff("", out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
