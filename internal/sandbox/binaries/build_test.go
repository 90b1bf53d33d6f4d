package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var tiny = module{
	name: "tiny", mod: []byte("module tiny\n"), ldflags: "-s",
	targets: []target{{"one", "example.com/one"}, {"two", "example.com/two"}},
}

// fakeGo puts a go command on PATH that answers `go env GOVERSION` and runs
// script for `go build`, with $out the file to make and $pkg the package. Each
// build is noted in the returned file.
func fakeGo(t *testing.T, script string) (builds string) {
	t.Helper()
	dir := t.TempDir()
	builds = filepath.Join(dir, "builds")
	body := fmt.Sprintf(`#!/bin/sh
if [ "$1" = env ]; then echo go1.99; exit 0; fi
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then out=$2; fi
  pkg=$1; shift
done
echo "$pkg" >> %s
%s
`, builds, script)
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv(EnvCache, filepath.Join(dir, "cache"))
	t.Setenv(EnvFolder, "")
	return builds
}

const compile = `echo "$pkg/dep" >&2; echo '#!/bin/sh' > "$out"; chmod +x "$out"`

func count(t *testing.T, builds string) int {
	t.Helper()
	b, err := os.ReadFile(builds)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// leftovers lists what a build must not leave in the cache.
func leftovers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv(EnvCache), "*", workPattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheSecondRunBuildsNothing(t *testing.T) {
	builds := fakeGo(t, compile)
	for range 2 {
		paths, err := get(t.Context(), tiny, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			if _, err := os.Stat(paths[name]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n := count(t, builds); n != 2 {
		t.Errorf("%d builds, want 2: one for each program", n)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSeveralAtOnceBuildOnce(t *testing.T) {
	builds := fakeGo(t, compile)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := get(t.Context(), tiny, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, builds); n != 2 {
		t.Errorf("%d builds, want 2", n)
	}
}

func TestAFailedBuildSaysWhatTheCompilerSaid(t *testing.T) {
	builds := fakeGo(t, `case $pkg in */two) echo "example.com/dep" >&2; echo "two.go:3: undefined: x" >&2; exit 1;; esac; `+compile)
	_, err := get(t.Context(), tiny, nil)
	var failed *BuildError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a *BuildError", err)
	}
	if failed.Name != "two" || failed.Stderr != "two.go:3: undefined: x" {
		t.Errorf("got %q with %q, want two with the compiler's line and no names of packages", failed.Name, failed.Stderr)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	// What was built before the failure stays good.
	_, _ = get(t.Context(), tiny, nil)
	if n := count(t, builds); n != 3 {
		t.Errorf("%d builds, want 3: one, two, two again", n)
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	fakeGo(t, `echo "link: write: no space left on device" >&2; exit 1`)
	_, err := get(t.Context(), tiny, nil)
	if err == nil || !strings.Contains(err.Error(), "The disk is full") {
		t.Errorf("got %v, want the remedy for a full disk", err)
	}
}

func TestCtrlCStopsTheCompilerAndLeavesNoHalfFile(t *testing.T) {
	fakeGo(t, `echo half > "$out"; echo started/pkg >&2; exec sleep 600`)
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	_, err := get(ctx, tiny, &onStep{cancel: cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if files, _ := filepath.Glob(filepath.Join(os.Getenv(EnvCache), "*", "[^.]*")); len(files) != 0 {
		t.Errorf("left in the cache: %v", files)
	}
}

// onStep interrupts as soon as the compiler runs.
type onStep struct {
	silent
	cancel func()
}

func (o *onStep) Step(string, int) { o.cancel() }

func TestLeftoversOfAKilledBuildGo(t *testing.T) {
	fakeGo(t, compile)
	dir := filepath.Join(os.Getenv(EnvCache), tiny.folder("go1.99", runtime.GOOS, runtime.GOARCH))
	if err := os.MkdirAll(filepath.Join(dir, ".build-123", "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t.Context(), tiny, nil); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWithoutGoTheMessageSaysWhereToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvFolder, "")
	t.Setenv(EnvCache, t.TempDir())
	_, err := ControlPlane(t.Context(), nil)
	var none *NoGoError
	if !errors.As(err, &none) || !errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("got %v, want a *NoGoError", err)
	}
	for _, want := range []string{"Go 1.26", "https://go.dev/dl", EnvFolder} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

func TestWhatIsBuiltNeedsNoGo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fill := func(t *testing.T, goVersion string) (dir string) {
		t.Helper()
		cache := t.TempDir()
		t.Setenv("PATH", t.TempDir())
		t.Setenv(EnvFolder, "")
		t.Setenv(EnvCache, cache)
		dir = filepath.Join(cache, tiny.folder(goVersion, runtime.GOOS, runtime.GOARCH))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, x := range tiny.targets {
			if err := os.Symlink(self, filepath.Join(dir, x.name)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	var none *NoGoError

	dir := fill(t, runtime.Version())
	paths, err := get(t.Context(), tiny, nil)
	if err != nil || paths["two"] != filepath.Join(dir, "two") {
		t.Errorf("got %v, %v, want the programs of %s", paths, err, dir)
	}
	other := tiny
	other.sum = []byte("newer")
	if _, err := get(t.Context(), other, nil); !errors.As(err, &none) {
		t.Errorf("another module got %v, want that there is no Go", err)
	}
	if err := os.Remove(filepath.Join(dir, "two")); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t.Context(), tiny, nil); !errors.As(err, &none) {
		t.Errorf("a folder without two got %v, want that there is no Go", err)
	}
	fill(t, "go1.0")
	if _, err := get(t.Context(), tiny, nil); !errors.As(err, &none) {
		t.Errorf("a folder of another Go's name got %v, want that there is no Go", err)
	}
}

func TestAGivenFolderIsUsedAsItIs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvFolder, dir)
	t.Setenv("PATH", t.TempDir()) // no Go is needed
	for _, x := range controlPlane.targets[1:] {
		if err := os.WriteFile(filepath.Join(dir, x.name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ControlPlane(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "lacks etcd:") {
		t.Errorf("got %v, want that etcd is missing", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	paths, err := ControlPlane(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := paths["etcd"], filepath.Join(dir, "etcd"); got != want || len(paths) != len(controlPlane.targets) {
		t.Errorf("got %v", paths)
	}
}

func TestACacheThatCannotBeWritten(t *testing.T) {
	fakeGo(t, compile)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvCache, filepath.Join(file, "cache"))
	if _, err := get(t.Context(), tiny, nil); err == nil || !strings.Contains(err.Error(), EnvCache) {
		t.Errorf("got %v, want the variable that moves the cache", err)
	}
}

func TestTheUsersGoSettingsDoNotReachTheBuild(t *testing.T) {
	builds := fakeGo(t, `echo "$GOFLAGS $GOWORK $CGO_ENABLED $GOOS" >> `+filepath.Join(t.TempDir(), "env")+`; [ "$GOFLAGS" = -mod=readonly ] && [ "$GOWORK" = off ] && [ "$CGO_ENABLED" = 0 ] || exit 1; `+compile)
	t.Setenv("GOFLAGS", "-mod=vendor -race")
	t.Setenv("GOWORK", "/somewhere/go.work")
	t.Setenv("CGO_ENABLED", "1")
	if _, err := get(t.Context(), tiny, nil); err != nil {
		t.Error(err)
	}
	if n := count(t, builds); n != 2 {
		t.Errorf("%d builds, want 2", n)
	}
}

func TestProgressInLines(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := &lines{w: &b, now: func() time.Time { return now }}
	p.Begin(controlPlane.name, 2)
	p.Start("etcd")
	p.Step("a/b", 1) // too soon to repeat oneself
	now = now.Add(31 * time.Second)
	p.Step("a/c", 40)
	p.Done("etcd", 38*time.Second, nil)
	p.Start("kwok")
	p.Done("kwok", 1234*time.Millisecond, nil)
	p.End(nil)
	const want = `Building the control plane (once; about 6 minutes on 2 cores)
  [1/2] etcd ...
        etcd: 40 packages compiled, 31s
  [1/2] etcd built in 38s
  [2/2] kwok ...
  [2/2] kwok built in 1.2s
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

func TestBarsEndWhateverHappened(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no")} {
		p := &bars{w: &bytes.Buffer{}}
		p.Begin(controlPlane.name, 2)
		p.Start("etcd")
		p.Step(strings.Repeat("very/long/", 10)+"package", 3)
		p.Done("etcd", time.Second, nil)
		p.Start("kwok")
		p.Done("kwok", time.Second, failure)
		p.End(failure) // must not hang
	}
}
