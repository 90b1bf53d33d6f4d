package training_test

import (
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// plainJob is a job outside queues, so that its JobSet alone says how it stands.
func plainJob(t *testing.T, name string) training.Spec {
	t.Helper()
	s, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	return training.Spec{Namespace: "research", Name: name, Slice: s, Slices: 2, Image: "train:1", Command: []string{"python", "train.py"}, OutputDir: "gs://runs", Restart: training.DefaultRestart()}
}

func keeping(objects ...client.Object) *kube.Client {
	return &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).WithStatusSubresource(&jobset.JobSet{}).Build()}
}

func ended(js *jobset.JobSet, restarts int32) *jobset.JobSet {
	js.Status.Restarts = restarts
	js.Status.Conditions = []metav1.Condition{{Type: string(jobset.JobSetFailed), Status: metav1.ConditionTrue}}
	return js
}

// A run goes on under the same RUN_ID and OUTPUT_DIR, after the attempts of all
// its jobs, and only when none of them is going.
func TestGoOn(t *testing.T) {
	first := plainJob(t, "train")
	c := keeping(ended(first.JobSet(), 2))
	past, err := training.ReadPast(t.Context(), c, "research", "train")
	if err != nil || past.Next != 3 || past.Going != nil {
		t.Fatalf("%+v, %v", past, err)
	}
	had, err := training.ReadSpec(t.Context(), c, types.NamespacedName{Namespace: "research", Name: "train"})
	if err != nil {
		t.Fatal(err)
	}
	second := had.GoOn("train-2", past.Next)
	if err := second.Validate(); err != nil {
		t.Fatal(err)
	}
	js := second.JobSet()
	env := js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Env
	value := func(name string) string {
		i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
		if i < 0 {
			return ""
		}
		return env[i].Value
	}
	if got := []string{value("RUN_ID"), value("OUTPUT_DIR"), value("FIRST_ATTEMPT")}; !slices.Equal(got, []string{"train", "gs://runs/train", "3"}) {
		t.Errorf("environment %q", got)
	}
	// Read back, it is what it was, and the next one goes on after it.
	again := training.FromJobSet(js)
	if again.Hash() != second.Hash() || again.FirstAttempt != 3 {
		t.Errorf("read back: %s", cmp.Diff(second, again))
	}
	js.Status.Restarts = 1
	past, err = training.ReadPast(t.Context(), keeping(ended(first.JobSet(), 2), js), "research", "train")
	if err != nil || past.Next != 5 || past.Going == nil || past.Going.Name != "train-2" {
		t.Errorf("%+v, %v", past, err)
	}
	if afresh := again.Afresh("train-3"); afresh.FirstAttempt != 0 || afresh.RunID != "" || strings.Contains(strings.Join(afresh.JobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Command, " "), "ATTEMPT") {
		t.Errorf("afresh: %+v", afresh)
	}
	if _, err := training.ReadSpec(t.Context(), c, types.NamespacedName{Namespace: "research", Name: "none"}); !errors.As(err, new(*training.NotFoundError)) {
		t.Errorf("a job that is not there: %v", err)
	}
}

// The image's own command cannot be started by a shell.
func TestGoOnNeedsACommand(t *testing.T) {
	s := plainJob(t, "train-2")
	s.FirstAttempt, s.Command = 1, nil
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "first_attempt: a job that goes on with a run names its command") {
		t.Errorf("got %v", err)
	}
	s.Shell = "train"
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	s.FirstAttempt = -1
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "first_attempt: -1") {
		t.Errorf("got %v", err)
	}
}

// The program, or the script, sees the attempts counted through.
func TestAttemptsAreCountedThrough(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no /bin/sh")
	}
	for name, edit := range map[string]func(*training.Spec){
		"a program": func(s *training.Spec) { s.Command, s.Args = []string{"printenv"}, []string{"ATTEMPT"} },
		"a script":  func(s *training.Spec) { s.Command, s.Shell = nil, "printenv ATTEMPT | cat" },
	} {
		s := plainJob(t, "train")
		s.FirstAttempt = 3
		edit(&s)
		c := s.JobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
		var argv []string
		for _, a := range append(slices.Clone(c.Command), c.Args...) {
			argv = append(argv, strings.NewReplacer("$$", "$").Replace(a)) // as a kubelet does
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "ATTEMPT=2", "FIRST_ATTEMPT=3"}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "5\n" {
			t.Errorf("%s sees %q, %v", name, out, err)
		}
	}
}

// A cancelled job is suspended for good, and over.
func TestCancel(t *testing.T) {
	s := plainJob(t, "train")
	c := keeping(s.JobSet(), ended(plainJob(t, "done").JobSet(), 0))
	key := types.NamespacedName{Namespace: "research", Name: "train"}
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, now := range []time.Time{at, at.Add(time.Hour)} { // again, it changes nothing
		if err := training.Cancel(t.Context(), c, key, now); err != nil {
			t.Fatal(err)
		}
		js := &jobset.JobSet{}
		if err := c.Get(t.Context(), key, js); err != nil {
			t.Fatal(err)
		}
		r := training.Read(js, nil)
		if !r.Over() || r.State != training.Suspended || r.Reason != training.ReasonCancelled || r.Message != "the job was cancelled at 2026-03-04T12:00:00Z" {
			t.Errorf("%s (%s): %s", r.State, r.Reason, r.Message)
		}
		if back := training.FromJobSet(js); len(back.Annotations) > 0 {
			t.Errorf("a job like it would be cancelled: %v", back.Annotations)
		}
	}
	if err := training.Cancel(t.Context(), c, types.NamespacedName{Namespace: "research", Name: "done"}, at); !errors.As(err, new(*training.FinishedError)) {
		t.Errorf("a job that has ended: %v", err)
	}
	if err := training.Cancel(t.Context(), c, types.NamespacedName{Namespace: "research", Name: "none"}, at); !errors.As(err, new(*training.NotFoundError)) {
		t.Errorf("a job that is not there: %v", err)
	}
	// Somebody who waits for its end waits no longer.
	r, err := training.Wait(t.Context(), c, key, training.LevelCompleted, nil)
	if err != nil || !r.Over() {
		t.Errorf("%+v, %v", r.State, err)
	}
}

func TestAnnotate(t *testing.T) {
	s := plainJob(t, "train")
	s.Annotations, s.Labels = map[string]string{"a": "1", "b": "2"}, map[string]string{"team": "x"}
	c := keeping(s.JobSet())
	key := types.NamespacedName{Namespace: "research", Name: "train"}
	text := "why"
	if err := training.Annotate(t.Context(), c, key, map[string]*string{"tag": &text}, map[string]*string{"a": nil, "note": &text, "none": nil}); err != nil {
		t.Fatal(err)
	}
	js := &jobset.JobSet{}
	if err := c.Get(t.Context(), key, js); err != nil {
		t.Fatal(err)
	}
	back := training.FromJobSet(js)
	if diff := cmp.Diff([]map[string]string{{"b": "2", "note": "why"}, {"team": "x", "tag": "why"}}, []map[string]string{back.Annotations, back.Labels}); diff != "" {
		t.Error(diff)
	}
	if back.Hash() != s.Hash() || js.Annotations[training.AnnotationSpecHash] != s.Hash() {
		t.Error("the job is another one now")
	}
	bad := "x"
	if err := training.Annotate(t.Context(), c, key, nil, map[string]*string{training.AnnotationSpecHash: &bad}); !errors.As(err, new(*training.FieldError)) {
		t.Errorf("what is ours: %v", err)
	}
	if err := training.Annotate(t.Context(), c, key, map[string]*string{"a b": &bad}, nil); !errors.As(err, new(*training.FieldError)) {
		t.Errorf("what is no key: %v", err)
	}
	key.Name = "none"
	if err := training.Annotate(t.Context(), c, key, nil, map[string]*string{"a": &bad}); !errors.As(err, new(*training.NotFoundError)) {
		t.Errorf("a job that is not there: %v", err)
	}
}
