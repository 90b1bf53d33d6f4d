package sandboxcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

func newPreempt(s *term.Streams) *cobra.Command {
	var dirName string
	var left int
	cmd := &cobra.Command{
		Use:   "preempt NODEPOOL",
		Short: "Take hosts away from a slice that runs, as when spot machines are taken back",
		Long: `Take hosts away from a slice that runs: all of them, or all but --hosts-left. The
node pool is in RUNNING_WITH_ERROR, its other nodes and what ran there are gone.
A spot slice is GKE's to bring back, which ` + "`capacity restore`" + ` does here; one on
demand is down until it is made again.

NODEPOOL is a node pool's name, with as much of PROJECT/LOCATION/CLUSTER/ before
it as is needed to tell it from others.`,
		Example: `  tpuctl sandbox capacity preempt v5e-1
  tpuctl sandbox capacity preempt quickstart/v5e-1 --hosts-left 3`,
		Args: oneNodePool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if left < 0 {
				return exit.Usagef("--hosts-left=%d: want 0 or more", left)
			}
			h, err := ask(cmd.Context(), dirName, sandbox.SetHosts, sandbox.Hosts{Pool: args[0], Left: left})
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s has %d of its %s left.\n", h.Pool, h.Left, count(h.Until, "host", "hosts"))
			return nil
		},
	}
	addDir(cmd, &dirName)
	cmd.Flags().IntVar(&left, "hosts-left", 0, "how many hosts stay")
	return cmd
}

func newRestore(s *term.Streams) *cobra.Command {
	var dirName string
	cmd := &cobra.Command{
		Use:     "restore NODEPOOL",
		Short:   "Bring back the hosts of a slice that has lost some",
		Long:    `Bring back the hosts of a slice that has lost some, as GKE does with spot machines when there are any again.`,
		Example: `  tpuctl sandbox capacity restore v5e-1`,
		Args:    oneNodePool,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := ask(cmd.Context(), dirName, sandbox.SetHosts, sandbox.Hosts{Pool: args[0], All: true})
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s has its %s again.\n", h.Pool, count(h.Until, "host", "hosts"))
			return nil
		},
	}
	addDir(cmd, &dirName)
	return cmd
}

func oneNodePool(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usagef("want one NODEPOOL, such as v5e-1 or quickstart/v5e-1")
	}
	return nil
}
