package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/contexts"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var build = version.Build{
	Version: "v1.2.3",
	Details: func(context.Context) []version.Detail {
		return []version.Detail{{Name: "credentials", Value: "an access token"}}
	},
}

// The help of every command, as people read it.
func TestHelp(t *testing.T) {
	s, _, _ := clitest.Streams(0, false)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())
		_, out, _ := tpuctl(t, append(path[1:], "--help")...)
		clitest.Golden(t, filepath.Join("help", cmp.Or(strings.Join(path[1:], "-"), path[0])+".txt"), out)
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() && child.Name() != "completion" { // whose words are cobra's
				walk(child)
			}
		}
	}
	walk(New(s, build))
}

// Common errors, word by word.
func TestErrors(t *testing.T) {
	const config = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\n" +
		"contexts: [{name: lab, context: {cluster: c, user: u}}]\n"
	var b strings.Builder
	t.Run("in a folder", func(t *testing.T) {
		t.Chdir(t.TempDir())
		for name, text := range map[string]string{"kc.yaml": config, "job.yaml": "image: a\naccelerators: v6e-16\n", "config.yaml": "contexts: {lab: {project: p}}\n"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range errorLines {
			code, out, errs := tpuctl(t, strings.Fields(line)...)
			if out != "" || code == exit.OK {
				t.Errorf("%s: exit code %d, %s", line, code, out)
			}
			fmt.Fprintf(&b, "$ tpuctl %s\n%s%d\n\n", line, errs, code)
		}
	})
	folder := regexp.MustCompile(`/\S+/config\.yaml`) // of this run
	clitest.Golden(t, "errors.txt", folder.ReplaceAllString(b.String(), "config.yaml"))
}

// errorLines are the command lines of TestErrors.
var errorLines = []string{
	"lst", "frobnicate", "cluster lsit", "sandbox upp", "help subimt", "workload list", "list train", "status", "delete", "wait", "submit", "cancel",
	"list --foo", "list --namspace x", "list -o xml", "list --interval 1x", "accelerators --chips -1",
	"list", "list --cluster projects/p", "list --cluster a --kube-context b", "list --kubeconfig kc.yaml", "list --kubeconfig kc.yaml --kube-context lap",
	"list --kubeconfig none.yaml", "list --context lap", "slices recreate", "slices recreate v5e-0 --kubeconfig kc.yaml",
	"submit a b", "submit x --image a", "submit x --image a --accelerator v6e-17", "submit x --accelerator v6e-16",
	"submit x --image a --accelerator v6e-16 --replace --suffix", "submit x --image a --accelerator v6e-16 --dry-run", "submit -f job.yaml", "submit -f none.yaml", "submit x --image a --accelerator v6e-16 --env-file none.env",
	"delete a --state Failed", "accelerators describe v6p-16", "accelerators --topology 4", "accelerators describe v6e-17 -o json", "list --cluster projects/p -o json",
	"config use lab", "config set lab", "sandbox up --dir=", "sandbox up --time-scale -1",
}

// A shell's completion of live names is silent where there are none to find.
func TestCompletionIsSilent(t *testing.T) {
	for _, line := range []string{"list --namespace", "list --queue", "list --cluster", "list --context", "queues", "cluster describe", "config use", "status", "logs train --namespace"} {
		code, out, err := tpuctl(t, append(append([]string{"__complete"}, strings.Fields(line)...), "")...)
		if code != exit.OK || out != ":4\n" || err != "" {
			t.Errorf("%s: exit code %d, %q, %q", line, code, out, err)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, _ := tpuctl(t, "completion", shell); code != exit.OK || !strings.Contains(out, "tpuctl") {
			t.Errorf("%s: exit code %d, %d bytes", shell, code, len(out))
		}
	}
}

// tpuctl runs a command line as main does.
func tpuctl(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	for _, name := range []string{"TPU_CLUSTER", "TPU_GKE_ENDPOINT", "GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"} {
		t.Setenv(name, "")
	}
	t.Setenv(contexts.Variable, filepath.Join(t.TempDir(), "config.yaml"))
	s, stdout, stderr := clitest.Streams(0, false)
	code = Main(context.Background(), args, s, build)
	return code, stdout.String(), stderr.String()
}

func TestExitCodesAndErrors(t *testing.T) {
	tests := map[string]struct {
		args string
		code int
		want string // in what is written to standard error
	}{
		"a misspelt command":          {"lst", exit.Usage, `there is no command "lst"; did you mean list?`},
		"a command that is not there": {"frobnicate", exit.Usage, "See: tpuctl --help"},
		"an unknown flag":             {"list --foo", exit.Usage, "unknown flag: --foo\nSee: tpuctl list --help"},
		"a misspelt subcommand":       {"cluster lsit", exit.Usage, `there is no command "cluster lsit"; did you mean list?` + "\nSee: tpuctl cluster --help"},
		"one of the sandbox":          {"sandbox upp", exit.Usage, `there is no command "sandbox upp"; did you mean up?`},
		"one below it":                {"sandbox capacity prempt", exit.Usage, "did you mean preempt?"},
		"a shell that there is not":   {"completion fishy", exit.Usage, "did you mean fish?"},
		"a misspelt topic":            {"help subimt", exit.Usage, `there is no command "subimt"; did you mean submit?`},
		"one of a group":              {"help cluster lsit", exit.Usage, `there is no command "cluster lsit"`},
		"a misspelt flag":             {"list --namspace x", exit.Usage, "unknown flag: --namspace; did you mean --namespace?"},
		"a misspelt state":            {"list --state Rnning", exit.Usage, "did you mean Running?"},
		"an unknown format":           {"list -o xml", exit.Usage, "want one of table|wide|json|yaml|name"},
		"an argument too many":        {"list train", exit.Usage, "unknown command"},
		"an argument missing":         {"status", exit.Usage, "want the name of one job; 0 were given"},
		"two ways to name a cluster":  {"list --cluster a --kube-context b", exit.Usage, "give one of them"},
		"a folder without a name":     {"sandbox up --dir=", exit.Usage, "leave --dir out for the default one"},
		"no cluster":                  {"list", exit.Usage, "which cluster?"},
		"half a cluster":              {"list --cluster projects/p", exit.Usage, "is not a cluster path"},
		"an unknown state":            {"list --state Done", exit.Usage, `there is no state "Done"`},
		"an unknown accelerator":      {"accelerators describe v6p-16", exit.Failure, "try v5p-16 or v6e-16"},
		"an unknown generation":       {"accelerators v6p", exit.Failure, "try v5p or v6e"},
		"a negative number":           {"accelerators --chips -1", exit.Usage, "want a whole number, 1 or more"},
		"a malformed topology":        {"accelerators --topology 4", exit.Usage, "is not a topology"},
		"a machine that cannot be":    {"accelerators describe v5litepod-16 --machine-type ct5lp-hightpu-8t", exit.Failure, "cannot be made of"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, err := tpuctl(t, strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(err, tt.want) || !strings.HasPrefix(err, "tpuctl: ") {
				t.Errorf("exit code %d, standard error:\n%s\nwant %d and %q", code, err, tt.code, tt.want)
			}
			if out != "" {
				t.Errorf("standard output: %s", out)
			}
		})
	}
}

func TestErrorsAsJSON(t *testing.T) {
	code, out, err := tpuctl(t, "accelerators", "describe", "v5p-12", "-o", "json")
	var got struct {
		Error struct {
			Message, Kind, Input string
			Choices              []string
		}
	}
	if jsonErr := json.Unmarshal([]byte(err), &got); jsonErr != nil || out != "" || code != exit.Failure {
		t.Fatalf("exit code %d, output %q, error %q (%v)", code, out, err, jsonErr)
	}
	e := got.Error
	if e.Kind != "no_such_size" || e.Input != "v5p-12" || strings.Join(e.Choices, " ") != "v5p-8 v5p-16" || e.Message == "" {
		t.Errorf("got %+v", e)
	}
}

// What went wrong has a kind that scripts can branch on.
func TestKindsOfErrors(t *testing.T) {
	key := types.NamespacedName{Namespace: "research", Name: "train"}
	for want, err := range map[string]error{
		"not_found research/train": fmt.Errorf("looking: %w", &training.NotFoundError{Cluster: "c", Namespace: "research", Name: "train"}),
		"not_found train":          &training.NotFoundError{Name: "train"},
		"exists research/train":    &training.ExistsError{Key: key, Cluster: "c"},
	} {
		if got := fields(err); fmt.Sprint(got["kind"], " ", got["job"]) != want {
			t.Errorf("%v: %v, want %s", err, got, want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, _, stderr := clitest.Streams(0, false)
	t.Setenv("TPU_GKE_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "secret-token")
	if code := Main(ctx, []string{"list", "--project", "p"}, s, build); code != exit.Interrupted || stderr.String() != "tpuctl: interrupted\n" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestNoTokenInMessages(t *testing.T) {
	t.Setenv("TPU_GKE_ENDPOINT", "ftp://somewhere")
	t.Setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "secret-token")
	s, stdout, stderr := clitest.Streams(0, false)
	Main(context.Background(), []string{"list", "--project", "p", "-v"}, s, build)
	Main(context.Background(), []string{"version", "-v"}, s, version.Build{Version: "v1.2.3", Details: Details})
	if text := stdout.String() + stderr.String(); strings.Contains(text, "secret-token") || !strings.Contains(text, "the access token from GOOGLE_OAUTH_ACCESS_TOKEN") {
		t.Errorf("wrong or secret:\n%s", text)
	}
}

func TestVersion(t *testing.T) {
	for args, want := range map[string]string{
		"version":           "tpuctl v1.2.3\n",
		"--version":         "tpuctl v1.2.3\n",
		"version -o name":   "v1.2.3\n",
		"version --verbose": "credentials         an access token\n",
		"version -v -o json": `"details": {
    "credentials": "an access token"
  }`,
	} {
		code, out, err := tpuctl(t, strings.Fields(args)...)
		if code != exit.OK || !strings.Contains(out, want) || err != "" {
			t.Errorf("%s: exit code %d\n%s%s", args, code, out, err)
		}
	}
	if _, out, _ := tpuctl(t, "version"); strings.Contains(out, "credentials") {
		t.Errorf("version looks for credentials nobody asked for:\n%s", out)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFullDiskIsAFailure(t *testing.T) {
	s, _, stderr := clitest.Streams(0, false)
	s.Out = full{}
	for _, line := range []string{"accelerators v5e", "version", "config", "help", "help cluster", "cluster", "list --help", "completion bash"} {
		stderr.Reset()
		if code := Main(context.Background(), strings.Fields(line), s, build); code != exit.Failure || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

// What needs no server is completed by what is typed.
func TestCompletionOfWhatIsKnown(t *testing.T) {
	for line, want := range map[string]string{
		"submit --accelerator v6e-1": "v6e-1\t",
		"help cluster l":             "list\t",
		"slices --accelerator v5p-8": "v5p-8\t",
	} {
		code, out, err := tpuctl(t, append([]string{"__complete"}, strings.Fields(line)...)...)
		if code != exit.OK || !strings.HasPrefix(out, want) || err != "" {
			t.Errorf("%s: exit code %d, %q, %q", line, code, out, err)
		}
	}
}

// Every command explains itself, and no two flags of one command collide.
func TestHelpOfEveryCommand(t *testing.T) {
	s, _, _ := clitest.Streams(0, false)
	root := New(s, build)
	paths := [][]string{{}}
	for _, c := range root.Commands() {
		paths = append(paths, []string{c.Name()})
		for _, child := range c.Commands() {
			paths = append(paths, []string{c.Name(), child.Name()})
		}
		if c.Short == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
	}
	for _, path := range paths {
		code, out, err := tpuctl(t, append(path, "--help")...)
		if code != exit.OK || !strings.Contains(out, "Usage:") {
			t.Errorf("tpuctl %s --help: exit code %d\n%s%s", strings.Join(path, " "), code, out, err)
		}
		cmd, _, findErr := root.Find(path)
		if findErr != nil {
			t.Fatal(findErr)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); strings.Contains(kind, " ") {
				t.Errorf("%s --%s: its help has %q for the type of its value", cmd.CommandPath(), f.Name, kind)
			}
		})
	}
}

func BenchmarkVersion(b *testing.B) {
	s, out, _ := clitest.Streams(0, false)
	for b.Loop() {
		out.Reset()
		Main(context.Background(), []string{"version"}, s, build)
	}
}

// Every command pays for what packages do before main. Their own share is held
// small here; that of the libraries is theirs.
func TestPackagesDoLittleBeforeMain(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"tpuctl", "version"}
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line := regexp.MustCompile(`(?m)^init github.com/tpu-training/\S*/(internal/\S+) .* clock, (\d+) bytes`)
	found := line.FindAllStringSubmatch(string(out), -1)
	if len(found) == 0 {
		t.Fatalf("no package tells of itself:\n%s", out)
	}
	for _, m := range found {
		if n, err := strconv.Atoi(m[2]); err != nil || n > 1e6 {
			t.Errorf("%s allocates %s bytes", m[1], m[2])
		}
	}
}
