package sandboxcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// ask hands a wish to the sandbox that runs in the folder of --dir.
func ask[W, T any](ctx context.Context, dirFlag string, do func(ctx context.Context, dir string, wish W) (T, error), wish W) (T, error) {
	dir, err := folder(dirFlag)
	if err != nil {
		var none T
		return none, err
	}
	out, err := do(ctx, dir, wish)
	return out, notRunning(err, dirFlag)
}

// notRunning says how to start a sandbox when none runs.
func notRunning(err error, dirFlag string) error {
	var stopped *sandbox.NotRunningError
	if errors.As(err, &stopped) {
		return &exit.CodeError{Code: exit.Failure, Err: hint(err, dirFlag)}
	}
	return err
}

// newListed is a command that lists what is in force in a sandbox.
func newListed[T any](s *term.Streams, short string, read func(ctx context.Context, dir string) (T, error), view func(T) output.View) *cobra.Command {
	var dirFlag string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := ask(cmd.Context(), dirFlag, func(ctx context.Context, dir string, _ struct{}) (T, error) { return read(ctx, dir) }, struct{}{})
			if err != nil {
				return err
			}
			return output.Print(s, format, view(all))
		},
	}
	addDir(cmd, &dirFlag)
	output.AddFlag(cmd, &format)
	return cmd
}

// newEnded is a command that ends some of what is in force, by its names, or all
// of it, and tells of what it ended.
func newEnded[T any](s *term.Streams, use, short string, end func(ctx context.Context, dir string, names ...string) ([]T, error), tell func([]T) string) *cobra.Command {
	var dirFlag string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, names []string) error {
			ended, err := ask(cmd.Context(), dirFlag, func(ctx context.Context, dir string, names []string) ([]T, error) { return end(ctx, dir, names...) }, names)
			if err != nil {
				return err
			}
			fmt.Fprintln(s.Out, tell(ended))
			return nil
		},
	}
	addDir(cmd, &dirFlag)
	return cmd
}
