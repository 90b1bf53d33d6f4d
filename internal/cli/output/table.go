package output

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
)

// Column of a table.
type Column struct {
	Name     string
	Wide     bool                         // shown with -o wide only
	Whole    bool                         // as the last one, not to be cut while other columns yield
	Optional bool                         // left out while all its cells are empty
	Yield    int                          // left out of a terminal too narrow; the highest first, 0 never
	Style    func(cell string) term.Style // nil: plain
}

// Table is rows of cells, one for each column. An empty cell is printed as "-".
type Table struct {
	Columns []Column
	Rows    [][]string
	// Empty is what is printed instead of a table without rows.
	Empty string
}

func (t Table) write(w io.Writer, s *term.Streams, wide bool) error {
	if len(t.Rows) == 0 && t.Empty != "" {
		_, err := io.WriteString(w, t.Empty+"\n")
		return err
	}
	if wide { // whoever asks for every column gets them, in lines of any length
		unbound := *s
		unbound.Width = 0
		s = &unbound
	}
	t = t.without(func(i int) bool {
		return t.Columns[i].Optional && !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "" })
	})
	text, err := t.layout(wide)
	for err == nil && s.Width > 0 && t.needs(text, wide) > s.Width {
		most := 0
		for _, c := range t.Columns {
			most = max(most, c.Yield)
		}
		if most == 0 {
			break
		}
		t = t.without(func(i int) bool { return t.Columns[i].Yield == most })
		text, err = t.layout(wide)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, t.finish(text, s, wide))
	return err
}

func (t Table) layout(wide bool) (string, error) {
	var b bytes.Buffer
	err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(t.meta(), &b)
	return b.String(), err
}

// readable is how much of the last column must be seen: the rest may be cut.
const readable = 16

// needs is the width below which a table cannot be read.
func (t Table) needs(text string, wide bool) int {
	header, _, _ := strings.Cut(text, "\n")
	last := len(t.Columns) - 1
	for last > 0 && t.Columns[last].Wide && !wide {
		last--
	}
	longest := len(t.Columns[last].Name)
	for _, row := range t.Rows {
		longest = max(longest, utf8.RuneCountInString(row[last]))
	}
	if !t.Columns[last].Whole {
		longest = min(longest, readable)
	}
	return t.starts(header, wide)[last] + longest
}

// without drops columns.
func (t Table) without(drop func(column int) bool) Table {
	var keep []int
	for i := range t.Columns {
		if !drop(i) {
			keep = append(keep, i)
		}
	}
	kept := Table{Empty: t.Empty, Columns: make([]Column, len(keep)), Rows: make([][]string, len(t.Rows))}
	for n, i := range keep {
		kept.Columns[n] = t.Columns[i]
	}
	for r, row := range t.Rows {
		kept.Rows[r] = make([]string, len(keep))
		for n, i := range keep {
			kept.Rows[r][n] = row[i]
		}
	}
	return kept
}

// meta is the table in the form that Kubernetes' printer lays out.
func (t Table) meta() *metav1.Table {
	m := &metav1.Table{}
	for _, c := range t.Columns {
		d := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			d.Priority = 1
		}
		m.ColumnDefinitions = append(m.ColumnDefinitions, d)
	}
	for _, r := range t.Rows {
		cells := make([]any, len(r))
		for i, cell := range r {
			if cell == "" {
				cell = "-"
			}
			cells[i] = cell
		}
		m.Rows = append(m.Rows, metav1.TableRow{Cells: cells})
	}
	return m
}

// finish cuts lines to the terminal and paints them. Both come after the
// layout: escape sequences would count as width.
func (t Table) finish(text string, s *term.Streams, wide bool) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	starts := t.starts(lines[0], wide)
	for i, line := range lines {
		line = strings.TrimRight(cut(strings.TrimRight(line, " "), s.Width), " ")
		switch {
		case i == 0:
			line = s.Paint(term.Bold, line)
		case i-1 < len(t.Rows):
			line = t.paint(line, t.Rows[i-1], starts, s)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + "\n"
}

// starts finds where each column begins, by its heading; -1 for hidden ones.
func (t Table) starts(header string, wide bool) []int {
	starts := make([]int, len(t.Columns))
	from := 0
	for i, c := range t.Columns {
		starts[i] = -1
		if c.Wide && !wide {
			continue
		}
		name := strings.ToUpper(c.Name)
		if at := strings.Index(header[from:], name); at >= 0 {
			starts[i] = from + at
			from += at + len(name)
		}
	}
	return starts
}

func (t Table) paint(line string, row []string, starts []int, s *term.Streams) string {
	if !s.Color {
		return line
	}
	runes := []rune(line)
	for i := len(t.Columns) - 1; i >= 0; i-- { // from the right: offsets to the left stay true
		at, size := starts[i], utf8.RuneCountInString(row[i])
		if t.Columns[i].Style == nil || at < 0 || size == 0 || at+size > len(runes) {
			continue
		}
		painted := s.Paint(t.Columns[i].Style(row[i]), string(runes[at:at+size]))
		runes = append(append(append([]rune{}, runes[:at]...), []rune(painted)...), runes[at+size:]...)
	}
	return string(runes)
}

// cut shortens a line to width columns; 0 is no limit.
func cut(line string, width int) string {
	if width <= 1 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}
