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
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (comm) state ppid ...; comm may hold spaces, so look behind it.
		head, rest, _ := bytes.Cut(b, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 2 || fields[1] != strconv.Itoa(c.cmd.Process.Pid) || !bytes.Contains(head, []byte("(terraform-prov")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return errOver
}
