package sandboxcmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// newPrint is the command `sandbox print`.
func newPrint(s *term.Streams) *cobra.Command {
	var dirName string
	var p sandbox.Print
	cmd := &cobra.Command{
		Use:   "print JOB [TEXT]",
		Short: "Let the programs of a job print, to see it in its logs",
		Long: `Let the programs of a running job print lines: on every host, or on those that
--slice and --host-index name. ` + "`tpuctl logs`" + ` and ` + "`kubectl logs`" + ` show them. With
--file they print what a file of this machine holds, as it grows; {slice}, {host},
{attempt}, {pod} and {container} in its name are each program's own. A line of it
that begins with a time such as 2026-01-02T15:04:05.5Z was printed then.`,
		Example: `  tpuctl sandbox print train "step 100 loss 2.31"
  tpuctl sandbox print train --slice 1 --host-index 2 "out of data"
  tpuctl sandbox print train --file '/tmp/logs/{slice}-{host}.log'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || (len(args) == 2) == (p.File != "") {
				return exit.Usagef("want one JOB, and either a TEXT or --file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Job = args[0]
			if len(args) == 2 {
				if p.Text = args[1]; p.Text == "" {
					return exit.Usagef("TEXT is empty")
				}
			}
			if p.File != "" {
				file, err := filepath.Abs(p.File)
				if err != nil {
					return fmt.Errorf("--file: %w", err)
				}
				p.File = file
			}
			if err := checkHosts(cmd, p.HostOf, true); err != nil {
				return err
			}
			pods, err := ask(cmd.Context(), dirName, sandbox.LetPrint, p)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s printed it.\n", count(len(pods), "program", "programs"))
			return nil
		},
	}
	hostFlags(cmd, &p.HostOf, &dirName)
	cmd.Flags().StringVar(&p.File, "file", "", "what this file holds, instead of a TEXT")
	return cmd
}
