package near

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTo(t *testing.T) {
	known := []string{"Pending", "Admitted", "Running", "Restarting", "namespace", "name", "train", "train-2"}
	for word, want := range map[string][]string{
		"Rnning": {"Running"}, "runnign": {"Running"}, "Run": {"Running"}, "pendign": {"Pending"}, "naemspace": {"namespace"},
		"trian": {"train"}, "trai": {"train", "train-2"}, "nam": {"name", "namespace"}, "x": nil, "": nil, "something": nil,
	} {
		if diff := cmp.Diff(want, To(word, known)); diff != "" {
			t.Errorf("%q: %s", word, diff)
		}
	}
	if got := Hint("trian", known); got != "; did you mean train?" {
		t.Errorf("%q", got)
	}
	if got := Hint("zzz", known); got != "" {
		t.Errorf("%q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"größe", "grösse", 2}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("%q to %q: %d and %d, want %d", c.a, c.b, got, distance(c.b, c.a), c.want)
		}
	}
}
