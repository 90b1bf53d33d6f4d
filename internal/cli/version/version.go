// Package version is the command that says what this binary is and, when asked
// for more, with which credentials and against what it would work.
package version

import (
	"context"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

// Build is what the linker knows.
type Build struct {
	Version string // v1.2.3, or "dev"
	// Details are found only when they are asked for: they may read files.
	Details func(context.Context) []Detail
}

// Detail is a line of `version --verbose`.
type Detail struct{ Name, Value string }

type options struct {
	streams *term.Streams
	format  output.Format
	build   Build
}

type info struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision,omitempty"`
	Modified bool              `json:"modified,omitempty"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Details  map[string]string `json:"details,omitempty"`

	details []Detail
}

// New is the command `version`.
func New(s *term.Streams, build Build) *cobra.Command {
	o := &options{streams: s, build: build}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version; with --verbose also the credentials that were found",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verbose, _ := cmd.Flags().GetBool("verbose")
			return o.run(cmd.Context(), verbose)
		},
	}
	output.AddFlag(cmd, &o.format)
	return cmd
}

func (o *options) run(ctx context.Context, verbose bool) error {
	i := o.info()
	if verbose && o.build.Details != nil {
		i.details = o.build.Details(ctx)
		i.Details = map[string]string{}
		for _, d := range i.details {
			i.Details[d.Name] = d.Value
		}
	}
	return output.Print(o.streams, o.format, output.View{
		Data:  i,
		Names: []string{i.Version},
		Page: func(w io.Writer, wide bool) error {
			_, err := io.WriteString(w, i.page(o.streams, verbose || wide))
			return err
		},
	})
}

func (o *options) info() info {
	i := info{Version: o.build.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				i.Revision = s.Value
			case "vcs.modified":
				i.Modified = s.Value == "true"
			}
		}
	}
	return i
}

func (i info) page(s *term.Streams, verbose bool) string {
	if !verbose {
		return "tpuctl " + i.Version + "\n"
	}
	p := output.NewPage(s, "tpuctl "+i.Version)
	revision := i.Revision
	if i.Modified {
		revision += " (modified)"
	}
	p.Field("revision", revision)
	p.Field("go", i.Go)
	p.Field("platform", i.Platform)
	for _, d := range i.details {
		p.Field(d.Name, d.Value)
	}
	return p.String()
}
