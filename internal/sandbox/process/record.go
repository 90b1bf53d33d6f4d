package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// recordDir holds one file per live child, inside the folder it was started in.
const recordDir = "pids"

// identity names one process for good: a process id alone is reused.
type identity struct {
	pid     int
	started string // as the system tells it; opaque
}

func (i identity) alive() bool {
	s, err := startTime(i.pid)
	return err == nil && s == i.started && !ended(i.pid)
}

// writeRecord notes a child and the parent that answers for it.
func writeRecord(path string, pid int) error {
	child, err := startTime(pid)
	if err != nil {
		return err
	}
	parent, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d %s\n%d %s\n", pid, child, os.Getpid(), parent), 0o600)
}

func readRecord(path string) (child, parent identity, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return child, parent, err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2 {
		return child, parent, fmt.Errorf("%s is not a record of a process", path)
	}
	for i, into := range []*identity{&child, &parent} {
		pid, started, _ := strings.Cut(lines[i], " ")
		if into.pid, err = strconv.Atoi(pid); err != nil || into.pid <= 1 {
			return child, parent, fmt.Errorf("%s is not a record of a process", path)
		}
		into.started = started
	}
	return child, parent, nil
}

// InUseError says that a live process still runs children in a folder.
type InUseError struct {
	Dir string
	Pid int
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by process %d: stop that one first, or use another folder", e.Dir, e.Pid)
}

// CleanUp ends what a dead parent left running, in dir and in the folders below
// it. A process is ended only if it started when the record says, so a reused
// process id is never hit. A live parent is left alone: *InUseError.
func CleanUp(dir string) error {
	var left []identity
	err := eachRecord(dir, func(path string, child, parent identity) error {
		switch {
		case !child.alive():
		case parent.alive():
			return &InUseError{Dir: dir, Pid: parent.pid}
		default:
			if err := killGroup(child.pid, syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("ending process %d (%s), left by an earlier run: %w", child.pid, filepath.Base(path), err)
			}
			left = append(left, child)
		}
		return os.Remove(path)
	})
	if err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, c := range left {
		for c.alive() {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d, left by an earlier run, does not end", c.pid)
			}
			time.Sleep(5 * time.Millisecond) // nobody tells us of the end of a process that is not our child
		}
	}
	return nil
}

func eachRecord(dir string, f func(path string, child, parent identity) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // never started, or ended meanwhile
		}
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) != recordDir {
			return err
		}
		child, parent, err := readRecord(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			// Cut off while it was written: its child has died with the parent.
			return os.Remove(path)
		}
		return f(path, child, parent)
	})
}
