// Package slices is tpuctl's view of a cluster's TPU slices: which are free,
// which are busy, and who runs what on them. It shows what internal/training
// read off the cluster and decides nothing about it.
package slices

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Deps are what the command needs from outside; tests replace them.
type Deps struct {
	Streams *term.Streams
	// Read says what runs where on the cluster that the flags, the environment
	// and the account point at.
	Read func(context.Context, target.Options) (map[string]training.PoolUse, error)
}

// New is the slices command over real clusters.
func New(s *term.Streams) *cobra.Command { return newSlices(Deps{Streams: s, Read: read}) }

func read(ctx context.Context, o target.Options) (map[string]training.PoolUse, error) {
	c, err := target.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return training.Occupancy(ctx, c)
}

type options struct {
	Deps
	target      target.Options
	format      output.Format
	accelerator string
	states      []string
	summary     bool
}

func newSlices(d Deps) *cobra.Command {
	o := &options{Deps: d}
	cmd := &cobra.Command{
		Use:   "slices",
		Short: "Show which TPU slices are free, which are busy, and with what",
		Long: `Show the TPU slices of a cluster, one node pool each. A slice is
  Busy      a job's pods are on its hosts
  Free      every host is ready and no job is on it
  NotReady  no job is on it, and hosts are missing, not ready or cordoned
HOSTS are those ready, of those a slice of this shape has. Node pools without
any host (scaled to 0, or failed) are not in Kubernetes and not shown here.`,
		Example: `  tpuctl slices
  tpuctl slices --state Free
  tpuctl slices --summary
  tpuctl slices --accelerator v5e -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.accelerator, "accelerator", "", "only slices of this generation (v5e) or type (v5litepod-16)")
	f.StringSliceVar(&o.states, "state", nil, "only these states: "+strings.Join(states, ", "))
	f.BoolVar(&o.summary, "summary", false, "one row for each kind of slice: how many are free and busy")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("accelerator", target.Accelerators)
	o.target.AddFlags(cmd)
	output.AddFlag(cmd, &o.format)
	cmd.AddCommand(newRecreate(d.Streams))
	return cmd
}

func (o *options) run(ctx context.Context) error {
	keep, err := o.filter()
	if err != nil {
		return err
	}
	uses, err := o.Read(ctx, o.target)
	if err != nil {
		return err
	}
	var found []slice
	for _, s := range slicesOf(uses) {
		if keep(s) {
			found = append(found, s)
		}
	}
	empty := "No TPU slices."
	if len(uses) > 0 {
		empty = fmt.Sprintf("None of the cluster's %d TPU slices is like that.", len(uses))
	}
	if o.summary {
		return output.Print(o.Streams, o.format, summary(found, empty))
	}
	return output.Print(o.Streams, o.format, list(found, empty))
}

// filter makes one test of the flags.
func (o *options) filter() (func(slice) bool, error) {
	wanted := map[string]bool{}
	for _, name := range o.states {
		i := indexFold(states, name)
		if i < 0 {
			return nil, exit.Usagef("there is no state %q: a slice is one of %s", name, strings.Join(states, ", "))
		}
		wanted[states[i]] = true
	}
	shape := func(slice) bool { return true }
	if o.accelerator != "" {
		if g, err := accelerator.ParseGeneration(o.accelerator); err == nil {
			shape = func(s slice) bool { return s.Generation == string(g) }
		} else if a, err := accelerator.Resolve(o.accelerator); err == nil {
			shape = func(s slice) bool { return s.Generation == string(a.Generation) && s.Topology == a.Topology.String() }
		} else {
			return nil, &exit.UsageError{Err: err}
		}
	}
	return func(s slice) bool { return (len(wanted) == 0 || wanted[s.State]) && shape(s) }, nil
}

func indexFold(all []string, name string) int {
	for i, s := range all {
		if strings.EqualFold(s, name) {
			return i
		}
	}
	return -1
}

func stateStyle(state string) term.Style {
	switch state {
	case free:
		return term.Good
	case busy:
		return term.Busy
	case notReady:
		return term.Bad
	}
	return term.Plain
}
