package training

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
