package sandboxcmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// newCapacity is the command `sandbox capacity` with its children.
func newCapacity(s *term.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Let the sandbox run out of TPUs, to see what then happens",
		Long: `Let the sandbox run out of TPUs: a zone that has room for so many slices, a
quota of chips, a reservation of so many hosts, hosts that are taken away from a
running slice. Without limits there is enough of everything. Limits are kept for
the next ` + "`up`" + ` in the same folder.`,
		Example: `  tpuctl sandbox capacity stockout us-west4-a --slices 3
  tpuctl sandbox capacity quota 64 --region us-west4
  tpuctl sandbox capacity reservation team --zone us-west4-a --machine-type ct5lp-hightpu-4t --hosts 8
  tpuctl sandbox capacity list
  tpuctl sandbox capacity clear
  tpuctl sandbox capacity preempt quickstart/v5e-1 --hosts-left 2
  tpuctl sandbox capacity restore quickstart/v5e-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := newListed(s, "List the limits", sandbox.LimitsOf, limitsView)
	ended := newEnded(s, "clear [ID...]", "End limits by their id, or all of them: there is enough again", sandbox.RemoveLimits, func(gone []sandbox.Limit) string {
		return fmt.Sprintf("Ended %s.", count(len(gone), "limit", "limits"))
	})
	cmd.AddCommand(newStockout(s), newQuota(s), newReservation(s), list, ended, newPreempt(s), newRestore(s))
	return cmd
}

// limitOptions are those of every command that sets a limit.
type limitOptions struct {
	streams *term.Streams
	dir     string
	format  output.Format
	limit   sandbox.Limit
}

func (o *limitOptions) addFlags(cmd *cobra.Command) {
	addDir(cmd, &o.dir)
	output.AddFlag(cmd, &o.format)
}

func (o *limitOptions) run(ctx context.Context) error {
	if err := o.limit.Check(); err != nil {
		return &exit.UsageError{Err: err}
	}
	set, err := ask(ctx, o.dir, sandbox.SetLimit, o.limit)
	if err != nil {
		return err
	}
	return output.Print(o.streams, o.format, limitsView(set))
}

func newStockout(s *term.Streams) *cobra.Command {
	o := &limitOptions{streams: s, limit: sandbox.Limit{Kind: sandbox.Stockout}}
	cmd := &cobra.Command{
		Use:   "stockout [ZONE]",
		Short: "Let a zone, or every zone, have room for so many slices only",
		Long: `Let a zone, or every zone, have room for --slices slices only, those that are up
included; one that is deleted makes room. What runs goes on running. The node
pool of a slice beyond that is created, looks for machines for 35 minutes of
GKE's time and ends in ERROR, in GKE's words. How long that lasts here is a
matter of ` + "`up --time-scale`" + `: by default 0.42 seconds. After ` + "`capacity clear`" + `
there is room again; what is still looking then finds it.

Asked for the same zone, project and node pool again, it replaces what it said.`,
		Example: `  tpuctl sandbox capacity stockout us-west4-a --slices 3
  tpuctl sandbox capacity stockout --pool v5e-1
  tpuctl sandbox capacity stockout us-west4-a --trouble CLOUD_KMS_KEY_ERROR`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("want one ZONE, or none for every zone")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.limit.Zone = args[0]
			}
			if o.limit.Trouble == "" {
				o.limit.Trouble = fakegke.OutOfStock
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.limit.Count, "slices", 0, "slices that there is room for, those that are up included")
	f.StringVar(&o.limit.Project, "project", "", "only node pools of this project (default: of every one)")
	f.StringVar(&o.limit.Pool, "pool", "", "only node pools of this name, such as v5e-1 (default: of every name)")
	f.StringVar((*string)(&o.limit.Trouble), "trouble", "", "why machines do not come up: GCE_STOCKOUT (default), or, which GKE sees within a minute, GCE_QUOTA_EXCEEDED, CONDITION_NOT_MET, IP_SPACE_EXHAUSTED, CLOUD_KMS_KEY_ERROR")
	return cmd
}

func newQuota(s *term.Streams) *cobra.Command {
	o := &limitOptions{streams: s, limit: sandbox.Limit{Kind: sandbox.Quota}}
	cmd := &cobra.Command{
		Use:   "quota CHIPS",
		Short: "Let each project have so many chips in a region only",
		Long: `Let each project have so many chips in a region only. GKE refuses a node pool
that would exceed it at once; reserved machines do not count. Asked for the same
region, machine types and metric again, it replaces what it said.`,
		Example: `  tpuctl sandbox capacity quota 64
  tpuctl sandbox capacity quota 32 --region us-west4 --machine-type ct5lp`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("want how many CHIPS")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				return exit.Usagef("CHIPS is %q: want a whole number", args[0])
			}
			o.limit.Count = n
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.limit.Region, "region", "", "only in this region (default: in each)")
	f.StringVar(&o.limit.Machine, "machine-type", "", "only TPU machine types that begin so, such as ct5lp (default: all)")
	f.StringVar(&o.limit.Metric, "metric", "", "what GKE calls it (default: TPUS_PER_TPU_FAMILY)")
	return cmd
}

func newReservation(s *term.Streams) *cobra.Command {
	o := &limitOptions{streams: s, limit: sandbox.Limit{Kind: sandbox.Reservation}}
	cmd := &cobra.Command{
		Use:   "reservation NAME --zone ZONE --machine-type TYPE --hosts N",
		Short: "Let there be a reservation of so many hosts",
		Long: `Let there be a reservation of so many hosts, blocks of it included. With the
first, it is the only one: a node pool that names another is refused as one that
does not exist. Without any, every reservation exists and is large enough.`,
		Example: `  tpuctl sandbox capacity reservation team --zone us-west4-a --machine-type ct5lp-hightpu-4t --hosts 8`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("want the NAME of one reservation")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.limit.Name = args[0]
			for _, name := range []string{"zone", "machine-type", "hosts"} {
				if !cmd.Flags().Changed(name) {
					return exit.Usagef("want --%s of reservation %s", name, args[0])
				}
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.limit.Zone, "zone", "", "the zone that it is in")
	f.StringVar(&o.limit.Machine, "machine-type", "", "the machine type of its hosts")
	f.IntVar(&o.limit.Count, "hosts", 0, "how many hosts it has, those in use included")
	f.StringVar(&o.limit.Project, "project", "", "the project that has it (default: every project has one)")
	return cmd
}

func limitsView(limits []sandbox.Limit) output.View {
	v := output.View{Data: limits}
	v.Table = output.Table{
		Columns: []output.Column{{Name: "id"}, {Name: "kind"}, {Name: "of"}, {Name: "where"}, {Name: "project", Yield: 1}, {Name: "there is"}},
		Empty:   "No limits: there is enough of everything.",
	}
	for _, l := range limits {
		of, where, there := limitRow(l)
		v.Names = append(v.Names, l.ID)
		v.Table.Rows = append(v.Table.Rows, []string{l.ID, string(l.Kind), of, where, orAny(l.Project), there})
	}
	return v
}

// limitRow says of what there is how much, and where.
func limitRow(l sandbox.Limit) (of, where, there string) {
	switch l.Kind {
	case sandbox.Quota:
		of = "chips"
		if l.Machine != "" {
			of += " of " + l.Machine + "*"
		}
		if l.Metric != "" {
			of += ", " + l.Metric
		}
		return of, orAny(l.Region), count(l.Count, "chip", "chips")
	case sandbox.Reservation:
		return l.Name, l.Zone, strconv.Itoa(l.Count) + " x " + l.Machine
	}
	of = "slices"
	if l.Pool != "" {
		of = "node pool " + l.Pool
	}
	there = "room for " + strconv.Itoa(l.Count)
	if l.Trouble != "" && l.Trouble != fakegke.OutOfStock {
		there += ", then " + string(l.Trouble)
	}
	return of, orAny(l.Zone), there
}
