//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentEnv makes the test binary play a sandbox that is about to be killed:
// it starts children in the folder that the variable names, and waits.
const parentEnv = "PROCESS_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		for i := range 3 {
			if _, err := Start(shell(dir, fmt.Sprintf("child-%d", i), "exec sleep 600")); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		fmt.Println("started")
		select {}
	}
	os.Exit(m.Run())
}

func shell(dir, name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir}
}

func mustStart(t *testing.T, s Spec) *Child {
	t.Helper()
	c, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(0) })
	return c
}

// until waits for what another process does; nothing tells us when.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20s", what)
		}
	}
}

func recorded(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, recordDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestStopEndsAChildAndItsRecord(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
	}{
		"obedient":               {"exec sleep 600", 10 * time.Second},
		"deaf to the first call": {"trap '' TERM; echo deaf; while :; do sleep 0.05; done", 50 * time.Millisecond},
		"killed at once":         {"exec sleep 600", 0},
		"with a child":           {"sleep 600 & echo deaf; wait", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			child := mustStart(t, shell(dir, "part", c.script))
			if len(recorded(t, dir)) != 1 || child.Err() != nil {
				t.Fatalf("a running child has %d records and error %v", len(recorded(t, dir)), child.Err())
			}
			if strings.Contains(c.script, "deaf") {
				until(t, "the child to be up", func() bool { return child.Tail(1) == "deaf" })
			}
			child.Stop(c.grace)
			child.Stop(c.grace) // again: nothing happens
			if child.Err() == nil || len(recorded(t, dir)) != 0 {
				t.Errorf("a stopped child has %d records and error %v", len(recorded(t, dir)), child.Err())
			}
			until(t, "the whole process group to be gone", func() bool {
				return errors.Is(syscall.Kill(-child.Pid(), 0), syscall.ESRCH)
			})
		})
	}
}

// An error about a child that ended says what the child said.
func TestExitErrorRepeatsTheLog(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, script string
		code         int
		want, not    []string
	}{
		{"usage", "echo one; echo 'Error: unknown flag' >&2; exit 3", 3, []string{"usage ended with exit status 3", "one\nError: unknown flag", "logs/usage.log"}, nil},
		{"silent", "exit 1", 1, []string{"exit status 1", "(it is empty)"}, nil},
		{"signal", "kill -9 $$", -1, []string{"signal: killed"}, nil},
		{"long", "for i in $(seq 100); do echo line $i; done; exit 1", 1, []string{"line 89\n", "line 100"}, []string{"line 88\n"}},
		{"panic", "echo cause; echo 'panic: boom'; echo; echo 'goroutine 1 [running]:'; for i in $(seq 100); do echo frame $i; done; exit 2", 2, []string{"cause\npanic: boom"}, []string{"goroutine", "frame 100"}},
	} {
		child := mustStart(t, shell(dir, c.name, c.script))
		<-child.Done()
		var exit *ExitError
		if !errors.As(child.Err(), &exit) || exit.Code != c.code {
			t.Fatalf("%s: error %#v, want exit code %d", c.name, child.Err(), c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(exit.Error(), want) {
				t.Errorf("%s: the error lacks %q:\n%s", c.name, want, exit)
			}
		}
		for _, not := range c.not {
			if strings.Contains(exit.Error(), not) {
				t.Errorf("%s: the error should not contain %q:\n%s", c.name, not, exit)
			}
		}
	}
}

// A log is kept over restarts, but an error shows this run's lines only.
func TestTailBelongsToOneRun(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"first", "second"} {
		child := mustStart(t, shell(dir, "part", "echo "+text))
		<-child.Done()
		if got := child.Tail(10); got != text {
			t.Errorf("tail is %q, want %q", got, text)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "logs", "part.log"))
	if err != nil || string(b) != "first\nsecond\n" {
		t.Errorf("the log is %q, %v", b, err)
	}
}

func TestNothingIsInheritedOrReadableByOthers(t *testing.T) {
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "a-secret")
	dir := t.TempDir()
	child := mustStart(t, shell(dir, "part", "env"))
	<-child.Done()
	if out := child.Tail(100); strings.Contains(out, "a-secret") {
		t.Errorf("the child sees the caller's credentials:\n%s", out)
	}
	mustStart(t, shell(dir, "running", "exec sleep 600"))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		fi, err := d.Info()
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	s := shell(dir, "part", "")
	s.Path = filepath.Join(dir, "missing")
	if _, err := Start(s); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "starting part") {
		t.Errorf("a missing program: %v", err)
	}
	s = shell(filepath.Join(dir, "file"), "part", "")
	if err := os.WriteFile(s.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(s); err == nil {
		t.Error("a file instead of a folder was accepted")
	}
	if n := len(recorded(t, dir)); n != 0 {
		t.Errorf("%d records of processes that never ran", n)
	}
}

// A parent that is killed leaves no child: at once where the kernel sees to
// it, after CleanUp everywhere.
func TestKilledParentLeavesNoChild(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	parent := exec.Command(exe)
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, _ := out.Read(line)
	if string(line[:n]) != "started\n" {
		t.Fatalf("the parent says %q", line[:n])
	}
	if len(List(dir)) != 3 {
		t.Fatalf("%d children live, want 3", len(List(dir)))
	}
	var busy *InUseError
	if err := CleanUp(dir); !errors.As(err, &busy) || busy.Pid != parent.Process.Pid || len(List(dir)) != 3 {
		t.Fatalf("cleaning up under a live parent: %v, %d live", err, len(List(dir)))
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if _, err := os.Stat("/proc/self"); err == nil {
		until(t, "the children to die with their parent", func() bool { return len(List(dir)) == 0 })
	}
	if err := CleanUp(dir); err != nil {
		t.Fatal(err)
	}
	if len(List(dir)) != 0 || len(recorded(t, dir)) != 0 {
		t.Errorf("%d children live, %d records left", len(List(dir)), len(recorded(t, dir)))
	}
}

// orphan runs a process that no death signal reaches, with a record as its
// parent would have left it.
func orphan(t *testing.T, dir string, change func(child, parent *identity)) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	path := filepath.Join(dir, recordDir, "orphan")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeRecord(path, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	child, parent, err := readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	change(&child, &parent)
	record := fmt.Sprintf("%d %s\n%d %s\n", child.pid, child.started, parent.pid, parent.started)
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func running(cmd *exec.Cmd) bool {
	return !ended(cmd.Process.Pid)
}

func TestCleanUpEndsOnlyWhatADeadParentLeft(t *testing.T) {
	dead := func(_, parent *identity) { parent.started = "another boot/1" }
	for name, c := range map[string]struct {
		change func(child, parent *identity)
		lives  bool
		busy   bool
	}{
		"left behind":               {change: dead},
		"the parent lives":          {change: func(_, _ *identity) {}, lives: true, busy: true},
		"the process id was reused": {change: func(child, parent *identity) { child.started = "another boot/2"; dead(child, parent) }, lives: true},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			cmd := orphan(t, filepath.Join(top, "clusters", "one"), c.change)
			err := CleanUp(top)
			var busy *InUseError
			if errors.As(err, &busy) != c.busy || (err != nil) != c.busy {
				t.Errorf("CleanUp: %v, want busy %v", err, c.busy)
			}
			if running(cmd) != c.lives {
				t.Errorf("the process runs: %v, want %v", running(cmd), c.lives)
			}
		})
	}
	if err := CleanUp(filepath.Join(t.TempDir(), "never")); err != nil {
		t.Errorf("a folder that was never used: %v", err)
	}
}

// A record cut off by a full disk or a kill is no reason to refuse a start.
func TestCleanUpDropsUnreadableRecords(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, recordDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"", "12", "x y\nz 1\n", "1 init\n1 init\n", "0 a\n0 b\n", "-5 a\n7 b\n"} {
		if err := os.WriteFile(filepath.Join(dir, recordDir, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := CleanUp(dir); err != nil {
		t.Fatal(err)
	}
	if left := recorded(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestFreePortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[p] || p < lowestPort || p >= highestPort {
			t.Errorf("port %d, seen %v", p, seen[p])
		}
		seen[p] = true
	}
	if PortConflict(nil) || !PortConflict(errors.New("listen tcp 127.0.0.1:1: bind: address already in use")) {
		t.Error("a port conflict is told by its text")
	}
}
