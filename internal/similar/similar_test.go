package similar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAmong(t *testing.T) {
	all := []string{"accelerator", "annotations", "args", "slices", "shell", "max_run_time", "train-large"}
	for name, want := range map[string][]string{
		"acelerator":      {"accelerator"},
		"Accelerator":     {"accelerator"},
		"acceleratro":     {"accelerator"},
		"slice":           {"slices"},
		"max-run-time":    {"max_run_time"},
		"max-run":         {"max_run_time"},
		"train":           {"train-large"},
		"train-large-two": {"train-large"},
		"sh":              nil,
		"image":           nil,
		"":                nil,
	} {
		if diff := cmp.Diff(want, Among(name, all)); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"a", "a", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
