//go:build !unix

package sandboxcmd

import "os/exec"

// ownSession has nothing to detach from: package process refuses to run here.
func ownSession(*exec.Cmd) {}
