package binaries

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	barWidth = 24
	// latestWidth is how much of a package's path is shown: its end.
	latestWidth = 40
)

// bars draws one line for each program and a bar of k out of n below them.
type bars struct {
	w       io.Writer
	p       *mpb.Progress
	total   *mpb.Bar
	current *mpb.Bar
	latest  atomic.Pointer[string]
}

func (b *bars) Wait(why string) { fmt.Fprintf(b.w, "Waiting: %s.\n", why) }

func (b *bars) Begin(module string, total int) {
	fmt.Fprintf(b.w, "Building %s\n", title(module))
	b.p = mpb.New(mpb.WithOutput(b.w), mpb.WithWidth(barWidth), mpb.WithRefreshRate(150*time.Millisecond))
	b.total = b.p.New(int64(total), mpb.BarStyle().Lbound("").Filler("━").Tip("━").Padding("─").Rbound(""),
		mpb.BarPriority(1<<20), // below the programs
		mpb.PrependDecorators(decor.CountersNoUnit("  %d of %d ")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_MMSS, decor.WC{W: 6})),
	)
}

func (b *bars) Start(name string) {
	b.latest.Store(new(string))
	b.current = b.p.New(1, mpb.SpinnerStyle().PositionLeft(),
		mpb.BarWidth(1), mpb.BarFillerClearOnComplete(),
		mpb.PrependDecorators(
			decor.OnAbort(decor.OnComplete(decor.Name("  ▸ "), "  ✓ "), "  ✗ "),
			decor.Name(name, decor.WC{W: 26, C: decor.DindentRight}),
		),
		mpb.AppendDecorators(
			decor.Elapsed(decor.ET_STYLE_MMSS, decor.WC{W: 6}),
			decor.OnAbort(decor.OnComplete(decor.Any(func(decor.Statistics) string {
				return "  " + *b.latest.Load()
			}), ""), ""),
		),
	)
}

func (b *bars) Step(what string, compiled int) {
	if r := []rune(what); len(r) > latestWidth {
		what = "…" + string(r[len(r)-latestWidth+1:])
	}
	s := fmt.Sprintf("%4d packages  %s", compiled, what)
	b.latest.Store(&s)
}

func (b *bars) Done(_ string, _ time.Duration, err error) {
	if err != nil {
		b.current.Abort(false)
		return
	}
	b.current.Increment()
	b.total.Increment()
}

// End draws the last state and lets go of the terminal.
func (b *bars) End(err error) {
	if err != nil {
		b.total.Abort(true)
	}
	b.p.Wait()
}
