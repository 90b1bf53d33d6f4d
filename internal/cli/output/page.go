package output

import (
	"strings"
	"unicode/utf8"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

// fieldWidth is the column where values begin on a page.
const fieldWidth = 22

// defaultWidth wraps pages that go to a file or a pipe.
const defaultWidth = 100

// Page is a description for a person: a title, fields, sections.
type Page struct {
	s *term.Streams
	b strings.Builder
}

// NewPage begins a page.
func NewPage(s *term.Streams, title string) *Page {
	p := &Page{s: s}
	p.b.WriteString(s.Paint(term.Bold, title) + "\n")
	return p
}

// Field adds "name  value"; a field without a value is left out.
func (p *Page) Field(name, value string) { p.Styled(name, value, term.Plain) }

// Styled is Field with a painted value.
func (p *Page) Styled(name, value string, style term.Style) {
	if value == "" {
		return
	}
	label := "  " + name + strings.Repeat(" ", max(1, fieldWidth-2-utf8.RuneCountInString(name)))
	lines := wrap(value, p.width()-fieldWidth)
	p.b.WriteString(p.s.Paint(term.Dim, label) + p.s.Paint(style, lines[0]) + "\n")
	for _, l := range lines[1:] {
		p.b.WriteString(strings.Repeat(" ", fieldWidth) + p.s.Paint(style, l) + "\n")
	}
}

// Link is a Field whose value is copied, and so never wrapped.
func (p *Page) Link(name, address string) {
	if address != "" {
		p.b.WriteString(p.s.Paint(term.Dim, "  "+name+strings.Repeat(" ", max(1, fieldWidth-2-utf8.RuneCountInString(name)))) + address + "\n")
	}
}

// Section begins a part with a heading.
func (p *Page) Section(heading string) {
	p.b.WriteString("\n" + p.s.Paint(term.Bold, heading) + "\n")
}

// Line adds an indented line as it is: for what people copy.
func (p *Page) Line(text string) { p.b.WriteString("  " + text + "\n") }

// Paragraphs adds a section of wrapped paragraphs, or nothing when there are none.
func (p *Page) Paragraphs(heading string, paragraphs []string, style term.Style) {
	if len(paragraphs) == 0 {
		return
	}
	p.Section(heading)
	for _, text := range paragraphs {
		for _, l := range wrap(text, p.width()-2) {
			p.Line(p.s.Paint(style, l))
		}
	}
}

// Table adds a table, indented.
func (p *Page) Table(t Table, wide bool) error {
	var b strings.Builder
	narrow := *p.s
	if narrow.Width > 2 {
		narrow.Width -= 2
	}
	if err := t.write(&b, &narrow, wide); err != nil {
		return err
	}
	for _, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		p.Line(l)
	}
	return nil
}

func (p *Page) width() int {
	if p.s.Width > 0 {
		return max(p.s.Width, fieldWidth+20)
	}
	return defaultWidth
}

// String is the page so far.
func (p *Page) String() string { return p.b.String() }

// wrap breaks text at spaces so that lines fit width, if its words do.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
