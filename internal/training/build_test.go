package training

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func slice(t testing.TB, name string) accelerator.Slice {
	t.Helper()
	s, err := accelerator.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func spec(t testing.TB) Spec {
	return Spec{
		Namespace: "research", Name: "train", Queue: "research", Slice: slice(t, "v5litepod-16"), Slices: 2,
		Image: "train:1", Command: []string{"python", "train.py"}, Restart: DefaultRestart(),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestRenderedJobSets(t *testing.T) {
	full := spec(t)
	full.Priority, full.Owner, full.Experiment = "high", "ada", "lr-sweep"
	full.Args = []string{"--quote", `it's "$HOME" \ and` + "\nmore"}
	full.Env = map[string]string{"B": "2", "A": "1"}
	full.Labels, full.Annotations = map[string]string{"team": "a"}, map[string]string{"commit": "abc"}
	full.PodAnnotations = map[string]string{"gke-gcsfuse/volumes": "true"}
	full.ServiceAccount, full.RunID, full.OutputDir = "trainer", "run-7", "gs://bucket/runs/"
	full.TTL, full.GracePeriod = ptr.To(24*time.Hour), ptr.To(10*time.Second)
	full.Restart = RestartPolicy{MaxRestarts: 1, FatalExitCodes: []int32{127, 42}}

	single := spec(t)
	single.Slice, single.Slices, single.Queue = slice(t, "v5litepod-4"), 1, ""
	single.Restart.FatalExitCodes = nil

	ironwood := spec(t)
	ironwood.Slice = slice(t, "tpu7x-128")

	for name, s := range map[string]Spec{"plain": spec(t), "full": full, "single-host": single, "two-containers": ironwood} {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			js := s.JobSet()
			if js.Spec.Suspend != nil {
				t.Error("spec.suspend is Kueue's and must not be set")
			}
			b, err := yaml.Marshal(js)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".yaml", b)
		})
	}
}

// What was rendered reads back as what it was rendered from: an imported job
// plans no change.
func TestSpecSurvivesTheJobSet(t *testing.T) {
	names := []string{"v5litepod-1", "v5litepod-8", "v5litepod-16", "v6e-64", "v5p-128", "tpu7x-128", "v4-8"}
	word := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`)
	texts := rapid.MapOfN(word, rapid.StringMatching(`[a-zA-Z0-9]{0,9}`), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		s, err := accelerator.Resolve(rapid.SampledFrom(names).Draw(t, "accelerator"))
		if err != nil {
			t.Fatal(err)
		}
		want := Spec{
			Namespace: word.Draw(t, "namespace"), Name: word.Draw(t, "name"), Queue: rapid.SampledFrom([]string{"", "q"}).Draw(t, "queue"),
			Slice: s, Slices: rapid.IntRange(1, 300).Draw(t, "slices"),
			Image: word.Draw(t, "image"), Command: append([]string{word.Draw(t, "program")}, rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "arguments")...),
			Env: texts.Draw(t, "env"), Labels: texts.Draw(t, "labels"), Annotations: texts.Draw(t, "annotations"), PodAnnotations: texts.Draw(t, "pods"),
			ServiceAccount: rapid.SampledFrom([]string{"", "sa"}).Draw(t, "account"), RunID: word.Draw(t, "run"),
			OutputDir: rapid.SampledFrom([]string{"", "gs://runs/d"}).Draw(t, "dir"), Owner: rapid.SampledFrom([]string{"", "ada"}).Draw(t, "owner"),
			Restart: RestartPolicy{MaxRestarts: rapid.IntRange(0, 9).Draw(t, "restarts"), FatalExitCodes: rapid.SampledFrom([][]int32{nil, {2}, {2, 126}}).Draw(t, "codes")},
		}
		if rapid.Bool().Draw(t, "ttl") {
			want.TTL, want.GracePeriod = ptr.To(time.Hour), ptr.To(5*time.Second)
		}
		if want.Queue != "" {
			want.Priority = rapid.SampledFrom([]string{"", "low"}).Draw(t, "priority")
		}
		for _, m := range []*map[string]string{&want.Env, &want.Labels, &want.Annotations, &want.PodAnnotations} {
			if len(*m) == 0 {
				*m = nil
			}
		}
		if err := want.Validate(); err != nil {
			t.Fatal(err)
		}
		got := FromJobSet(want.JobSet())
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b accelerator.Slice) bool { return a == b })); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if want.Hash() != got.Hash() {
			t.Fatal("the hash changed")
		}
	})
}

// The limit of a name follows from the counts: the longest name that is
// accepted makes pod names of exactly 63 characters.
func TestNameLimit(t *testing.T) {
	for _, c := range []struct {
		slices int
		acc    string
		want   int
	}{
		{1, "v5litepod-1", 63 - len("-slice-0-0-abcde")},
		{2, "v5litepod-16", 63 - len("-slice-1-3-abcde")},
		{11, "v5litepod-256", 63 - len("-slice-10-63-abcde")},
		{1000, "v5p-12288", 63 - len("-slice-999-1535-abcde")},
	} {
		s := spec(t)
		s.Slice, s.Slices = slice(t, c.acc), c.slices
		if got := MaxNameLength(s.Slices, s.Slice.Hosts); got != c.want {
			t.Errorf("%d x %s: %d, want %d", c.slices, c.acc, got, c.want)
		}
		s.Name = strings.Repeat("a", c.want)
		if err := s.Validate(); err != nil {
			t.Errorf("%d characters: %v", c.want, err)
		}
		if s.Name += "a"; s.Validate() == nil {
			t.Errorf("%d characters are accepted", c.want+1)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*Spec)
		field string // of the first problem; "" = accepted
		want  string
	}{
		{"as it is", func(*Spec) {}, "", ""},
		{"upper case", func(s *Spec) { s.Name = "Train" }, "name", "lower"},
		{"leading digit", func(s *Spec) { s.Name = "7b" }, "name", "a letter first"},
		{"no slices", func(s *Spec) { s.Slices = 0 }, "slices", "at least one"},
		{"no image", func(s *Spec) { s.Image = " " }, "image", "needs"},
		{"system namespace", func(s *Spec) { s.Namespace = "kube-system" }, "namespace", "Kubernetes"},
		{"priority without a queue", func(s *Spec) { s.Queue, s.Priority = "", "low" }, "priority", "queue"},
		{"own RUN_ID", func(s *Spec) { s.Env = map[string]string{"RUN_ID": "x"} }, "env", "run_id"},
		{"bad variable", func(s *Spec) { s.Env = map[string]string{"A=B": "x"} }, "env", "A=B"},
		{"queue by label", func(s *Spec) { s.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"} }, "labels", "use queue"},
		{"exit code 0", func(s *Spec) { s.Restart.FatalExitCodes = []int32{0} }, "restart_policy.fatal_exit_codes", "success"},
		{"exit code 256", func(s *Spec) { s.Restart.FatalExitCodes = []int32{256} }, "restart_policy.fatal_exit_codes", "1 to 255"},
		{"exit code twice", func(s *Spec) { s.Restart.FatalExitCodes = []int32{3, 3} }, "restart_policy.fatal_exit_codes", "twice"},
		{"negative restarts", func(s *Spec) { s.Restart.MaxRestarts = -1 }, "restart_policy.max_restarts", "between"},
		{"negative ttl", func(s *Spec) { s.TTL = ptr.To(-time.Second) }, "ttl_after_finished", "negative"},
		{"owner with a slash", func(s *Spec) { s.Owner = "a/b" }, "owner", "a/b"},
		{"huge annotation", func(s *Spec) { s.Annotations = map[string]string{"a": strings.Repeat("x", 300<<10)} }, "annotations", "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t)
			c.edit(&s)
			problems := FieldErrors(s.Validate())
			if c.field == "" {
				if len(problems) > 0 {
					t.Errorf("refused: %v", problems[0])
				}
				return
			}
			if len(problems) == 0 {
				t.Fatal("accepted")
			}
			if problems[0].Field != c.field || !strings.Contains(problems[0].Problem, c.want) {
				t.Errorf("got %v, want %q at %s", problems[0], c.want, c.field)
			}
		})
	}
}

// All problems are told at once.
func TestRefusesEverythingAtOnce(t *testing.T) {
	s := spec(t)
	s.Name, s.Image, s.Slices = "A", "", 0
	if got := len(FieldErrors(s.Validate())); got != 3 {
		t.Errorf("%d problems, want 3: %v", got, s.Validate())
	}
}

// The hash says what runs, not what may change meanwhile.
func TestHash(t *testing.T) {
	base := spec(t).Hash()
	for name, edit := range map[string]func(*Spec){
		"priority": func(s *Spec) { s.Priority = "low" }, "labels": func(s *Spec) { s.Labels = map[string]string{"a": "b"} },
		"ttl": func(s *Spec) { s.TTL = ptr.To(time.Hour) }, "explicit run id": func(s *Spec) { s.RunID = s.Name }, "empty env": func(s *Spec) { s.Env = map[string]string{} },
	} {
		if s := spec(t); true {
			if edit(&s); s.Hash() != base {
				t.Errorf("%s changes the hash", name)
			}
		}
	}
	for name, edit := range map[string]func(*Spec){
		"image": func(s *Spec) { s.Image = "b" }, "slices": func(s *Spec) { s.Slices++ }, "env": func(s *Spec) { s.Env = map[string]string{"A": "b"} },
		"accelerator": func(s *Spec) { s.Slice = slice(t, "v6e-16") }, "restarts": func(s *Spec) { s.Restart.MaxRestarts++ },
	} {
		if s := spec(t); true {
			if edit(&s); s.Hash() == base {
				t.Errorf("%s does not change the hash", name)
			}
		}
	}
}

func TestChangePatch(t *testing.T) {
	before := spec(t)
	before.Labels, before.Priority, before.TTL = map[string]string{"a": "1", "b": "2"}, "low", ptr.To(time.Hour)
	after := before
	after.Labels, after.Priority, after.TTL = map[string]string{"a": "1", "c": "3"}, "high", nil
	got, err := changePatch(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"labels":{"b":null,"c":"3","kueue.x-k8s.io/priority-class":"high"}},"spec":{"ttlSecondsAfterFinished":null}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := changePatch(before, before); err != nil || got != nil {
		t.Errorf("no change patches %s (%v)", got, err)
	}
}
