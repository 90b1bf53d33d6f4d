package term

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTerminal(t *testing.T) {
	size := func(width int, err error) func() (int, int, error) {
		return func() (int, int, error) { return width, 24, err }
	}
	unknown := size(0, errors.New("not supported"))
	for name, tt := range map[string]struct {
		env  map[string]string
		size func() (int, int, error)
		want Streams
	}{
		"an ordinary one":           {map[string]string{"TERM": "xterm"}, size(80, nil), Streams{Color: true, Width: 80}},
		"NO_COLOR is any value":     {map[string]string{"TERM": "xterm", "NO_COLOR": "0"}, size(120, nil), Streams{Width: 120}},
		"an empty NO_COLOR is none": {map[string]string{"NO_COLOR": ""}, size(80, nil), Streams{Color: true, Width: 80}},
		"a dumb one":                {map[string]string{"TERM": "dumb"}, size(80, nil), Streams{Width: 80}},
		"one of no known size":      {nil, unknown, Streams{Color: true}},
	} {
		var got Streams
		got.terminal(func(k string) string { return tt.env[k] }, tt.size)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Output that goes to a file or a program is never painted or cut.
func TestSystemWithoutATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	t.Cleanup(func() {
		os.Stdout = stdout
		r.Close()
		w.Close()
	})
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if s := System(); s.Color || s.Width != 0 || s.Out != w || s.In != os.Stdin || s.Err != os.Stderr {
		t.Errorf("got %+v", s)
	}
}

func TestPaint(t *testing.T) {
	for _, c := range []struct {
		color bool
		style Style
		text  string
		want  string
	}{
		{true, Good, "ok", "\x1b[32mok\x1b[0m"},
		{true, Plain, "ok", "ok"},
		{true, Bad, "", ""},
		{false, Good, "ok", "ok"},
	} {
		if got := (&Streams{Color: c.color}).Paint(c.style, c.text); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
