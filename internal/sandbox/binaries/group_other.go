//go:build !unix

package binaries

import (
	"os/exec"
	"syscall"
)

func ownGroup(*exec.Cmd) {}

// signalGroup has no group to reach here, so it ends the process alone.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }
