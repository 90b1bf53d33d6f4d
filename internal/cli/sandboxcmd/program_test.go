package sandboxcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

// What is printed must run when it is pasted: the bare name only where PATH
// leads to this very program by it.
func TestCallName(t *testing.T) {
	dir := t.TempDir()
	self, other := filepath.Join(dir, "tpuctl"), filepath.Join(dir, "other")
	for _, path := range []string{self, other} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	on := func(path string) func(string) (string, error) {
		return func(name string) (string, error) {
			if path == "" || name != "tpuctl" {
				return "", errors.New("not on PATH")
			}
			return path, nil
		}
	}
	for _, c := range []struct{ called, path, want string }{
		{"bin/tpuctl", "", "bin/tpuctl"},
		{"tpuctl", self, "tpuctl"},
		{"/opt/bin/tpuctl", self, "tpuctl"},
		{"bin/tpuctl", other, "bin/tpuctl"},
		{"my tools/tpuctl", "", "'my tools/tpuctl'"},
	} {
		if got := callName(c.called, self, on(c.path)); got != c.want {
			t.Errorf("called as %s, with %q on PATH: %s, want %s", c.called, c.path, got, c.want)
		}
	}
}

func calledAs(t *testing.T, name string) {
	t.Helper()
	args := os.Args
	os.Args = append([]string{name}, args[1:]...)
	t.Cleanup(func() { os.Args = args })
}

func TestWhatUpPrintsCanBePasted(t *testing.T) {
	calledAs(t, "bin/tpuctl")
	say := func() string {
		s, out, _ := clitest.Streams(0, false)
		o := &upOptions{streams: s, settings: settings{dir: "/my box", project: "p", zone: "z"}}
		o.ready("/my box", "http://127.0.0.1:1", time.Second)
		return out.String()
	}
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	elsewhere := say()
	t.Chdir(source)
	here := say()
	for what, text := range map[string]string{"elsewhere": elsewhere, "in a checkout": here} {
		for _, want := range []string{
			`  eval "$(bin/tpuctl sandbox env --dir '/my box')"`, "\n  bin/tpuctl list\n", "make install",
			"bin/tpuctl sandbox status --dir '/my box'", "bin/tpuctl sandbox down --dir '/my box'",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing:\n%s", what, want, text)
			}
		}
	}
	if !strings.Contains(here, "  terraform -chdir=examples/quickstart init\n") || strings.Contains(elsewhere, "-chdir") {
		t.Errorf("in a checkout:\n%s\nelsewhere:\n%s", here, elsewhere)
	}
}

func TestHintsNameTheFlagThatHelps(t *testing.T) {
	calledAs(t, "bin/tpuctl")
	broken := errors.New("no such device")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&sandbox.RunningError{Dir: "/box", Pid: 7}, "already runs in /box (process 7)\nUse it:   eval \"$(bin/tpuctl sandbox env --dir box)\"\nStop it:  bin/tpuctl sandbox down --dir box\nOr start another one in another folder, with --dir"},
		{&sandbox.NotRunningError{Dir: "/box"}, "no sandbox runs in /box; start one:  bin/tpuctl sandbox up --dir box"},
		{&sandbox.FolderError{Dir: "/box", Err: broken}, "no such device: use another folder (--dir)"},
		{fmt.Errorf("starting: %w", &sandbox.PortError{Port: 80}), "or none to have a free one chosen (--port)"},
		{broken, "no such device"},
	} {
		got := hint(c.err, "box")
		if !strings.HasSuffix(got.Error(), c.want) || !errors.Is(got, c.err) {
			t.Errorf("got %q\nwant …%q", got, c.want)
		}
		if exit.Code(got) != exit.Failure {
			t.Errorf("%v: exit code %d", got, exit.Code(got))
		}
	}
}

func TestAnEmptyFolderIsRefused(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, verb := range []string{"up", "env", "status", "down"} {
		s, out, _ := clitest.Streams(0, false)
		err := root(s, []string{"sandbox", verb, "--dir", ""}).ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), "leave --dir out for the default") || out.Len() > 0 {
			t.Errorf("%s: got %v, and printed %q", verb, err, out)
		}
	}
}
