package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

type statusOptions struct {
	streams *term.Streams
	dir     string
	format  output.Format
	now     func() time.Time
}

func newStatus(s *term.Streams) *cobra.Command {
	o := &statusOptions{streams: s, now: time.Now}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the sandbox consists of: clusters, node pools, processes",
		Long:  `Show what the sandbox consists of. Exits with 1 when none is running.`,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addDir(cmd, &o.dir)
	output.AddFlag(cmd, &o.format)
	return cmd
}

func (o *statusOptions) run(ctx context.Context) error {
	dir, err := folder(o.dir)
	if err != nil {
		return err
	}
	st, err := sandbox.StatusOf(ctx, dir)
	var stopped *sandbox.NotRunningError
	if errors.As(err, &stopped) {
		return &exit.CodeError{Code: exit.Failure, Err: hint(err, o.dir)}
	}
	if err != nil {
		return err
	}
	return output.Print(o.streams, o.format, statusView(o.streams, st, o.now()))
}

func statusView(s *term.Streams, st *sandbox.Status, now time.Time) output.View {
	v := output.View{Data: st}
	for _, c := range st.Clusters {
		v.Names = append(v.Names, c.Path)
	}
	v.Page = func(w io.Writer, wide bool) error {
		p := output.NewPage(s, "sandbox")
		p.Styled("state", "running", term.Good)
		p.Field("process", fmt.Sprintf("%d, up %s", st.Pid, now.Sub(st.Started).Round(time.Second)))
		p.Field("GKE API", st.Endpoint)
		p.Field("folder", st.Dir)
		p.Section("clusters")
		if err := p.Table(clusterTable(st.Clusters), wide); err != nil {
			return err
		}
		if len(st.Processes) > 0 {
			p.Section("processes")
			if err := p.Table(processTable(st.Processes), wide); err != nil {
				return err
			}
			p.Section("logs, PROCESS.log in")
			for _, dir := range logFolders(st.Processes) {
				p.Line(dir)
			}
		}
		var problems []string
		for _, c := range st.Clusters {
			if c.Message != "" {
				problems = append(problems, c.Path+": "+c.Message)
			}
		}
		p.Paragraphs("problems", problems, term.Bad)
		_, err := io.WriteString(w, p.String())
		return err
	}
	return v
}

// clusterTable is a row for each cluster, followed by those of its pools.
func clusterTable(clusters []sandbox.Cluster) output.Table {
	t := output.Table{
		Columns: []output.Column{
			{Name: "cluster"}, {Name: "project", Yield: 4}, {Name: "location", Yield: 3}, {Name: "node pool"}, {Name: "status", Style: statusStyle},
			{Name: "nodes"}, {Name: "machine type", Yield: 2}, {Name: "API server", Yield: 1},
		},
		Empty: "No clusters yet.",
	}
	for _, c := range clusters {
		project, location, name := parts(c.Path)
		t.Rows = append(t.Rows, []string{name, project, location, "", c.Status, strconv.Itoa(nodes(c)), "", c.Endpoint})
		for _, p := range c.NodePools {
			t.Rows = append(t.Rows, []string{name, project, location, p.Name, p.Status, strconv.Itoa(p.Nodes), p.MachineType, ""})
		}
	}
	return t
}

// processTable names each process by its cluster: all clusters run the same
// programs.
func processTable(processes []sandbox.Process) output.Table {
	t := output.Table{Columns: []output.Column{
		{Name: "cluster"}, {Name: "project", Yield: 2}, {Name: "location", Yield: 1}, {Name: "process"}, {Name: "pid"},
	}}
	for _, p := range processes {
		project, location, name := parts(p.Cluster)
		t.Rows = append(t.Rows, []string{name, project, location, p.Name, strconv.Itoa(p.Pid)})
	}
	return t
}

// logFolders are the folders of the processes' logs, each once.
func logFolders(processes []sandbox.Process) []string {
	var dirs []string
	for _, p := range processes {
		if dir := filepath.Dir(p.Log); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// parts takes a cluster's path apart; of anything else it is all a name.
func parts(path string) (project, location, name string) {
	f := strings.Split(path, "/") // projects/P/locations/L/clusters/C
	if len(f) != 6 {
		return "", "", path
	}
	return f[1], f[3], f[5]
}

func statusStyle(status string) term.Style {
	switch status {
	case "RUNNING":
		return term.Good
	case "ERROR", "DEGRADED":
		return term.Bad
	}
	return term.Busy
}

func nodes(c sandbox.Cluster) int {
	n := 0
	for _, p := range c.NodePools {
		n += p.Nodes
	}
	return n
}
