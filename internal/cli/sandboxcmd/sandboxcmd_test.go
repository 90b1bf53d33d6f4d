package sandboxcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/output"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
)

func root(s *term.Streams, args []string) *cobra.Command {
	root := &cobra.Command{Use: "tpuctl", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(New(s))
	root.SetArgs(args)
	return root
}

func TestWrongFlagsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"up", "--port", "70000"}, {"up", "--port", "-1"}, {"up", "--job-duration", "0s"},
		{"up", "--time-scale", "-1"}, {"up", "--zone", ""},
	} {
		var b bytes.Buffer
		err := root(&term.Streams{Out: &b, Err: &b}, append([]string{"sandbox"}, append(args, "--dir", t.TempDir())...)).ExecuteContext(t.Context())
		if exit.Code(err) != exit.Usage {
			t.Errorf("%v: %v, want a usage error", args, err)
		}
	}
}

func TestFolder(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	for _, c := range []struct{ flag, env, xdg, want string }{
		{"", "", "", "/home/u/.local/state/tpu-sandbox/default"},
		{"", "", "/state", "/state/tpu-sandbox/default"},
		{"", "", "relative", "/home/u/.local/state/tpu-sandbox/default"},
		{"", "/env", "/state", "/env"},
		{"/flag", "/env", "/state", "/flag"},
	} {
		t.Setenv(EnvDir, c.env)
		t.Setenv("XDG_STATE_HOME", c.xdg)
		if got, err := folder(c.flag); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

func TestEnvInEveryFormat(t *testing.T) {
	env := sandbox.Environment{{Name: "A", Value: "http://127.0.0.1:1"}, {Name: "KUBECONFIG", Value: "/a b/it's"}}
	for f, want := range map[output.Format]string{
		output.TableFormat: "export A=http://127.0.0.1:1\nexport KUBECONFIG='/a b/it'\\''s'\n",
		output.Name:        "A=http://127.0.0.1:1\nKUBECONFIG=/a b/it's\n",
		output.JSON:        "{\n  \"A\": \"http://127.0.0.1:1\",\n  \"KUBECONFIG\": \"/a b/it's\"\n}\n",
	} {
		var b bytes.Buffer
		if err := output.Print(&term.Streams{Out: &b}, f, envView(env, "")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
}

// A person gets a line to paste; programs get what they always got.
func TestEnvHeaderIsForPeople(t *testing.T) {
	env := sandbox.Environment{{Name: "A", Value: "1"}}
	for f, want := range map[output.Format]string{
		output.TableFormat: "# paste me\nexport A=1\n",
		output.Name:        "A=1\n",
		output.JSON:        "{\n  \"A\": \"1\"\n}\n",
	} {
		s, out, _ := clitest.Streams(80, false)
		if err := output.Print(s, f, envView(env, "# paste me\n")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
}

// twoClusters is two clusters with the same programs.
func twoClusters() *sandbox.Status {
	return &sandbox.Status{
		Pid: 7, Dir: "/box", Endpoint: "http://127.0.0.1:20000", Started: started,
		Clusters: []sandbox.Cluster{
			{Path: "projects/p/locations/us-west4-a/clusters/train", Status: "RUNNING", Endpoint: "127.0.0.1:20001", NodePools: []sandbox.NodePool{
				{Name: "v5e-0", Status: "RUNNING", MachineType: "ct5lp-hightpu-4t", Nodes: 4},
			}},
			{Path: "projects/p/locations/us-west4-b/clusters/other", Status: "ERROR", Message: "etcd ended"},
		},
		Processes: []sandbox.Process{
			{Pid: 8, Name: "etcd", Cluster: "projects/p/locations/us-west4-a/clusters/train", Log: "/box/clusters/p_us-west4-a_train/logs/etcd.log"},
			{Pid: 9, Name: "kwok", Cluster: "projects/p/locations/us-west4-a/clusters/train", Log: "/box/clusters/p_us-west4-a_train/logs/kwok.log"},
			{Pid: 10, Name: "etcd", Cluster: "projects/p/locations/us-west4-b/clusters/other", Log: "/box/clusters/p_us-west4-b_other/logs/etcd.log"},
		},
	}
}

var started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestStatusPage(t *testing.T) {
	const want = `sandbox
  state               running
  process             7, up 1m30s
  GKE API             http://127.0.0.1:20000
  folder              /box

clusters
  CLUSTER   NODE POOL   STATUS    NODES   MACHINE TYPE       API SERVER
  train     -           RUNNING   4       -                  127.0.0.1:20001
  train     v5e-0       RUNNING   4       ct5lp-hightpu-4t   -
  other     -           ERROR     0       -                  -

processes
  CLUSTER   PROJECT   LOCATION     PROCESS   PID
  train     p         us-west4-a   etcd      8
  train     p         us-west4-a   kwok      9
  other     p         us-west4-b   etcd      10

logs, PROCESS.log in
  /box/clusters/p_us-west4-a_train/logs
  /box/clusters/p_us-west4-b_other/logs

problems
  projects/p/locations/us-west4-b/clusters/other: etcd ended
`
	if diff := cmp.Diff(want, statusAt(t, 80, output.TableFormat)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func statusAt(t *testing.T, width int, f output.Format) string {
	t.Helper()
	s, out, _ := clitest.Streams(width, false)
	if err := output.Print(s, f, statusView(s, twoClusters(), started.Add(90*time.Second))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Folders are for copying and stay whole; everything else fits.
func TestStatusFitsTheTerminal(t *testing.T) {
	for _, width := range []int{0, 60, 80, 120} {
		for _, line := range strings.Split(statusAt(t, width, output.TableFormat), "\n") {
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%d columns: a line ends with spaces: %q", width, line)
			}
			if width > 0 && utf8.RuneCountInString(line) > width && !strings.HasPrefix(line, "  /box") {
				t.Errorf("%d columns: %d are printed: %q", width, utf8.RuneCountInString(line), line)
			}
		}
	}
	if wide := statusAt(t, 60, output.Wide); !strings.Contains(wide, "CLUSTER   PROJECT   LOCATION     NODE POOL   STATUS    NODES   MACHINE TYPE       API SERVER\n") {
		t.Errorf("-o wide lacks columns:\n%s", wide)
	}
}

func TestStatusWithoutClusters(t *testing.T) {
	s, out, _ := clitest.Streams(80, false)
	if err := output.Print(s, output.TableFormat, statusView(s, &sandbox.Status{Pid: 7, Dir: "/box", Started: started}, started)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "No clusters yet.") || strings.Contains(got, "logs") || strings.Contains(got, "processes") {
		t.Errorf("got\n%s", got)
	}
}

func TestDownMessages(t *testing.T) {
	for _, c := range []struct {
		gone sandbox.Gone
		want string
	}{
		{sandbox.Gone{Dir: "/box"}, "No sandbox in /box: nothing to stop."},
		{sandbox.Gone{Dir: "/box", Found: true, Pid: 7, Processes: 5, Clusters: 1},
			"The sandbox is stopped (1.2s): process 7 and 5 children ended, with 1 cluster, its folder /box removed. No process and no port is left."},
		{sandbox.Gone{Dir: "/box", Found: true, Processes: 1, Kept: true},
			"The sandbox is stopped (1.2s): it was not running, 1 process that it had left ended, its state is kept in /box. No process and no port is left."},
	} {
		if diff := cmp.Diff(c.want, downMessage(&c.gone, 1234*time.Millisecond)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
