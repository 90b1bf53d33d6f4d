// Package accelerators is tpuctl's view of the TPU catalogue. It reaches no
// cluster and decides nothing: the catalogue does.
package accelerators

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

type listOptions struct {
	streams *term.Streams
	format  output.Format

	generations []string
	filter      accelerator.Filter
	topology    string
	all         bool
}

// New is the command `accelerators` with its children.
func New(s *term.Streams) *cobra.Command {
	o := &listOptions{streams: s}
	cmd := &cobra.Command{
		Use:     "accelerators [GENERATION...]",
		Aliases: []string{"accelerator", "tpus"},
		Short:   "List TPU slices: names, topologies, chips, hosts, machine types",
		Long: `List the TPU slices that GKE has machine types for. No cluster and no
credentials are needed.

One row per type name by default: the most compact topology of each size, on its
default machine type. --all adds the elongated topologies and the other machine
types, and so does asking for one size (--chips, --hosts, --topology) or one
machine type. Each NAME is accepted wherever an accelerator is asked for.`,
		Example: `  tpuctl accelerators v6e
  tpuctl accelerators --min-chips 256 --max-chips 1024
  tpuctl accelerators v5p --chips 1024
  tpuctl accelerators describe v5p-2048`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeGenerations,
		RunE: func(_ *cobra.Command, args []string) error {
			o.generations = args
			return o.run()
		},
	}
	f := cmd.Flags()
	number := func(into *int, name, text string) { f.Var((*number)(into), name, text) }
	number(&o.filter.Chips, "chips", "only slices of exactly this many chips")
	number(&o.filter.MinChips, "min-chips", "only slices of at least this many chips")
	number(&o.filter.MaxChips, "max-chips", "only slices of at most this many chips")
	number(&o.filter.Hosts, "hosts", "only slices of exactly this many hosts")
	number(&o.filter.MinHosts, "min-hosts", "only slices of at least this many hosts (2: multi-host only)")
	number(&o.filter.MaxHosts, "max-hosts", "only slices of at most this many hosts (1: single hosts only)")
	f.StringVar(&o.topology, "topology", "", "only this topology, such as 4x4")
	f.StringVar(&o.filter.MachineType, "machine-type", "", "only this machine type")
	f.BoolVar(&o.all, "all", false, "also elongated topologies and further machine types")
	output.AddFlag(cmd, &o.format)
	cmd.AddCommand(newDescribe(s))
	return cmd
}

// number is a flag that counts something: 1 or more.
type number int

func (n *number) String() string { return strconv.Itoa(int(*n)) }
func (*number) Type() string     { return "int" }

func (n *number) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 {
		return errors.New("want a whole number, 1 or more")
	}
	*n = number(v)
	return nil
}

// generation reads an argument; the name of a slice is for describe.
func generation(arg string) (accelerator.Generation, error) {
	g, err := accelerator.ParseGeneration(arg)
	if err == nil {
		return g, nil
	}
	s, nameErr := accelerator.Resolve(arg)
	var slice *accelerator.Error
	switch {
	case nameErr == nil:
		return "", exit.Usagef("%s is one slice of %s, not a generation: to describe it, tpuctl accelerators describe %s", arg, s.Generation, s.Name)
	case errors.As(nameErr, &slice) && slice.Kind != accelerator.UnknownGeneration && len(slice.Choices) > 0: // a slice was meant
		return "", fmt.Errorf("%w\nOne slice is described by: tpuctl accelerators describe %s", nameErr, slice.Choices[0])
	}
	return "", fmt.Errorf("%w\nOne slice is described by: tpuctl accelerators describe NAME", err)
}

func completeGenerations(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, g := range accelerator.Generations() {
		names = append(names, string(g))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (o *listOptions) run() error {
	f := o.filter
	for _, arg := range o.generations {
		g, err := generation(arg)
		if err != nil {
			return err
		}
		f.Generations = append(f.Generations, g)
	}
	if o.topology != "" {
		t, err := accelerator.ParseTopology(o.topology)
		if err != nil {
			return &exit.UsageError{Err: err}
		}
		f.Topology = t
	}
	f, err := f.Check()
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	f.Compact = !o.all && f.Chips == 0 && f.Hosts == 0 && o.topology == "" && f.MachineType == ""
	slices := accelerator.List(f)
	return output.Print(o.streams, o.format, listView(slices))
}

func listView(slices []accelerator.Slice) output.View {
	v := output.View{
		Data: slices,
		Table: output.Table{
			Columns: []output.Column{
				{Name: "name"}, {Name: "topology"}, {Name: "chips"}, {Name: "cores"}, {Name: "hosts"},
				{Name: "chips/host", Yield: 1}, {Name: "machine type"}, {Name: "label", Yield: 2},
				{Name: "placement", Wide: true}, {Name: "boot disk", Wide: true}, {Name: "containers/host", Wide: true},
			},
			Empty: "No slice matches. Without filters, tpuctl accelerators lists them all.",
		},
	}
	if slices == nil {
		v.Data = []accelerator.Slice{}
	}
	for _, s := range slices {
		v.Names = append(v.Names, s.Name)
		v.Table.Rows = append(v.Table.Rows, []string{
			s.Name, s.Topology.String(), fmt.Sprint(s.Chips), fmt.Sprint(s.TensorCores), fmt.Sprint(s.Hosts),
			fmt.Sprint(s.ChipsPerHost), s.MachineType, s.AcceleratorLabel,
			string(s.Placement), s.BootDisk, fmt.Sprint(s.ContainersPerHost),
		})
	}
	return v
}

type describeOptions struct {
	streams     *term.Streams
	format      output.Format
	name        string
	machineType string
}

func newDescribe(s *term.Streams) *cobra.Command {
	o := &describeOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Everything that follows from one slice's name",
		Long: `Describe one slice: what its name counts, its chips, TensorCores and hosts, the
labels and taint of its nodes, its placement and disks, and which other slices
have as many chips.

NAME is a type name (v5p-128, v5litepod-16, v5e-16), a generation and a topology
(v6e-4x4), and may end in a machine size (v5litepod-8-8t).`,
		Example: `  tpuctl accelerators describe v5p-128
  tpuctl accelerators describe v5litepod-8 --machine-type ct5lp-hightpu-8t
  tpuctl accelerators describe v6e-4x4 -o json`,
		Args:              exactlyOneName,
		ValidArgsFunction: completeNames,
		RunE: func(_ *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run()
		},
	}
	cmd.Flags().StringVar(&o.machineType, "machine-type", "", "choose among the machine types of the topology")
	output.AddFlag(cmd, &o.format)
	return cmd
}

func exactlyOneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one accelerator, such as v5litepod-16; %d were given", len(args))
	}
	return nil
}

func completeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range accelerator.List(accelerator.Filter{Compact: true}) {
		names = append(names, s.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (o *describeOptions) run() error {
	if o.name == "" { // a Choice would take it for not given
		_, err := accelerator.Resolve(o.name)
		return err
	}
	slice, err := accelerator.Choice{Name: o.name, MachineType: o.machineType}.Resolve()
	if err != nil {
		return err
	}
	d := slice.Describe()
	return output.Print(o.streams, o.format, output.View{
		Data:  d,
		Names: []string{d.Name},
		Page:  func(w io.Writer, _ bool) error { return describePage(w, o.streams, d) },
	})
}
