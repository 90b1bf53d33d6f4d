package binaries

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Environment variables that change where programs come from.
const (
	// EnvFolder names a folder whose programs are used as they are.
	EnvFolder = "TPU_SANDBOX_BIN"
	// EnvCache names the cache's folder, instead of the user's.
	EnvCache = "TPU_SANDBOX_CACHE"
)

// lockPoll is how often a waiting process looks whether another has finished
// building.
const lockPoll = 250 * time.Millisecond

// ControlPlane returns the paths of etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kwok, jobset and kueue by name,
// after building those that are not in the cache: about six minutes once on
// two cores, no time after that. A nil progress is silent.
func ControlPlane(ctx context.Context, p Progress) (map[string]string, error) {
	return get(ctx, controlPlane, p)
}

// OlderControllers returns the paths of jobset and kueue of the versions
// OlderImages, after building them if they are not in the cache: about two
// minutes once on two cores. Only who runs those versions needs them.
func OlderControllers(ctx context.Context, p Progress) (map[string]string, error) {
	return get(ctx, olderControllers, p)
}

// OpenTofu returns the path of tofu, after building it if it is not in the
// cache: about two and a half minutes once on two cores.
func OpenTofu(ctx context.Context, p Progress) (string, error) {
	paths, err := get(ctx, openTofu, p)
	return paths["tofu"], err
}

// NoGoError says that there is no Go to build with, and that nothing is built.
type NoGoError struct{ Err error }

func (e *NoGoError) Error() string {
	return fmt.Sprintf("the sandbox builds its control plane with Go, and there is none to run (%v): install Go 1.26 or newer from https://go.dev/dl and put it on PATH, or set %s to a folder that holds the built programs", e.Err, EnvFolder)
}

func (e *NoGoError) Unwrap() error { return e.Err }

func get(ctx context.Context, m module, p Progress) (map[string]string, error) {
	if p == nil {
		p = silent{}
	}
	if dir := os.Getenv(EnvFolder); dir != "" && m.name == controlPlane.name {
		return given(m, dir)
	}
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	goTool, version, err := findGo(ctx)
	if err != nil {
		var none *NoGoError
		if paths, ok := builtBefore(m, cache); ok && errors.As(err, &none) {
			return paths, nil
		}
		return nil, err
	}
	b := builder{
		module: m,
		goTool: goTool,
		dir:    filepath.Join(cache, m.folder(version, runtime.GOOS, runtime.GOARCH)),
		p:      p,
	}
	if paths, missing := b.built(); len(missing) == 0 {
		return paths, nil
	}
	if err := b.buildMissing(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("building %s: %w", m.name, context.Cause(ctx))
		}
		return nil, err
	}
	paths, _ := b.built()
	return paths, nil
}

// builtBefore finds what some Go built of the same module, for a machine that
// has none now: each program tells which Go made it, and with that the folder's
// name is told to be the right one.
func builtBefore(m module, cache string) (map[string]string, bool) {
	dirs, err := filepath.Glob(filepath.Join(cache, m.name+"-*"))
	if err != nil {
		return nil, false
	}
	for _, dir := range dirs {
		b := builder{module: m, dir: dir}
		paths, missing := b.built()
		if len(missing) > 0 {
			continue
		}
		info, err := buildinfo.ReadFile(paths[m.targets[0].name])
		if err == nil && filepath.Base(dir) == m.folder(info.GoVersion, runtime.GOOS, runtime.GOARCH) {
			return paths, true
		}
	}
	return nil, false
}

// given checks that a folder the user named holds every program.
func given(m module, dir string) (map[string]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", EnvFolder, dir, err)
	}
	b := builder{module: m, dir: dir}
	paths, missing := b.built()
	if len(missing) > 0 {
		names := make([]string, len(missing))
		for i, t := range missing {
			names[i] = t.name
		}
		return nil, fmt.Errorf("%s=%s lacks %s: put them there, or unset the variable to have them built", EnvFolder, dir, strings.Join(names, ", "))
	}
	return paths, nil
}

func cacheFolder() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder to keep built programs in: %w: set %s to one", err, EnvCache)
	}
	return filepath.Join(dir, "tpu-sandbox"), nil
}

// findGo returns the go command and its version. It asks outside of any
// module, so that the answer depends on the installation alone.
func findGo(ctx context.Context) (path, version string, err error) {
	path, err = exec.LookPath("go")
	if err != nil {
		return "", "", &NoGoError{err}
	}
	cmd := exec.CommandContext(ctx, path, "env", "GOVERSION")
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	if err != nil {
		return "", "", &NoGoError{fmt.Errorf("%s env GOVERSION: %w", path, err)}
	}
	return path, strings.TrimSpace(string(out)), nil
}

// built lists what is there and what is not. A program appears under its name
// by a rename, so one that is there is whole.
func (b *builder) built() (paths map[string]string, missing []target) {
	paths = map[string]string{}
	for _, t := range b.module.targets {
		path := b.path(t)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			paths[t.name] = path
		} else {
			missing = append(missing, t)
		}
	}
	return paths, missing
}

// buildMissing builds under a lock, so that two processes do not do the same
// work at once: the second one waits, and finds it done.
func (b *builder) buildMissing(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("making the cache for built programs: %w: set %s to a folder that can be written", err, EnvCache)
	}
	lock := flock.New(filepath.Join(b.dir, ".lock"))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		b.p.Wait("another process is building " + b.module.name)
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", lock.Path(), err)
	}
	// The file stays: removing it would let two processes hold two locks of
	// the same name.
	defer func() { _ = lock.Unlock() }() // closing the file cannot be helped if it fails

	_, missing := b.built()
	if len(missing) == 0 {
		return nil
	}
	work, err := b.workspace()
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b.p.Begin(b.module.name, len(missing))
	for _, t := range missing {
		start := time.Now()
		b.p.Start(t.name)
		err := b.build(ctx, work, t)
		b.p.Done(t.name, time.Since(start), err)
		if err != nil {
			b.p.End(err)
			return err
		}
	}
	b.p.End(nil)
	return nil
}

// workspace makes the folder that holds the module while it is built, and
// removes those that a killed process left: the lock is ours, so they are
// nobody's.
func (b *builder) workspace() (string, error) {
	old, err := filepath.Glob(filepath.Join(b.dir, workPattern))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("removing what an interrupted build left: %w", err)
		}
	}
	work, err := os.MkdirTemp(b.dir, workPattern)
	if err != nil {
		return "", fmt.Errorf("making a folder to build in: %w", err)
	}
	for name, content := range map[string][]byte{"go.mod": b.module.mod, "go.sum": b.module.sum} {
		err = errors.Join(err, os.WriteFile(filepath.Join(work, name), content, 0o644))
	}
	err = errors.Join(err, os.Mkdir(filepath.Join(work, "tmp"), 0o755))
	if err != nil {
		_ = os.RemoveAll(work)
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path
		}
		return "", fmt.Errorf("writing the module to build: %w", err)
	}
	return work, nil
}
