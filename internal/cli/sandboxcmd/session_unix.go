//go:build unix

package sandboxcmd

import (
	"os/exec"
	"syscall"
)

// ownSession detaches from the terminal: neither its Ctrl-C nor its end
// reaches the process.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
