package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// Running tells whether a sandbox runs in dir, and as which process. The lock
// decides, not the process id: a killed sandbox's id may be another program's
// by now.
func Running(dir string) (pid int, running bool) {
	if !isOurs(dir) {
		return 0, false
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDWR))
	ok, err := lock.TryLock()
	if ok {
		_ = lock.Unlock()
	}
	if ok || err != nil {
		return 0, false
	}
	return lockedBy(dir), true
}

// Gone says what Down ended.
type Gone struct {
	Dir       string `json:"dir"`
	Found     bool   `json:"found"`     // there was a sandbox, running or not
	Pid       int    `json:"pid"`       // of the sandbox that ran, or 0
	Processes int    `json:"processes"` // how many of its children ran
	Clusters  int    `json:"clusters"`  // how many clusters it had, when it could be asked
	Kept      bool   `json:"kept"`      // the folder is still there
}

// Down stops the sandbox in dir, be it another process or what is left of a
// killed one, removes the folder unless keep, and sees to it that no process
// and no port is left. Without a sandbox it does nothing.
func Down(ctx context.Context, dir string, keep bool) (*Gone, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	g := &Gone{Dir: dir, Kept: keep}
	if !isOurs(dir) {
		if _, err := os.Stat(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return g, fmt.Errorf("looking for a sandbox: %w", err)
		}
		return g, nil
	}
	g.Found = true
	g.Processes = len(process.List(filepath.Join(dir, clustersFolder)))
	before, _ := readAddress(dir)
	if st, err := StatusOf(ctx, dir); err == nil {
		g.Clusters = len(st.Clusters)
	}
	if pid, running := Running(dir); running {
		if pid <= 1 {
			return g, fmt.Errorf("stopping the sandbox in %s: another process is starting or removing it; try again in a moment", dir)
		}
		g.Pid = pid
		if err := terminate(ctx, dir, pid); err != nil {
			return g, err
		}
	}
	f, err := openFolder(dir) // also ends what a killed one left
	if err != nil {
		return g, err
	}
	if left := process.List(dir); len(left) > 0 {
		f.close()
		return g, fmt.Errorf("process %d (%s) of the sandbox in %s does not end", left[0].Pid, left[0].Name, dir)
	}
	if keep {
		f.close()
	} else {
		if err := os.RemoveAll(dir); err != nil {
			f.close()
			return g, fmt.Errorf("removing the sandbox's folder: %w", err)
		}
		_ = f.lock.Unlock()
	}
	if g.Pid != 0 && answers(before.Endpoint) {
		return g, fmt.Errorf("%s still answers although the sandbox has stopped: another program took its port", before.Endpoint)
	}
	return g, nil
}

// terminate asks the sandbox to end, and waits until it has let go of its lock.
func terminate(ctx context.Context, dir string, pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("stopping the sandbox in %s: %w", dir, err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the sandbox in %s (process %d): %w", dir, pid, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, fmt.Errorf("it has not ended within %s", stopTimeout))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, running := Running(dir); !running {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopping the sandbox in %s (process %d): %w: see its log %s, or end the process yourself and repeat",
				dir, pid, context.Cause(ctx), filepath.Join(dir, logFile))
		case <-tick.C:
		}
	}
}

func answers(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return false
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
