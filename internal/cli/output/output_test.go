package output

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/clitest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

func sample() View {
	type row struct {
		Name  string `json:"name"`
		State string `json:"state"`
	}
	return View{
		Data:  []row{{"a<b", "good"}, {"long", "bad"}},
		Names: []string{"a<b", "long"},
		Table: Table{
			Columns: []Column{
				{Name: "name"}, {Name: "owner", Optional: true}, {Name: "state", Style: func(s string) term.Style {
					if s == "good" {
						return term.Good
					}
					return term.Bad
				}},
				{Name: "more", Wide: true}, {Name: "reason", Optional: true},
			},
			Rows:  [][]string{{"a<b", "", "good", "x", ""}, {"long", "", "bad", "", "a long story that goes on and on"}},
			Empty: "None.",
		},
	}
}

func TestPrint(t *testing.T) {
	tests := map[string]struct {
		format Format
		width  int
		color  bool
		want   string
	}{
		"table leaves out what is empty or wide": {TableFormat, 0, false,
			"NAME   STATE   REASON\na<b    good    -\nlong   bad     a long story that goes on and on\n"},
		"wide": {Wide, 0, false,
			"NAME   STATE   MORE   REASON\na<b    good    x      -\nlong   bad     -      a long story that goes on and on\n"},
		"a terminal cuts lines": {TableFormat, 25, false,
			"NAME   STATE   REASON\na<b    good    -\nlong   bad     a long st…\n"},
		"colours come after the layout": {TableFormat, 25, true,
			"\x1b[1mNAME   STATE   REASON\x1b[0m\na<b    \x1b[32mgood\x1b[0m    -\nlong   \x1b[31mbad\x1b[0m     a long st…\n"},
		"a cut cell is not painted": {TableFormat, 9, true,
			"\x1b[1mNAME   S…\x1b[0m\na<b    g…\nlong   b…\n"},
		"json is not escaped for web pages": {JSON, 0, false,
			"[\n  {\n    \"name\": \"a<b\",\n    \"state\": \"good\"\n  },\n  {\n    \"name\": \"long\",\n    \"state\": \"bad\"\n  }\n]\n"},
		"yaml":  {YAML, 0, false, "- name: a<b\n  state: good\n- name: long\n  state: bad\n"},
		"names": {Name, 0, false, "a<b\nlong\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, out, _ := clitest.Streams(tt.width, tt.color)
			if err := Print(s, tt.format, sample()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNarrowTerminalsLoseColumnsBeforeText(t *testing.T) {
	v := View{Table: Table{
		Columns: []Column{{Name: "name"}, {Name: "owner", Yield: 2}, {Name: "queue", Yield: 1}, {Name: "age"}, {Name: "hidden", Wide: true}},
		Rows:    [][]string{{"train", "ada", "research", "3h", "x"}},
	}}
	for width, want := range map[int]string{
		40: "NAME    OWNER   QUEUE      AGE\ntrain   ada     research   3h\n",
		25: "NAME    QUEUE      AGE\ntrain   research   3h\n",
		15: "NAME    AGE\ntrain   3h\n",
		9:  "NAME    …\ntrain   …\n",
	} {
		s, out, _ := clitest.Streams(width, false)
		if err := Print(s, TableFormat, v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
}

func TestWideShowsEveryColumnHoweverNarrowTheTerminal(t *testing.T) {
	v := View{Table: Table{
		Columns: []Column{{Name: "name"}, {Name: "owner", Yield: 2}, {Name: "queue", Yield: 1}, {Name: "hidden", Wide: true}, {Name: "reason"}},
		Rows:    [][]string{{"train", "ada", "research", "x", "a long story that goes on and on"}},
	}}
	s, out, _ := clitest.Streams(20, false)
	if err := Print(s, Wide, v); err != nil {
		t.Fatal(err)
	}
	want := "NAME    OWNER   QUEUE      HIDDEN   REASON\ntrain   ada     research   x        a long story that goes on and on\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if s.Width != 20 {
		t.Errorf("the streams' width became %d", s.Width)
	}
}

func TestEmptyTable(t *testing.T) {
	v := sample()
	v.Table.Rows = nil
	s, out, _ := clitest.Streams(0, false)
	if err := Print(s, TableFormat, v); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "None.\n" {
		t.Errorf("got %q", got)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFailingWriteIsAnError(t *testing.T) {
	for _, f := range formats {
		s, _, _ := clitest.Streams(0, false)
		s.Out = full{}
		err := Print(s, f, sample())
		if err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("-o %s to a full disk: %v", f, err)
		}
	}
}

func TestFormatRefuses(t *testing.T) {
	var f Format
	set := func(text string, more ...Format) error {
		cmd := &cobra.Command{}
		AddFlag(cmd, &f, more...)
		return cmd.Flags().Lookup("output").Value.Set(text)
	}
	if err := set("JSON"); err != nil || f != JSON {
		t.Errorf("JSON: %v, %v", f, err)
	}
	if err := set("hcl", HCL); err != nil || f != HCL {
		t.Errorf("hcl: %v, %v", f, err)
	}
	for _, other := range []string{"xml", "hcl"} {
		if err := set(other); err == nil || err.Error() != "want one of table|wide|json|yaml|name" {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestWriteError(t *testing.T) {
	err := fmt.Errorf("no <such> job")
	for format, want := range map[Format]string{
		TableFormat: "tpuctl: no <such> job\n",
		JSON:        "{\n  \"error\": {\n    \"kind\": \"missing\",\n    \"message\": \"no <such> job\"\n  }\n}\n",
	} {
		var b strings.Builder
		WriteError(&b, format, "tpuctl", err, map[string]any{"kind": "missing"})
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPage(t *testing.T) {
	s, _, _ := clitest.Streams(50, false)
	p := NewPage(s, "train")
	p.Field("state", "Running")
	p.Field("empty", "")
	p.Field("message", "couldn't assign flavors: insufficient unused quota for google.com/tpu")
	p.Field("a name too long for its column", "x")
	p.Section("slices")
	if err := p.Table(Table{Columns: []Column{{Name: "slice"}}, Rows: [][]string{{"0"}}}, false); err != nil {
		t.Fatal(err)
	}
	p.Paragraphs("notes", []string{"one two three four five six seven eight nine ten eleven"}, term.Plain)
	p.Paragraphs("warnings", nil, term.Wait)
	want := `train
  state               Running
  message             couldn't assign flavors:
                      insufficient unused quota
                      for google.com/tpu
  a name too long for its column x

slices
  SLICE
  0

notes
  one two three four five six seven eight nine ten
  eleven
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Error(diff)
	}
}
