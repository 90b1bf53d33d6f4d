package chaos

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// patience bounds every command: none takes a tenth of it.
const patience = 10 * time.Minute

// cliPath is there for a run with another command line than the one that is
// found first.
var cliPath = flag.String("chaos.cli", "", "the terraform or tofu binary to use (default: $TF_ACC_TERRAFORM_PATH, else what is on PATH)")

// benches are initialised working directories, used one after another: an init
// costs more than an apply's own work.
type benches struct{ free chan *bench }

// bench is a working directory of the real command line.
type bench struct{ *tfrun.Dir }

func newBenches(t testing.TB, n int) *benches {
	t.Helper()
	cli := cmp.Or(*cliPath, tfrun.FindCLI())
	if cli == "" {
		t.Fatal("neither terraform nor tofu is on PATH: run `bin/tpuctl sandbox build --opentofu` and set TF_ACC_TERRAFORM_PATH to what `--opentofu -o name` prints")
	}
	all := &benches{free: make(chan *bench, n)}
	for i := range n {
		d, err := tfrun.New(filepath.Join(t.TempDir(), strconv.Itoa(i)), "", cli, acctest.ProviderBinary(t))
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{d}
		b.write(t, "")
		if _, err := d.Output(t.Context(), "init", "-no-color"); err != nil {
			t.Fatal(err)
		}
		all.free <- b
	}
	return all
}

// take returns a free directory with nothing but this state in it; it is free
// again when the test ends.
func (all *benches) take(t testing.TB, tfstate []byte) *bench {
	t.Helper()
	b := <-all.free
	t.Cleanup(func() { all.free <- b })
	old, err := filepath.Glob(filepath.Join(b.Path, "*.tfstate*"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join(b.Path, ".*.lock.info")) // the pattern is right
	for _, f := range append(old, more...) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if tfstate != nil {
		if err := os.WriteFile(b.stateFile(), tfstate, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) write(t testing.TB, config string) {
	t.Helper()
	if err := b.Write("main.tf", "terraform {\n  required_providers {\n    tpu = { source = \""+tfrun.Source+"\" }\n  }\n}\n"+config); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) stateFile() string { return filepath.Join(b.Path, "terraform.tfstate") }

// tfstate is the state file's content; nil when there is none.
func (b *bench) tfstate(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(b.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// command is one at work.
type command struct {
	cmd   *exec.Cmd
	out   acctest.Output
	done  chan struct{}
	err   error // valid when done
	ended time.Time
	widow int // the provider whose command line was killed; 0 is none
}

func (b *bench) start(t testing.TB, args ...string) *command {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("it did not end within %s", patience))
	c := &command{cmd: b.Command(ctx, args...), done: make(chan struct{})}
	c.cmd.WaitDelay = 10 * time.Second
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	if err := c.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		defer close(c.done)
		c.err = c.cmd.Wait()
		c.ended = time.Now()
		if ctx.Err() != nil {
			c.err = context.Cause(ctx)
		}
	}()
	return c
}

func (c *command) wait() error {
	<-c.done
	return c.err
}

// run runs a command to its end.
func (b *bench) run(t testing.TB, args ...string) (string, error) {
	t.Helper()
	c := b.start(t, args...)
	err := c.wait()
	return c.out.String(), err
}

// killAll ends the command line and its provider, as a machine that goes down.
func (c *command) killAll() error { return syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

// interrupt is Ctrl-C for the command line, which tells its provider.
func (c *command) interrupt() error { return c.cmd.Process.Signal(os.Interrupt) }

// errOver says that there was nobody left to end: the command was done.
var errOver = errors.New("the command line has no provider among its children any more")

// killProvider ends the provider alone, as the kernel's out-of-memory killer
// would.
func (c *command) killProvider() error {
	pid, err := c.provider()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// killCLI ends the command line alone. Its provider finds out, and ends too.
func (c *command) killCLI() error {
	pid, err := c.provider()
	if err != nil {
		return err
	}
	c.widow = pid
	return c.cmd.Process.Kill()
}

// widowTime is how long a provider may live on without its command line.
const widowTime = 10 * time.Second

// buried waits until the provider without a command line has ended.
func (c *command) buried(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(widowTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if parent, name := parentOf(c.widow); parent != 1 || !strings.HasPrefix(name, providerName) {
			return
		}
	}
	t.Errorf("the provider is alive %s after its command line was killed", widowTime)
}

// providerName is what the kernel shows of the provider's.
const providerName = "terraform-prov"

// parentOf reads the parent and the name of a process; 0 when it has ended.
func parentOf(pid int) (parent int, name string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	// pid (comm) state ppid ...; comm may hold spaces, so look behind it.
	head, rest, _ := bytes.Cut(b, []byte(") "))
	_, comm, _ := bytes.Cut(head, []byte("("))
	fields := strings.Fields(string(rest))
	if len(fields) < 2 || fields[0] == "Z" {
		return 0, ""
	}
	parent, _ = strconv.Atoi(fields[1]) // the kernel writes a number
	return parent, string(comm)
}

// provider is the process id of the command's provider.
func (c *command) provider() (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return 0, err
		}
		if parent, name := parentOf(pid); parent == c.cmd.Process.Pid && strings.HasPrefix(name, providerName) {
			return pid, nil
		}
	}
	return 0, errOver
}
