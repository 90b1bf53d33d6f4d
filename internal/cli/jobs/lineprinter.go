package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
	"github.com/tpu-training/terraform-provider-tpu/internal/training/logs"
)

// linePrinter writes lines of a job's hosts to standard output, each with its
// host before it.
type linePrinter struct {
	s          *term.Streams
	width      int // of the widest host so far
	timestamps bool
	bare       bool // no hosts
}

func newLinePrinter(s *term.Streams, run training.Run) *linePrinter {
	return &linePrinter{s: s, width: len(fmt.Sprintf("%d/%d", max(0, run.Slices-1), max(0, run.HostsPerSlice-1)))}
}

// hostStyles tell neighbours apart, on a terminal that shows colours.
var hostStyles = []term.Style{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}

func (p *linePrinter) print(l logs.Line) error {
	var b strings.Builder
	if !p.bare {
		name := l.Name()
		p.width = max(p.width, len(name))
		style := hostStyles[(l.Slice*7+l.Host)%len(hostStyles)]
		b.WriteString(p.s.Paint(style, name+strings.Repeat(" ", p.width-len(name))+" |") + " ")
	}
	if p.timestamps && !l.Time.IsZero() {
		b.WriteString(l.Time.UTC().Format(time.RFC3339Nano) + " ")
	}
	b.WriteString(l.Text + "\n")
	if _, err := p.s.Out.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}
