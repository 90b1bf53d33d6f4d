//go:build darwin || freebsd

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func supported() error { return nil }

// attributes: no death signal exists here; CleanUp at the next start is what
// ends the children of a killed parent.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func spawn(cmd *exec.Cmd) error { return cmd.Start() }

func killGroup(pid int, sig syscall.Signal) error {
	err := syscall.Kill(-pid, sig)
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

func startTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("asking ps for process %d: %w", pid, err)
	}
	return strings.Join(strings.Fields(string(out)), "_"), nil
}

// ended tells a process that only waits for its parent to notice its end.
func ended(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
