package training

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

// One mistake is told once, at the setting where it was made.
func TestOneFaultIsToldOnce(t *testing.T) {
	tests := map[string]struct {
		change func(*Spec)
		want   []string
	}{
		"name too long for pods":   {func(s *Spec) { s.Name, s.RunID = strings.Repeat("a", 60), "" }, []string{"name"}},
		"name too long for labels": {func(s *Spec) { s.Name, s.RunID = strings.Repeat("a", 80), "" }, []string{"name"}},
		"name with a bad letter":   {func(s *Spec) { s.Name, s.RunID = "a/b", "" }, []string{"name"}},
		"run id of its own":        {func(s *Spec) { s.RunID = "a/b" }, []string{"run_id"}},
		"no image":                 {func(s *Spec) { s.Image = "" }, []string{"image"}},
		"part of a second, kept":   {func(s *Spec) { s.TTL = ptr.To(500 * time.Millisecond) }, []string{"ttl_after_finished"}},
		"part of a second, grace":  {func(s *Spec) { s.GracePeriod = ptr.To(1500 * time.Millisecond) }, []string{"termination_grace_period"}},
		"part of a second, run":    {func(s *Spec) { s.MaxRunTime = ptr.To(500 * time.Millisecond) }, []string{"max_run_time"}},
		"no time to run":           {func(s *Spec) { s.MaxRunTime = ptr.To(time.Duration(0)) }, []string{"max_run_time"}},
		"negative time to keep":    {func(s *Spec) { s.TTL = ptr.To(-1500 * time.Millisecond) }, []string{"ttl_after_finished"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := spec(t)
			tt.change(&s)
			var got []string
			for _, e := range FieldErrors(s.Validate()) {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No kubelet pulls what is no reference, and the API server takes it.
func TestImageNames(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	good := []string{
		"i", "python:3.13", "train:v1_A.b-c", "library/python", "us-docker.pkg.dev/my-project/images/train:v1", "gcr.io/example.com/project/train",
		"registry:5000/train", "localhost/train:1", "REGISTRY.example/a__b/c--d/e.f_g" + digest, "[::1]:5000/a", "10.0.0.1:80/a/b:1" + digest, "train" + digest,
	}
	bad := []string{
		"a b", "Train", "team/Train:1", "UPPER/Case:tag:tag", "train:", "train:-1", ":1", "/train", "train/", "a//b", "https://gcr.io/a/b", "gs://bucket/a", "train@sha256:abc", "train:" + strings.Repeat("a", 129),
		"${IMAGE}", "train:1\n", "registry:port/train",
	}
	check := func(image string, ok bool) {
		t.Helper()
		s := spec(t)
		s.Image = image
		s.Jobs = []Job{{Name: "eval", Image: image, Pods: 1}}
		var fields []string
		for _, e := range FieldErrors(s.Validate()) {
			fields = append(fields, e.Field)
		}
		var want []string
		if !ok {
			want = []string{"image", "jobs"}
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("image %q (-want +got):\n%s", image, diff)
		}
	}
	for _, image := range good {
		check(image, true)
	}
	for _, image := range bad {
		check(image, false)
	}
}
