package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// What a sandbox's folder holds.
const (
	lockFile       = "sandbox.lock" // locked while the sandbox runs; holds its pid; marks the folder as ours
	tokenFile      = "token"
	addressFile    = "sandbox.json"
	fakeStateFile  = "gke.json"
	faultsFile     = "faults.json"
	capacityFile   = "capacity.json"
	kubeconfigFile = "kubeconfig"
	logFile        = "sandbox.log"
	clustersFolder = "clusters"
)

// lockPatience is longer than anyone but a running sandbox holds the lock.
const lockPatience = 200 * time.Millisecond

// RunningError says that a sandbox already runs in a folder.
type RunningError struct {
	Dir string
	Pid int // 0 when it is not known yet
}

func (e *RunningError) Error() string {
	who := "process " + strconv.Itoa(e.Pid)
	if e.Pid == 0 {
		who = "another process"
	}
	return fmt.Sprintf("a sandbox already runs in %s (%s)", e.Dir, who)
}

// FolderError says that a folder cannot be a sandbox's; another one may.
type FolderError struct {
	Dir string
	Err error
}

func (e *FolderError) Error() string { return e.Err.Error() + ": use another folder" }
func (e *FolderError) Unwrap() error { return e.Err }

// address is how to reach a sandbox, and what it was started as. The token is
// in a file of its own.
type address struct {
	Endpoint string `json:"endpoint"`
	Project  string `json:"project"`
	Zone     string `json:"zone"`
}

// folder is a sandbox's folder, locked by this process.
type folder struct {
	dir   string
	fresh bool // it did not hold a sandbox before
	lock  *flock.Flock
}

// openFolder makes or takes over a folder, and ends what a killed sandbox left
// running in it. It refuses a folder that holds anything but a sandbox.
func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.fresh = true
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &FolderError{dir, fmt.Errorf("making the sandbox's folder: %w", err)}
		}
	case err != nil:
		return nil, &FolderError{dir, fmt.Errorf("reading the sandbox's folder: %w", err)}
	case len(entries) == 0:
		f.fresh = true
	case !isOurs(dir):
		return nil, &FolderError{dir, fmt.Errorf("%s holds files that are not a sandbox's", dir)}
	}
	if f.lock, err = lockFolder(dir); err != nil {
		if running := (*RunningError)(nil); f.fresh && !errors.As(err, &running) {
			f.removeIfFresh()
		}
		return nil, err
	}
	if err := process.CleanUp(dir); err != nil {
		f.close()
		return nil, fmt.Errorf("cleaning up after an earlier sandbox in %s: %w", dir, err)
	}
	return f, nil
}

func isOurs(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, lockFile))
	return err == nil
}

// lockFolder takes the lock and writes our pid into it.
func lockFolder(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockFile)
	for {
		lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		// Another process may hold it for a moment, to see whether we run.
		ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
		ok, err := lock.TryLockContext(ctx, 10*time.Millisecond)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, &FolderError{dir, fmt.Errorf("locking the sandbox's folder: %w", err)}
		}
		if !ok {
			return nil, &RunningError{Dir: dir, Pid: lockedBy(dir)}
		}
		// Whoever had it may have removed the folder: then this is the lock of
		// a file that nobody else will find.
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			_ = lock.Unlock()
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("making the sandbox's folder: %w", err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
			_ = lock.Unlock()
			return nil, fmt.Errorf("writing to the sandbox's folder: %w; make room there, or use another folder", err)
		}
		return lock, nil
	}
}

// lockedBy is the process id in the lock file, or 0.
func lockedBy(dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// close gives the folder up and keeps what is in it.
func (f *folder) close() {
	_ = os.Truncate(f.path(lockFile), 0)
	_ = f.lock.Unlock()
}

// removeIfFresh undoes openFolder: a start that fails leaves no folder that was
// not there, and no file in one that was empty.
func (f *folder) removeIfFresh() {
	if f.fresh {
		_ = os.RemoveAll(f.dir)
	}
	if f.lock != nil {
		_ = f.lock.Unlock()
	}
}

// token returns the folder's bearer token, a new one the first time.
func (f *folder) token() (string, error) {
	b, err := os.ReadFile(f.path(tokenFile))
	if err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the sandbox's token: %w", err)
	}
	token := "sandbox-" + rand.Text()
	if err := writeFile(f.path(tokenFile), []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("writing the sandbox's token: %w", err)
	}
	return token, nil
}

func (f *folder) address() (address, error) { return readAddress(f.dir) }

func readAddress(dir string) (address, error) {
	var a address
	b, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(b, &a)
}

func (f *folder) setAddress(a address) error {
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(f.path(addressFile), append(b, '\n')); err != nil {
		return fmt.Errorf("writing how to reach the sandbox: %w", err)
	}
	return nil
}

// writeFile replaces a file in one step, readable by its owner only: a reader
// never sees half of it, and a failed write leaves the old one.
func writeFile(path string, data []byte) error {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		_ = os.Remove(t.Name())
	}
	return err
}
