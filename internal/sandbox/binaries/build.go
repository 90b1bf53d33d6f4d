package binaries

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	workPattern = ".build-*"
	// stderrLines of the compiler go into an error.
	stderrLines = 20
	// stopGrace is how long the compiler has to end after an interrupt.
	stopGrace = 5 * time.Second
)

// builder builds the programs of one module into one folder.
type builder struct {
	module module
	goTool string
	dir    string
	p      Progress
}

// BuildError is a failed build: the program and the compiler's last words.
type BuildError struct {
	Name, Package string
	Stderr        string
	Err           error
}

func (e *BuildError) Error() string {
	msg := fmt.Sprintf("building %s (go build %s): %v", e.Name, e.Package, e.Err)
	if e.Stderr != "" {
		msg += "\n" + e.Stderr
	}
	switch {
	case strings.Contains(e.Stderr, "no space left on device"):
		msg += fmt.Sprintf("\nThe disk is full. Free about 6 GB, or set GOCACHE, GOMODCACHE and %s to folders on another one.", EnvCache)
	case strings.Contains(e.Stderr, "dial tcp"), strings.Contains(e.Stderr, "module lookup disabled"), strings.Contains(e.Stderr, "i/o timeout"):
		msg += "\nModules are downloaded once, through GOPROXY: see that it can be reached from here."
	}
	return msg
}

func (e *BuildError) Unwrap() error { return e.Err }

func (b *builder) path(t target) string {
	name := t.name
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(b.dir, name)
}

// build compiles one program and puts it in place.
func (b *builder) build(ctx context.Context, work string, t target) error {
	out := filepath.Join(work, t.name)
	args := append([]string{"build", "-v"}, b.module.flags()...)
	args = append(args, "-o", out, t.pkg)
	cmd := exec.CommandContext(ctx, b.goTool, args...)
	cmd.Dir = work
	cmd.Env = environment(work)
	// Ctrl-C is ours to pass on: a group of its own, and a kill of all of it
	// when the interrupt does not end it.
	ownGroup(cmd)
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	stderr, w := io.Pipe()
	cmd.Stderr = w
	last := make(chan string)
	go func() { last <- b.follow(stderr) }()
	err := cmd.Run()
	if ctx.Err() != nil {
		_ = signalGroup(cmd, syscall.SIGKILL)
	}
	w.Close()
	text := <-last
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &BuildError{Name: t.name, Package: t.pkg, Stderr: text, Err: err}
	}
	if err := os.Rename(out, b.path(t)); err != nil {
		return fmt.Errorf("putting %s in the cache: %w", t.name, err)
	}
	return nil
}

// packageLine is what go build -v writes for each package it compiles.
var packageLine = regexp.MustCompile(`^[\w.~/@+-]+$`)

// follow reports the packages as they are compiled, and returns the last of
// the other lines: what went wrong.
func (b *builder) follow(r io.Reader) string {
	var lines []string
	compiled := 0
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		switch {
		case packageLine.MatchString(line):
			compiled++
			b.p.Step(line, compiled)
		case strings.HasPrefix(line, "go: downloading "):
			b.p.Step(strings.TrimPrefix(line, "go: "), compiled)
		case strings.TrimSpace(line) != "":
			lines = append(lines, line)
		}
	}
	if err := s.Err(); err != nil && !errors.Is(err, io.EOF) {
		_, _ = io.Copy(io.Discard, r) // never let the compiler block on us
	}
	return strings.Join(lines[max(0, len(lines)-stderrLines):], "\n")
}

// environment is the caller's, less what would change the result, be it set
// in the shell or with `go env -w`. The compiler's temporary files are ours to
// remove.
func environment(work string) []string {
	return append(os.Environ(),
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"GOTMPDIR="+filepath.Join(work, "tmp"),
		"PWD="+work,
	)
}
