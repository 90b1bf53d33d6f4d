package jobfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// reader reads these files, and knows one variable.
func reader(files fstest.MapFS) Reader {
	return Reader{
		File:     func(path string) ([]byte, error) { return fs.ReadFile(files, filepath.ToSlash(path)) },
		Variable: func(name string) (string, bool) { return "here", name == "HERE" },
	}
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/jobs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".settings.yaml") {
			continue
		}
		seen++
		r := Reader{File: os.ReadFile, Variable: func(string) (string, bool) { return "", false }}
		job, _, err := r.Load(file, file)
		if err != nil {
			t.Error(err)
			continue
		}
		spec, err := job.Spec()
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		again, err := From(spec).Spec()
		if err != nil {
			t.Errorf("%s: written down and read again: %v", file, err)
		}
		if diff := cmp.Diff(spec, again, cmpopts.EquateEmpty()); diff != "" || spec.Hash() != again.Hash() {
			t.Errorf("%s (-read +written down and read again):\n%s", file, diff)
		}
	}
	if seen < 2 {
		t.Errorf("only %d examples", seen)
	}
}

func TestLoad(t *testing.T) {
	files := fstest.MapFS{
		"jobs/job.yaml":  {Data: []byte("name: a\nenv_files: [a.env, b.env]\nenv: {C: file}\nlocal_files:\n  /etc/x: ../x.txt\nfiles:\n  /etc/y: why\n")},
		"jobs/a.env":     {Data: []byte("\ufeff# comment\n\n  A=1\r\nB= x=y \nHERE\nNOT_HERE\nC=a\nQ=\"quoted\"\n")},
		"jobs/b.env":     {Data: []byte("A=2")},
		"x.txt":          {Data: []byte("text")},
		"jobs/bad.yaml":  {Data: []byte("name: a\nenv_files:\n  - bad.env\n  - none.env\nlocal_files:\n  /etc/x: binary\n  /etc/y: ../x.txt\nfiles: {/etc/y: b}\n")},
		"jobs/bad.env":   {Data: []byte("A B=1\n=2\n")},
		"jobs/binary":    {Data: []byte{0xff, 0xfe}},
		"jobs/wrong.yml": {Data: []byte("imag: a")},
	}
	job, _, err := reader(files).Load("jobs/job.yaml", "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Job{Name: "a", Env: map[string]string{"A": "2", "B": " x=y ", "HERE": "here", "C": "file", "Q": `"quoted"`},
		Files: map[string]string{"/etc/x": "text", "/etc/y": "why"}}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
	_, _, err = reader(files).Load("jobs/bad.yaml", "bad.yaml")
	for _, want := range []string{
		`bad.yaml:3: env_files.0: jobs/bad.env, line 1: "A B=1"; want NAME=VALUE`, `line 2: "=2"; want NAME=VALUE`, "bad.yaml:4: env_files.1: ",
		"bad.yaml:6: local_files./etc/x: jobs/binary is no text", "bad.yaml:7: local_files./etc/y: files has it as well",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, _, err := reader(files).Load("none.yaml", "none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, _, err := reader(files).Load("jobs/wrong.yml", "wrong.yml"); err == nil || !strings.Contains(err.Error(), "did you mean image?") {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestSettings(t *testing.T) {
	aliases := map[string]string{"lr": "--config.training.learning_rate", "steps": "train.steps", "seed": "env:SEED", "odd": "a b"}
	for name, tt := range map[string]struct {
		job  Job
		args []string
		env  map[string]string
		want string // in the error
	}{
		"arguments": {job: Job{Command: []string{"python"}, Args: []string{"-v"}, Settings: map[string]string{"lr": "3e-4", "steps": "5", "x.y": "a b=c", "--z": ""}},
			args: []string{"-v", "--z=", "--config.training.learning_rate=3e-4", "train.steps=5", "--x.y=a b=c"}},
		"a variable":        {job: Job{Settings: map[string]string{"seed": "1"}}, env: map[string]string{"SEED": "1"}},
		"over the others":   {job: Job{Env: map[string]string{"SEED": "0"}, Settings: map[string]string{"seed": "1"}}, env: map[string]string{"SEED": "1"}},
		"of a script":       {job: Job{Shell: "train $SEED", Settings: map[string]string{"seed": "1"}}, env: map[string]string{"SEED": "1"}},
		"not of a script":   {job: Job{Shell: "train", Settings: map[string]string{"lr": "1"}}, want: "set: lr: a script takes no arguments"},
		"a slip of the pen": {job: Job{Settings: map[string]string{"sed": "1"}}, want: "sed is no alias; did you mean seed? For an argument of that name write --set --sed=1"},
		"meant":             {job: Job{Settings: map[string]string{"--sed": "1"}}, args: []string{"--sed=1"}},
		"an alias to no":    {job: Job{Settings: map[string]string{"odd": "1"}}, want: `"odd" stands for "a b"`},
		"nothing":           {job: Job{Settings: map[string]string{"--": "1"}}, want: "want an argument"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.job.Name, tt.job.Image, tt.job.Accelerator, tt.job.Aliases = "a", "i", "v6e-8", aliases
			s, err := tt.job.Spec()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff([]any{tt.args, tt.env}, []any{s.Args, s.Env}); tt.want == "" && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpecRefuses(t *testing.T) {
	for want, job := range map[string]Job{
		"accelerator: it is missing": {},
		"accelerator: ":              {Accelerator: "h100"},
		"image: a job needs":         {Accelerator: "v6e-8", Name: "a"},
		"tags: \"a b\":":             {Accelerator: "v6e-8", Tags: []string{"a b"}},
		"tags: an empty tag":         {Accelerator: "v6e-8", Tags: []string{""}},
		"resources.cpu: \"x\"":       {Accelerator: "v6e-8", Resources: &Resources{CPU: "x"}},
		"volumes.d.memory: \"x\"":    {Accelerator: "v6e-8", Volumes: map[string]Volume{"d": {Memory: "x"}}},
		"max_run_time: \"3d\"":       {Accelerator: "v6e-8", MaxRun: "3d"},
		"slices: 0":                  {Accelerator: "v6e-8", Slices: new(int)},
		"containers_per_host: 0":     {Accelerator: "v6e-8", Containers: new(int)},
		"pathways.scratch_location:": {Accelerator: "v6e-8", Name: "a", Image: "i", Pathways: &Pathways{}},
		"max_slice_restarts: 0":      {Accelerator: "v6e-8", Pathways: &Pathways{MaxSliceRestarts: new(int)}},
		"pool_accelerator: ":         {Accelerator: "v6e-8", Placement: &Placement{Pool: "h100"}},
	} {
		_, err := job.Spec()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if len(training.FieldErrors(err)) == 0 {
			t.Errorf("%v names no field", err)
		}
	}
}

func TestNoteAndTags(t *testing.T) {
	job := Job{Name: "a", Image: "i", Accelerator: "v6e-8", Note: "why", Tags: []string{"b", "a"}}
	s, err := job.Spec()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"tag.tpu-training.github.io/a": "true", "tag.tpu-training.github.io/b": "true"}
	if diff := cmp.Diff(want, s.Labels); diff != "" || s.Annotations[AnnotationNote] != "why" {
		t.Errorf("%s, %v", diff, s.Annotations)
	}
	if back := From(s); back.Note != "why" || !cmp.Equal(back.Tags, []string{"a", "b"}) || len(back.Labels)+len(back.Annotations) > 0 {
		t.Errorf("written down: %+v", back)
	}
}
