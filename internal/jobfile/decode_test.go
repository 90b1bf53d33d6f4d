package jobfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func TestDecode(t *testing.T) {
	job, lines, err := Decode("job.yaml", []byte(`# a comment
name: train
slices: 2
command: [python, -c, 3e-4]
env: &env
  LR: 3e-4
  ON: true
  EMPTY:
  TEXT: "3"
jobs:
  eval:
    env: *env
    pods: 2
host_network: true
resources:
  cpu: 4
restart_policy:
  fatal_exit_codes: []
ttl_after_finished: 24h
jobset_overrides:
  spec:
    coordinator: {replicatedJob: slice, jobIndex: 1}
note:
`))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"LR": "3e-4", "ON": "true", "EMPTY": "", "TEXT": "3"}
	want := Job{
		Name: "train", Slices: ptr.To(2), Command: []string{"python", "-c", "3e-4"}, Env: env, HostNetwork: true,
		Jobs: map[string]Further{"eval": {Env: env, Pods: ptr.To(2)}}, Resources: &Resources{CPU: "4"},
		Restart: &Restart{FatalExitCodes: []int32{}}, TTL: "24h",
		Overrides: map[string]any{"spec": map[string]any{"coordinator": map[string]any{"replicatedJob": "slice", "jobIndex": 1}}},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
	for path, line := range map[string]int{"name": 2, "env.LR": 6, "env.NONE": 5, "command.1": 4, "restart_policy.max_restarts": 17, "image": 0, "resources.cpu": 16} {
		if got := lines.Of(path); got != line {
			t.Errorf("%s is in line %d, want %d", path, got, line)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "job.yaml: the file is empty",
		"# nothing":                      "job.yaml: the file is empty",
		"null":                           "the file is empty",
		"train":                          `job.yaml:1: want keys with values, as in name: train; this is "train"`,
		"- a":                            "job.yaml:1: want keys with values, as in name: train; this is a list",
		"name: [a":                       "job.yaml: this is no YAML: ",
		"name: a\n---\nname: b":          "there are several documents",
		"name: a\nacelerator: v6e-8":     "job.yaml:2: there is no key acelerator; did you mean accelerator?",
		"max-run-time: 3h":               "there is no key max-run-time; did you mean max_run_time?",
		"resources: {tpu: 1}":            "job.yaml:1: there is no key resources.tpu; did you mean cpu?",
		"resources: {chips: 1}":          "job.yaml:1: there is no key resources.chips; there are cpu, memory, ephemeral_storage",
		"jobs: {eval: {imag: a}}":        "there is no key jobs.eval.imag; did you mean image?",
		"apiVersion: jobset.x-k8s.io":    "there is no key apiVersion",
		"slices: two":                    `job.yaml:1: slices: "two"; want a whole number`,
		"slices: 1.5":                    `slices: "1.5"; want a whole number`,
		"slices: [1]":                    "slices: want a whole number; this is a list",
		"name: {a: b}":                   "name: want a text; this is a map",
		"command: python train.py":       `command: want a list, as in [a, b]; this is "python train.py"`,
		"env: [A=1]":                     "env: want keys with values, as in name: train; this is a list",
		"env: {A: [1]}":                  "env.A: want a text; this is a list",
		"host_network: maybe":            `host_network: "maybe"; want true or false`,
		"ttl_after_finished: 3d":         `ttl_after_finished: "3d"; want a length of time such as 90s or 24h`,
		"resources:\n  cpu: many":        `job.yaml:2: resources.cpu: "many"; want a quantity`,
		"name: a\nname: b":               "name is there twice, first in line 1",
		"env: {A: 1, A: 2}":              "env.A is there twice, first in line 1",
		"env:\n  <<: {A: 1}":             "as a key is not understood",
		"? [a]\n: b":                     "a list as a key is not understood",
		"restart_policy: {max: 3}":       "there is no key restart_policy.max",
		"volumes: {d: {nfs: {path: 1,}}": "this is no YAML",
		"jobset_overrides: 3":            "jobset_overrides: want keys",
		"name: a\nslices: b\nttl: 1":     "job.yaml:2: slices: \"b\"; want a whole number\njob.yaml:3: there is no key ttl",
	} {
		_, _, err := Decode("job.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// A file that refers to itself ends.
func TestDecodeEnds(t *testing.T) {
	if _, _, err := Decode("job.yaml", []byte("jobset_overrides: &a\n  a: *a\n")); err == nil {
		t.Error("accepted")
	}
	if _, _, err := Decode("job.yaml", []byte("jobs: &a\n  a: *a\n")); err == nil {
		t.Error("accepted")
	}
}
