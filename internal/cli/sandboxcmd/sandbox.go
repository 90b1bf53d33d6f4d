// Package sandboxcmd is `tpuctl sandbox`: GKE with TPUs on this machine, to
// try things with no cloud. It starts, asks and stops; what a sandbox is,
// package sandbox knows.
package sandboxcmd

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

// EnvDir names the sandbox's folder when --dir does not.
const EnvDir = "TPU_SANDBOX_DIR"

// New is the command `sandbox` with its children.
func New(s *term.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run GKE with TPUs on this machine: no cloud, no docker, no root",
		Long: `A sandbox is a GKE API on 127.0.0.1. Each cluster made through it is a real
Kubernetes control plane, where the real JobSet and Kueue controllers run and
simulated TPU hosts run jobs. It needs Go on PATH, to build the control plane
once.`,
		Example: `  tpuctl sandbox up
  eval "$(tpuctl sandbox env)"
  terraform apply
  tpuctl sandbox down`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newUp(s), newEnv(s), newStatus(s), newDown(s), newBuild(s), newFault(s), newCapacity(s), newDisrupt(s), newExit(s), newPrint(s), newServe())
	return cmd
}

// addDir adds --dir.
func addDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().Var((*dirFlag)(dir), "dir", "the sandbox's folder (default $"+EnvDir+", else a folder of its own in your state directory)")
}

// dirFlag is a folder's name. An empty one is a variable that is not set, not a
// wish for the default folder.
type dirFlag string

func (d *dirFlag) String() string { return string(*d) }
func (d *dirFlag) Type() string   { return "string" }

func (d *dirFlag) Set(dir string) error {
	if dir == "" {
		return errors.New("it names no folder; leave --dir out for the default one")
	}
	*d = dirFlag(dir)
	return nil
}

// folder is the sandbox's folder: the flag, the environment, or
// ~/.local/state/tpu-sandbox/default.
func folder(flag string) (string, error) {
	if flag == "" {
		flag = os.Getenv(EnvDir)
	}
	if flag != "" {
		return filepath.Abs(flag)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG specification: relative paths are ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", exit.Usagef("finding a folder for the sandbox: %w: name one with --dir", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "tpu-sandbox", "default"), nil
}
