// Package cli is tpuctl: the root command, what every command shares, and the
// way a run ends. Commands live in packages of their own; what they show and do
// lives below, in packages that the provider uses too.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/accelerators"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clusters"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/configcmd"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/jobs"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/queues"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/sandboxcmd"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/slices"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// New is the root command. It opens nothing and reads no configuration: a
// command does, when it runs.
func New(s *term.Streams, build version.Build) *cobra.Command {
	verbose := false
	root := &cobra.Command{
		Use:   "tpuctl",
		Short: "Train on Cloud TPUs in GKE",
		Long: `tpuctl is the daily tool for TPU training on GKE: submit jobs and follow them,
look up TPU slices, and try everything in a local sandbox. tpuctl status says why
a job waits or failed, tpuctl queues who is before it, tpuctl slices what is free,
and tpuctl logs --first-failure what went wrong.

Terraform's provider "tpu" manages the same clusters, slices, queues and jobs.`,
		Version:       build.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			cmd.SetContext(hclog.WithContext(cmd.Context(), logger(s, verbose)))
		},
	}
	root.SetVersionTemplate("tpuctl {{.Version}}\n")
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetIn(s.In)
	root.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "say more: log what is asked of which server, on standard error")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 && errors.As(err, new(*pflag.NotExistError)) {
			return &exit.UsageError{Err: unknownCommand(cmd, words)} // the flag is of a command that there is not
		}
		return exit.Usagef("%w%s\nSee: %s --help", flagValue(err), otherFlag(cmd, err), cmd.CommandPath())
	})
	root.AddCommand(jobs.Commands(s)...)
	root.AddCommand(slices.New(s), accelerators.New(s), clusters.New(s), queues.New(s), configcmd.New(s), sandboxcmd.New(s), version.New(s, build))
	// Cobra adds these two when it runs; groups of commands are ours to check.
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(newHelp())
	groups(root)
	usageErrors(root)
	return root
}

// newHelp is cobra's, but for a topic that there is not.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if found, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, child := range found.Commands() {
					if child.IsAvailableCommand() && strings.HasPrefix(child.Name(), typed) {
						names = append(names, cobra.CompletionWithDesc(child.Name(), child.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			topic := cmd.Root()
			for _, name := range args {
				next, _, err := topic.Find([]string{name})
				if err != nil || next == topic {
					return &exit.UsageError{Err: unknownCommand(topic, []string{name})}
				}
				topic = next
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// groups makes commands that only have others below them say so of a wrong one.
func groups(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		if child.HasSubCommands() && (child.RunE == nil && child.Run == nil || child.ValidArgsFunction == nil && !child.Flags().HasFlags()) {
			child.Args = unknownCommand
			child.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		groups(child)
	}
}

// usageErrors makes wrong arguments of any command usage errors.
func usageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &exit.UsageError{Err: err}
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		usageErrors(child)
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	path := strings.TrimPrefix(cmd.CommandPath()+" "+args[0], cmd.Root().Name()+" ")
	message := fmt.Sprintf("there is no command %q", path)
	words := append(strings.Fields(cmd.CommandPath())[1:], args...)
	if ours := xpkCommand(words); ours != "" {
		message += ours
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s\nSee: %s --help", message, cmd.CommandPath())
}

// logger is what commands, and the libraries that they use, log to.
func logger(s *term.Streams, verbose bool) hclog.Logger {
	level := hclog.Warn
	if verbose {
		level = hclog.Debug
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "tpuctl", Level: level, Output: s.Err})
	logLibraries(log)
	return log
}

// Main runs tpuctl with args and returns its exit code. Errors have been
// written to the streams' Err.
func Main(ctx context.Context, args []string, s *term.Streams, build version.Build) int {
	own, written := *s, &output.Checked{Writer: s.Out}
	own.Out = written
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		own.Err = io.Discard // it is written into the line that somebody types
	}
	s = &own
	root := New(s, build)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = written.Err() // whoever wrote did not look
	}
	if err == nil {
		return exit.OK
	}
	var code *exit.CodeError
	if errors.As(err, &code) && code.Err == nil {
		return code.Code
	}
	if ctx.Err() != nil && code == nil { // whatever the error says, Ctrl-C is its cause
		fmt.Fprintln(s.Err, "tpuctl: interrupted")
		return exit.Interrupted
	}
	output.WriteError(s.Err, formatOf(cmd), "tpuctl", err, fields(err))
	return exit.Code(err)
}

// formatOf is the output format the failed command was asked for.
func formatOf(cmd *cobra.Command) output.Format {
	if cmd != nil {
		if f := cmd.Flags().Lookup("output"); f != nil {
			return output.Format(f.Value.String())
		}
	}
	return output.TableFormat
}

// fields are what an error's type knows beyond its text.
func fields(err error) map[string]any {
	var a *accelerator.Error
	if errors.As(err, &a) {
		return map[string]any{"kind": a.Kind, "input": a.Input, "choices": append([]string{}, a.Choices...)}
	}
	var known interface{ Fields() map[string]any }
	if errors.As(err, &known) {
		return known.Fields()
	}
	var missing *training.NotFoundError
	if errors.As(err, &missing) {
		return map[string]any{"kind": "not_found", "job": strings.TrimPrefix(missing.Namespace+"/"+missing.Name, "/")}
	}
	var taken *training.ExistsError
	if errors.As(err, &taken) {
		return map[string]any{"kind": "exists", "job": taken.Key.String()}
	}
	var u *exit.UsageError
	if errors.As(err, &u) {
		return map[string]any{"kind": "usage"}
	}
	return nil
}
