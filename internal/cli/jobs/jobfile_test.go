package jobs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
)

const aJob = `name: train
namespace: research
queue: q
accelerator: v5litepod-16
slices: 2
image: python:3.13
command: [python, train.py]
args: [--fast]
env: {A: "1", B: "2"}
aliases: {lr: --config.lr, seed: env:SEED}
set: {lr: 1}
restart_policy:
  max_restarts: 7
`

// Flags win over a job file.
func TestFlagsOverAJobFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/job.yaml", aJob)
	d, acts, out, _ := acting(fake{})
	args := []string{"-f", dir + "/job.yaml", "--slices", "4", "-e", "B=3", "--set", "lr=2", "--set", "seed=7", "--fatal-exit-codes", "9,3", "-o", "name"}
	if err := clitest.Run(newSubmit(d), args...); err != nil {
		t.Fatal(err)
	}
	s := acts.spec
	got := []any{s.Name, s.Namespace, s.Slices, s.Command, s.Args, s.Env, s.Restart.MaxRestarts, s.Restart.FatalExitCodes, out()}
	want := []any{"train", "research", 4, []string{"python", "train.py"}, []string{"--fast", "--config.lr=2"}, map[string]string{"A": "1", "B": "3", "SEED": "7"}, 7, []int32{3, 9}, "research/train\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A name and a command of the command line take the place of the file's.
	if err := clitest.Run(newSubmit(d), "other", "-f", dir+"/job.yaml", "--", "sh"); err != nil {
		t.Fatal(err)
	}
	if s := acts.spec; s.Name != "other" || !cmp.Equal(s.Command, []string{"sh"}) || !cmp.Equal(s.Args, []string{"--config.lr=1"}) {
		t.Errorf("%s runs %q %q", s.Name, s.Command, s.Args)
	}
}

func TestJobFileOfStandardInput(t *testing.T) {
	d, acts, _, _ := acting(fake{})
	d.Streams.In = strings.NewReader(aJob)
	if err := clitest.Run(newSubmit(d), "-f", "-"); err != nil || acts.spec.Name != "train" {
		t.Errorf("%v, %+v", err, acts.spec)
	}
}

// What is wrong is told where it stands: in the file, or in a flag.
func TestWhereAProblemIs(t *testing.T) {
	for want, tt := range map[string]struct {
		file string
		args []string
	}{
		"job.yaml:5: slices: 0; a job needs":                             {file: strings.Replace(aJob, "slices: 2", "slices: 0", 1)},
		"--slices: -1; a job needs":                                      {file: aJob, args: []string{"--slices", "-1"}},
		"job.yaml:13: restart_policy.max_restarts: -1":                   {file: strings.Replace(aJob, ": 7", ": -1", 1)},
		"job.yaml:1: name: \"T\" cannot name a job":                      {file: strings.Replace(aJob, "train", "T", 1)},
		"NAME: \"X\" cannot name a job":                                  {file: aJob, args: []string{"X"}},
		"reading the job file: ":                                         {file: "nam: x"},
		"there is no key imag; did you mean image?":                      {file: "imag: x"},
		"--image: a job needs a container image":                         {file: "name: x\naccelerator: v6e-8"},
		"--accelerator: it is missing":                                   {file: "name: x\nimage: i"},
		"no such file":                                                   {args: []string{"-f", "none.yaml"}},
		"--shell: a script stands for":                                   {file: aJob, args: []string{"--shell", "a", "--", "b"}},
		`--set: "a"; want KEY=VALUE`:                                     {file: aJob, args: []string{"--set", "a"}},
		"job.yaml:11: set: lr: a script takes no arguments":              {file: aJob, args: []string{"--shell", "a"}},
		"--set: sed is no alias; did you mean seed?":                     {file: aJob, args: []string{"--set", "sed=1"}},
		"-o hcl prints the job for Terraform, which would find it taken": {file: aJob, args: []string{"-o", "hcl"}},
	} {
		dir := t.TempDir()
		args := tt.args
		if tt.file != "" {
			write(t, dir+"/job.yaml", tt.file)
			args = append([]string{"-f", dir + "/job.yaml"}, args...)
		}
		if i := slices.Index(args, "X"); i > 0 { // a name comes first
			args = append([]string{"X"}, slices.Delete(args, i, i+1)...)
		}
		d, _, _, _ := acting(fake{})
		if err := clitest.Run(newSubmit(d), args...); err == nil || !strings.Contains(err.Error(), want) || exit.Code(err) != exit.Usage {
			t.Errorf("got %v (exit code %d), want %q", err, exit.Code(err), want)
		}
	}
}

// Aliases come from the context too; the job file's win.
func TestAliasesOfTheContext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/job.yaml", "aliases: {lr: --own.lr}\n")
	own := func(target.Options) (map[string]string, error) {
		return map[string]string{"lr": "--config.lr", "seed": "env:SEED"}, nil
	}
	for _, tt := range []struct {
		file, args []string
		want       []string
	}{
		{args: []string{"--set", "lr=1"}, want: []string{"--config.lr=1"}},
		{file: []string{"-f", dir + "/job.yaml"}, args: []string{"--set", "lr=1", "--set", "other=2"}, want: []string{"--own.lr=1", "--other=2"}},
	} {
		d, acts, _, _ := acting(fake{})
		d.Aliases = own
		args := slices.Concat(usual, tt.file, tt.args, []string{"--set", "seed=3", "--queue", "q", "--", "python"})
		if err := clitest.Run(newSubmit(d), args...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, acts.spec.Args); diff != "" || acts.spec.Env["SEED"] != "3" {
			t.Errorf("%q: %s, %v", args, diff, acts.spec.Env)
		}
	}
	d, _, _, _ := acting(fake{})
	d.Aliases = own
	if err := clitest.Run(newSubmit(d), append(slices.Clone(usual), "--set", "sed=1", "--queue", "q", "--", "python")...); err == nil || !strings.Contains(err.Error(), "sed is no alias; did you mean seed?") {
		t.Errorf("got %v", err)
	}
}

func TestHCL(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/job.yaml", aJob+"jobset_overrides:\n  spec: {coordinator: {replicatedJob: slice, jobIndex: 1}}\nlabels: {team: \"${a}\"}\n")
	d, acts, out, _ := acting(fake{})
	err := clitest.Run(newSubmit(d), "-f", dir+"/job.yaml", "--label", "team=a", "--shell", "echo ${A}\n", "--set", "lr=1", "--dry-run=client", "-o", "hcl")
	if err == nil || !strings.Contains(err.Error(), "a script takes no arguments") {
		t.Errorf("a script with arguments: %v", err)
	}
	if err := clitest.Run(newSubmit(d), "-f", dir+"/job.yaml", "--label", "team=a", "--note", "${why}", "--tag", "b,c", "--dry-run=client", "-o", "hcl",
		"--cluster", "projects/p/locations/l/clusters/c"); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "submit.hcl", out())
	if len(acts.done) > 0 {
		t.Errorf("it did %v", acts.done)
	}
}
