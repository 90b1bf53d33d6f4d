package sandboxcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

type downOptions struct {
	streams *term.Streams
	dir     string
	keep    bool
}

func newDown(s *term.Streams) *cobra.Command {
	o := &downOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox and remove everything it made",
		Long: `Stop the sandbox, also one that was killed, remove its folder, and see to it that
no process and no port is left. Without a sandbox there is nothing to do, which
is no error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addDir(cmd, &o.dir)
	cmd.Flags().BoolVar(&o.keep, "keep", false, "keep the folder: the next 'up' continues with the same clusters")
	return cmd
}

func (o *downOptions) run(ctx context.Context) error {
	dir, err := folder(o.dir)
	if err != nil {
		return err
	}
	began := time.Now()
	gone, err := sandbox.Down(ctx, dir, o.keep)
	if err != nil {
		return hint(err, o.dir)
	}
	fmt.Fprintln(o.streams.Out, downMessage(gone, time.Since(began)))
	if gone.Kept {
		fmt.Fprintln(o.streams.Out, "Go on with it:  "+command("up", o.dir))
	}
	return nil
}

func downMessage(g *sandbox.Gone, took time.Duration) string {
	if !g.Found {
		return "No sandbox in " + g.Dir + ": nothing to stop."
	}
	var parts []string
	if g.Pid != 0 {
		parts = append(parts, fmt.Sprintf("process %d and %s ended", g.Pid, count(g.Processes, "child", "children")))
		if g.Clusters > 0 {
			parts = append(parts, "with "+count(g.Clusters, "cluster", "clusters"))
		}
	} else {
		parts = append(parts, "it was not running")
		if g.Processes > 0 {
			parts = append(parts, count(g.Processes, "process", "processes")+" that it had left ended")
		}
	}
	if g.Kept {
		parts = append(parts, "its state is kept in "+g.Dir)
	} else {
		parts = append(parts, "its folder "+g.Dir+" removed")
	}
	return fmt.Sprintf("The sandbox is stopped (%s): %s. No process and no port is left.", took.Round(100*time.Millisecond), strings.Join(parts, ", "))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
