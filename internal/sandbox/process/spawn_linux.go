package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

func supported() error { return nil }

// attributes: a group of its own keeps a terminal's Ctrl-C from the child (the
// parent stops it in order); the death signal covers a kill -9 of the parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

var spawner = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		// The kernel sends the parent-death signal when the *thread* that
		// forked ends, not the process. The runtime ends idle threads, so all
		// forks happen on one thread that never ends before the process does.
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func spawn(cmd *exec.Cmd) error {
	err := make(chan error)
	spawner() <- func() { err <- cmd.Start() }
	return <-err
}

func killGroup(pid int, sig syscall.Signal) error {
	err := syscall.Kill(-pid, sig)
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

// ended tells a process that only waits for its parent to notice its end.
func ended(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	return len(f) > 0 && (f[0] == "Z" || f[0] == "X")
}

// startTime is field 22 of /proc/PID/stat, in clock ticks since boot, after the
// boot's own id: two boots may give one pid the same tick.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in parentheses, and may itself
	// hold spaces and parentheses.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return "", fmt.Errorf("reading /proc/%d/stat: unexpected form", pid)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + f[19], nil
}
