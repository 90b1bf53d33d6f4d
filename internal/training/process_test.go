package training_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Of a container it is known what the user wrote, whatever is put around it.
func TestAsWritten(t *testing.T) {
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("$$$()a {}'\"|;\n\\")))
		s := training.Spec{Namespace: "research", Name: "train", Slice: slice, Slices: 1, Image: "train:1", FirstAttempt: rapid.IntRange(0, 1).Draw(t, "first attempt")}
		var want []string
		if s.Shell = text.Draw(t, "script"); s.Shell == "" {
			s.Command, s.Args = rapid.SliceOfN(text, 1, 3).Draw(t, "command"), rapid.SliceOfN(text, 0, 2).Draw(t, "arguments")
			want = append(append(want, s.Command...), s.Args...)
		}
		c := s.JobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
		argv, script := training.AsWritten(c.Command, c.Args)
		if diff := cmp.Diff(want, argv, cmpopts.EquateEmpty()); diff != "" || script != s.Shell {
			t.Fatalf("the script %q came back as %q, the command as\n%s", s.Shell, script, diff)
		}
	})
}
