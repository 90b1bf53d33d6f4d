package training_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// playsEnv makes the test binary play what stands above a container's first
// process.
const playsEnv = "TRAINING_TEST_PLAYS"

// How a container's first process is started.
const (
	// As in a pod that shares its process namespace: it is not process 1, and a
	// pause process above it takes its orphans.
	shared = "shared"
	// As in any other pod: it is process 1 of its namespace, and the kernel keeps
	// signals from it that it does not handle.
	first = "first"
)

func init() {
	switch os.Getenv(playsEnv) {
	case shared:
		os.Exit(playPause(os.Args[1:]))
	case first:
		os.Exit(playFirst(os.Args[1:]))
	}
}

// playPause starts the program as a container runtime does, in a session of its
// own, passes SIGTERM on to it alone, and takes its orphans until it ends.
func playPause(argv []string) int {
	const setChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		fmt.Println("becoming a subreaper:", errno)
		return 250
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		fmt.Println(err)
		return 127 // as a runtime answers
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env: withoutPlays(), Files: []*os.File{nil, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Println(err)
		return 126
	}
	go func() {
		for range told {
			_ = syscall.Kill(p.Pid, syscall.SIGTERM)
		}
	}()
	for {
		var st syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &st, 0, nil)
		if errors.Is(err, syscall.EINTR) || err == nil && pid != p.Pid {
			continue
		}
		if err != nil {
			fmt.Println("waiting:", err)
			return 250
		}
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // its end is the container's
		return exitCode(st)
	}
}

// playFirst is process 1 of a namespace, and becomes the program.
func playFirst(argv []string) int {
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
	); err != nil {
		fmt.Println("mounting /proc:", err)
		return 250
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		fmt.Println(err)
		return 127
	}
	fmt.Println(syscall.Exec(path, argv, withoutPlays()))
	return 126
}

func withoutPlays() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, playsEnv+"=") })
}

func exitCode(st syscall.WaitStatus) int {
	if st.Signaled() {
		return 128 + int(st.Signal())
	}
	return st.ExitStatus()
}

// namespaces are those of a container that runs as process 1.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Setsid: true}
	if os.Getuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// container is a running command line of a pod.
type container struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	all strings.Builder
}

// image is a folder of a container's programs, and those of the machine that it
// has on PATH.
type image struct{ dir, path string }

func newImage(t *testing.T, programs ...string) image {
	t.Helper()
	im := image{dir: t.TempDir(), path: t.TempDir()}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("this machine has no %s", name)
		}
		if err := os.Symlink(path, filepath.Join(im.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"train":    saves,
		"careless": "#!/bin/sh\necho ready\nexec sleep 600\n",
		"run.sh":   "./train 7\necho next\n",
		"data.txt": "1\n2\n",
	} {
		mode := os.FileMode(0o755)
		if strings.HasSuffix(name, ".txt") {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(im.dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return im
}

// saves is a program that saves when it is told to end, and says so; $1 is its
// exit code.
const saves = `#!/bin/sh
trap 'echo saving; sleep 0.3; echo saved; exit $1' TERM
echo ready
while :; do sleep 0.05; done
`

// expand does to a container's command what a kubelet does, for a pod without
// environment: of $$ one is left, and a reference to an unknown variable stays.
func expand(argv []string) []string {
	var out []string
	for _, s := range argv {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			b.WriteByte(s[i])
			if s[i] == '$' && i+1 < len(s) && s[i+1] == '$' {
				i++
			}
		}
		out = append(out, b.String())
	}
	return out
}

func (im image) run(t *testing.T, as string, argv []string) *container {
	t.Helper()
	argv = expand(argv)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &container{t: t, cmd: exec.Command(exe, argv...)}
	c.cmd.Dir, c.cmd.Env = im.dir, []string{"PATH=" + im.path, playsEnv + "=" + as}
	if as == first {
		c.cmd.SysProcAttr = namespaces()
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.cmd.Stderr = w, w
	err = c.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		if as == first && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC)) {
			t.Skipf("this machine lets nobody make a process namespace (%v): process 1 is not tested", err)
		}
		t.Fatal(err)
	}
	c.out = bufio.NewReader(r)
	// A hang is to be a failure with words.
	limit := time.AfterFunc(2*time.Minute, func() { _ = c.cmd.Process.Kill() })
	t.Cleanup(func() {
		limit.Stop()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		r.Close()
	})
	return c
}

// until reads up to a line.
func (c *container) until(line string) {
	c.t.Helper()
	for {
		got, err := c.out.ReadString('\n')
		c.all.WriteString(got)
		if strings.TrimSpace(got) == line {
			return
		}
		if err != nil {
			c.t.Fatalf("it never said %q, but:\n%s", line, c.all.String())
		}
	}
}

func (c *container) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// end is the exit code and everything that was written.
func (c *container) end() (int, string) {
	c.t.Helper()
	_, _ = io.Copy(&c.all, c.out)
	_ = c.cmd.Wait()
	return exitCode(c.cmd.ProcessState.Sys().(syscall.WaitStatus)), c.all.String()
}

// images are what there is of shells: bash, or a POSIX shell alone, whichever
// the machine's sh is, and others that images have, where the machine has them.
func images(t *testing.T) map[string]func(*testing.T) image {
	t.Helper()
	all := map[string]func(*testing.T) image{
		"bash": func(t *testing.T) image { return newImage(t, "bash", "sh", "sleep", "tee", "cat") },
		"sh":   func(t *testing.T) image { return newImage(t, "sh", "sleep", "tee", "cat") },
	}
	for name, links := range map[string][]string{"dash": {"sh"}, "busybox": {"sh", "sleep", "tee", "cat"}} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Logf("this machine has no %s: scripts are not tested with it", name)
			continue
		}
		if sh, err := exec.LookPath("sh"); err == nil && sameFile(sh, path) {
			continue // is tested as sh
		}
		all[name] = func(t *testing.T) image {
			im := newImage(t, "sh", "sleep", "tee", "cat")
			for _, link := range links {
				at := filepath.Join(im.path, link)
				if err := errors.Join(os.Remove(at), os.Symlink(path, at)); err != nil {
					t.Fatal(err)
				}
			}
			return im
		}
	}
	return all
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// pipefail tells whether the shell that runs an image's scripts has it.
func (im image) pipefail() bool {
	shell := filepath.Join(im.path, "bash")
	if _, err := os.Stat(shell); err != nil {
		shell = filepath.Join(im.path, "sh")
	}
	return exec.Command(shell, "-c", "set -o pipefail").Run() == nil
}

func eachWay(t *testing.T, run func(t *testing.T, as string, im image)) {
	for _, as := range []string{shared, first} {
		for shell, make := range images(t) {
			t.Run(as+"/"+shell, func(t *testing.T) {
				t.Parallel()
				run(t, as, make(t))
			})
		}
	}
}

// The exit code of a container is its script's, whatever the script is made of.
func TestExitCodesOfScripts(t *testing.T) {
	eachWay(t, func(t *testing.T, as string, im image) {
		for script, want := range map[string]int{
			"exit 41":                   41,
			"(exit 3); (exit 4)":        4,
			"(exit 3) && (exit 4)":      3,
			"set -e; (exit 5); echo no": 5,
			"false || (exit 10)":        10,
			"no-such-program --x":       127,
			"./data.txt":                126,
			"if then":                   2,
			"sh -c 'kill -KILL $$'":     137,
			"# nothing but a remark":    0,
			// What a kubelet would expand.
			`[ $$ -gt 0 ] && [ "$(echo a$)$" = 'a$$' ] && exit 12`:                                      12,
			`[ "$$HOME" != '$HOME' ] && [ '$(RUN_ID)$$(x' = '$''(RUN_ID)''$''$''(x' ] && exit 13`:       13,
			"a='it is \"quoted\" $HOME'\n[ \"$a\" = 'it is \"quoted\" $'HOME ] && [ $# = 0 ] || exit 8": 0,
		} {
			if code, out := im.run(t, as, training.ShellCommand(script)).end(); code != want {
				t.Errorf("%q exits with %d, want %d:\n%s", script, code, want, out)
			}
		}
		// Where a failure in a pipe would be lost, no pipe is begun.
		for script, want := range map[string]int{
			"echo x | (cat >/dev/null; exit 6)": 6,
			"(exit 9) | cat":                    9,
			"echo ran; (exit 9) | tee log":      9,
			"false || (exit 9) | cat":           9,
			"echo ran; echo done | tee log":     0,
		} {
			code, out := im.run(t, as, training.ShellCommand(script)).end()
			if !im.pipefail() {
				if code != 2 || !strings.Contains(out, "has no pipefail") || !strings.Contains(out, "an image with bash") || strings.Contains(out, "ran") {
					t.Errorf("%q, without pipefail, exits with %d:\n%s", script, code, out)
				}
			} else if code != want {
				t.Errorf("%q exits with %d, want %d:\n%s", script, code, want, out)
			}
		}
	})
}

// SIGTERM reaches every program of a script, which then has the time it takes.
func TestScriptsAreTold(t *testing.T) {
	eachWay(t, func(t *testing.T, as string, im image) {
		cases := map[string]struct {
			script string
			want   int
			says   []string // after "ready"
			not    string
		}{
			"one command":            {"./train 7", 7, []string{"saving", "saved"}, ""},
			"a sequence":             {"./train 7; echo next", 7, []string{"saving", "saved"}, "next"},
			"a sequence, ended well": {"./train 0; echo next", 143, []string{"saving", "saved"}, "next"},
			"and":                    {"./train 0 && echo next", 143, []string{"saving", "saved"}, "next"},
			"a default":              {"./careless; echo next", 143, nil, "next"},
			"a pipe to a log":        {"./train 7 2>&1 | tee log", 7, []string{"saving", "saved"}, ""},
			"a pipe from a file":     {"cat data.txt | ./train 7", 7, []string{"saving", "saved"}, ""},
			"a script of the image":  {"sh run.sh", 143, []string{"saving", "saved"}, "next"},
			"in the background":      {"./train 7 & wait $!", 143, []string{"saving", "saved"}, ""},
			"a trap of its own":      {"trap 'wait $p; exit 5' TERM; ./train 7 & p=$!; wait $p", 5, []string{"saving", "saved"}, ""},
			"a trap that goes on":    {"trap : TERM; ./train 7; echo last words; exit 6", 6, []string{"saving", "saved", "last words"}, ""},
		}
		runs := map[string]*container{}
		for name, c := range cases {
			if strings.Contains(c.script, "|") && !im.pipefail() {
				delete(cases, name) // refused
				continue
			}
			runs[name] = im.run(t, as, training.ShellCommand(c.script))
		}
		for _, run := range runs {
			run.until("ready")
			run.signal(syscall.SIGTERM)
		}
		for name, c := range cases {
			code, out := runs[name].end()
			if code != c.want {
				t.Errorf("%s: %q exits with %d, want %d:\n%s", name, c.script, code, c.want, out)
			}
			for _, line := range c.says {
				if !strings.Contains(out, line+"\n") {
					t.Errorf("%s: %q does not say %q:\n%s", name, c.script, line, out)
				}
			}
			if c.not != "" && strings.Contains(out, c.not+"\n") {
				t.Errorf("%s: %q goes on:\n%s", name, c.script, out)
			}
		}
	})
}

// A command that is no script is what the container runs, with nothing around
// it. That it hears SIGTERM, and that its orphans are taken, is why pods share
// their process namespace: process 1 is deaf to what it does not handle.
func TestCommandsAreTold(t *testing.T) {
	if spec := job(t, "train").JobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec; spec.ShareProcessNamespace == nil || !*spec.ShareProcessNamespace {
		t.Error("pods do not share their process namespace")
	}
	im := newImage(t, "sh", "sleep")
	for _, c := range []struct {
		as   string
		argv []string
		want int
	}{
		{shared, []string{"./train", "7"}, 7},
		{shared, []string{"./careless"}, 143},
		{first, []string{"./train", "7"}, 7},
		{first, []string{"./careless"}, 137}, // by the SIGKILL below
	} {
		t.Run(c.as+" "+strings.Join(c.argv, " "), func(t *testing.T) {
			run := im.run(t, c.as, c.argv)
			run.until("ready")
			run.signal(syscall.SIGTERM)
			if c.want == 137 {
				run.signal(syscall.SIGKILL)
			}
			code, out := run.end()
			if code != c.want || c.want == 7 && !strings.Contains(out, "saved\n") {
				t.Errorf("it exits with %d, want %d:\n%s", code, c.want, out)
			}
		})
	}
}

// A script that leaves orphans behind leaves no zombies.
func TestOrphansAreTaken(t *testing.T) {
	const script = `for i in 1 2 3; do (sleep 0.01 & echo $! >>"orphans.$$"); done
for p in $(cat "orphans.$$"); do
  while [ -e "/proc/$p" ]; do sleep 0.05; done
done
exit 4`
	eachWay(t, func(t *testing.T, as string, im image) {
		if code, out := im.run(t, as, training.ShellCommand(script)).end(); code != 4 {
			t.Errorf("it exits with %d, want 4:\n%s", code, out)
		}
	})
	t.Run("without a shell around it", func(t *testing.T) {
		im := newImage(t, "sh", "sleep", "cat")
		if code, out := im.run(t, shared, []string{"sh", "-c", script}).end(); code != 4 {
			t.Errorf("it exits with %d, want 4:\n%s", code, out)
		}
	})
}
