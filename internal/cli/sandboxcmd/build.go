package sandboxcmd

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
)

type buildOptions struct {
	streams  *term.Streams
	format   output.Format
	openTofu bool
	older    bool
}

func newBuild(s *term.Streams) *cobra.Command {
	o := &buildOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the control plane's programs, unless they are in the cache",
		Long: `Build the programs that a sandbox runs, from pinned modules, and print where they
are. 'up' does the same when it needs to. It takes Go on PATH, about 6 minutes on
2 cores the first time, and no time after that.

The cache is tpu-sandbox in your cache directory, or $` + binaries.EnvCache + `.
$` + binaries.EnvFolder + ` names a folder whose programs are used instead.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.openTofu, "opentofu", false, "build OpenTofu's command line instead")
	cmd.Flags().BoolVar(&o.older, "older-controllers", false, "build JobSet "+binaries.OlderImages["jobset"]+" and Kueue "+binaries.OlderImages["kueue"]+" instead, to try upgrades from")
	cmd.MarkFlagsMutuallyExclusive("opentofu", "older-controllers")
	output.AddFlag(cmd, &o.format)
	return cmd
}

func (o *buildOptions) run(ctx context.Context) error {
	progress := binaries.NewProgress(o.streams.Err)
	paths := map[string]string{}
	var err error
	switch {
	case o.openTofu:
		paths["tofu"], err = binaries.OpenTofu(ctx, progress)
	case o.older:
		paths, err = binaries.OlderControllers(ctx, progress)
	default:
		paths, err = binaries.ControlPlane(ctx, progress)
	}
	if err != nil {
		return err
	}
	v := output.View{Data: paths, Table: output.Table{Columns: []output.Column{{Name: "PROGRAM"}, {Name: "PATH"}}}}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		v.Names = append(v.Names, paths[name])
		v.Table.Rows = append(v.Table.Rows, []string{name, paths[name]})
	}
	return output.Print(o.streams, o.format, v)
}
