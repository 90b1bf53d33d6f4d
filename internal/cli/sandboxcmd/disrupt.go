package sandboxcmd

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// disruptionKinds are the commands below disrupt, in the order of help.
var disruptionKinds = []struct {
	name, short string
	lasts       bool
}{
	{"evict", "Evict the pods of a host, as a drain does", false},
	{"taint", "Put a NoExecute taint on a host: pods that do not tolerate it are deleted", true},
	{"preempt", "Let a pod of higher priority take a host's chips", true},
	{"shutdown", "Switch a machine off, as when a spot machine is taken back: its pods end by 143", true},
	{"delete", "Remove a machine and its node at once; its pods are found a minute later", true},
	{"lose", "Let a host fall silent: its pods are given up after a minute, and end when it is back", true},
}

// newDisrupt is the command `sandbox disrupt` with its children.
func newDisrupt(s *term.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "disrupt",
		Short: "Let something happen to hosts, to see what becomes of the jobs on them",
		Long: `Let something happen to hosts, to see what becomes of the jobs on them. The real
controllers see what they would see in a cloud. A host is named by its node, or
by the job on it.`,
		Example: `  tpuctl sandbox disrupt shutdown --job train --slice 1 --host-index 2 --for 30s
  tpuctl sandbox disrupt lose gke-quickstart-v5e-0-00000000-0
  tpuctl sandbox disrupt list
  tpuctl sandbox disrupt end`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, k := range disruptionKinds {
		cmd.AddCommand(newDisruption(s, k.name, k.short, k.lasts))
	}
	list := newListed(s, "List the hosts to which something happened that lasts", sandbox.DisruptedHosts, disruptedView)
	ended := newEnded(s, "end [NODE...]", "Bring hosts back by their node, or all of them", sandbox.Mend, func(back []sandbox.Disrupted) string {
		return fmt.Sprintf("Brought back %s.", count(len(back), "host", "hosts"))
	})
	cmd.AddCommand(list, ended)
	return cmd
}

// hostFlags name a host by the job on it.
func hostFlags(cmd *cobra.Command, h *sandbox.HostOf, dir *string) {
	addDir(cmd, dir)
	f := cmd.Flags()
	f.StringVar(&h.Cluster, "cluster", "", "the cluster's name, when there are several")
	f.StringVarP(&h.Namespace, "namespace", "n", "", "the job's namespace (looked for in all by default)")
	f.IntVar(&h.Slice, "slice", -1, "only this slice of the job (default: every one)")
	f.IntVar(&h.Index, "host-index", -1, "only this host of each slice (default: every one)")
}

// checkHosts refuses flags that name no host, or the hosts of no job.
func checkHosts(cmd *cobra.Command, h sandbox.HostOf, ofJob bool) error {
	for name, n := range map[string]int{"slice": h.Slice, "host-index": h.Index} {
		switch set := cmd.Flags().Changed(name); {
		case set && !ofJob:
			return exit.Usagef("--%s is of a job: give --job instead of a NODE", name)
		case set && n < 0:
			return exit.Usagef("--%s=%d: want 0 or more, or leave it out for every one", name, n)
		}
	}
	return nil
}

func newDisruption(s *term.Streams, kind, short string, lasts bool) *cobra.Command {
	var dirName string
	d := sandbox.Disruption{Kind: kind}
	cmd := &cobra.Command{
		Use:     kind + " [NODE]",
		Short:   short,
		Example: "  tpuctl sandbox disrupt " + kind + " --job train --slice 1 --host-index 2",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == (d.Job != "") || len(args) > 1 {
				return exit.Usagef("want one NODE, or --job")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				d.Host = args[0]
			}
			if d.For < 0 {
				return exit.Usagef("--for=%s: want a time that is not negative", d.For)
			}
			if err := checkHosts(cmd, d.HostOf, d.Job != ""); err != nil {
				return err
			}
			hosts, err := ask(cmd.Context(), dirName, sandbox.Disrupt, d)
			if err != nil {
				return err
			}
			for _, h := range hosts {
				fmt.Fprintf(s.Out, "%s: %s\n", h.Host, h.Kind)
			}
			if lasts && d.For == 0 {
				fmt.Fprintf(s.Err, "Bring it back:  %s\n", command("disrupt end", dirName))
			}
			return nil
		},
	}
	hostFlags(cmd, &d.HostOf, &dirName)
	cmd.Flags().StringVar(&d.Job, "job", "", "the hosts of this job, instead of a NODE")
	if lasts {
		cmd.Flags().DurationVar(&d.For, "for", 0, "bring it back after so long (default: when disrupt end is called)")
	}
	return cmd
}

func disruptedView(hosts []sandbox.Disrupted) output.View {
	v := output.View{Data: hosts}
	v.Table = output.Table{Columns: []output.Column{{Name: "node"}, {Name: "kind"}, {Name: "cluster"}}, Empty: "Every host is as it was."}
	for _, h := range hosts {
		v.Names = append(v.Names, h.Host)
		v.Table.Rows = append(v.Table.Rows, []string{h.Host, h.Kind, h.Cluster})
	}
	return v
}

// newExit is the command `sandbox exit`.
func newExit(s *term.Streams) *cobra.Command {
	var dirName string
	var e sandbox.Exit
	cmd := &cobra.Command{
		Use:   "exit JOB",
		Short: "Let the programs of a job end, with an exit code and last words",
		Long: `Let the programs of a running job end: on every host, or on those that --slice
and --host-index name. With code 0 they have done their work. The log is what
` + "`kubectl logs`" + ` then shows, and, for other codes, the pod's status.`,
		Example: `  tpuctl sandbox exit train
  tpuctl sandbox exit train --slice 1 --host-index 2 --code 2 --log "error: unrecognized arguments: --stpes"
  tpuctl sandbox exit train --code 1 --after 10s`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("want one JOB")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Job = args[0]
			switch {
			case e.Code < 0 || e.Code > 255:
				return exit.Usagef("--code=%d: exit codes are 0 to 255", e.Code)
			case e.After < 0:
				return exit.Usagef("--after=%s: want a time that is not negative", e.After)
			}
			if err := checkHosts(cmd, e.HostOf, true); err != nil {
				return err
			}
			pods, err := ask(cmd.Context(), dirName, sandbox.EndPrograms, e)
			if err != nil {
				return err
			}
			printExits(s.Out, pods, e.Code, e.After)
			return nil
		},
	}
	hostFlags(cmd, &e.HostOf, &dirName)
	f := cmd.Flags()
	f.IntVar(&e.Code, "code", 0, "the exit code")
	f.DurationVar(&e.After, "after", 0, "how long from now")
	f.StringVar(&e.Log, "log", "", "what the program prints before")
	return cmd
}

func printExits(w io.Writer, pods []sandbox.Exited, code int, after time.Duration) {
	when := "ends"
	if after > 0 {
		when = fmt.Sprintf("will end in %s", after)
	}
	for _, p := range pods {
		fmt.Fprintf(w, "%s on %s %s with exit code %d\n", p.Pod, p.Host, when, code)
	}
}
