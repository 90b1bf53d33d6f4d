package binaries

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Progress hears what a build is doing. Calls come in order from one goroutine
// at a time, except that Step may follow closely on Done.
type Progress interface {
	Wait(why string)                // something holds the build up
	Begin(module string, total int) // so many programs are to be built
	Start(name string)              // one of them is being built
	Step(what string, compiled int) // its latest package, and how many so far
	Done(name string, took time.Duration, err error)
	End(err error)
}

// NewProgress shows bars on a terminal and writes lines to anything else.
func NewProgress(w io.Writer) Progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		return &bars{w: w}
	}
	return &lines{w: w, now: time.Now}
}

type silent struct{}

func (silent) Wait(string)                       {}
func (silent) Begin(string, int)                 {}
func (silent) Start(string)                      {}
func (silent) Step(string, int)                  {}
func (silent) Done(string, time.Duration, error) {}
func (silent) End(error)                         {}

// titles name a module as a user knows it, with what building it cold takes on
// two cores.
var titles = map[string]struct{ name, cold string }{
	controlPlane.name: {"the control plane", "about 6 minutes"},
	openTofu.name:     {"OpenTofu", "about 2.5 minutes"},
}

func title(module string) string {
	if t, ok := titles[module]; ok {
		return t.name + " (once; " + t.cold + " on 2 cores)"
	}
	return module
}

// stillEvery is how often lines repeats that a long build is alive.
const stillEvery = 30 * time.Second

// lines is for logs: a line when a program starts, one when it is done, and
// one now and then between.
type lines struct {
	w           io.Writer
	now         func() time.Time
	k, total    int
	name        string
	began, last time.Time
}

func (l *lines) Wait(why string) { fmt.Fprintf(l.w, "Waiting: %s.\n", why) }

func (l *lines) Begin(module string, total int) {
	l.total = total
	fmt.Fprintf(l.w, "Building %s\n", title(module))
}

func (l *lines) Start(name string) {
	l.k++
	l.name, l.began = name, l.now()
	l.last = l.began
	fmt.Fprintf(l.w, "  [%d/%d] %s ...\n", l.k, l.total, name)
}

func (l *lines) Step(_ string, compiled int) {
	if now := l.now(); now.Sub(l.last) >= stillEvery {
		l.last = now
		fmt.Fprintf(l.w, "        %s: %d packages compiled, %s\n", l.name, compiled, seconds(now.Sub(l.began)))
	}
}

func (l *lines) Done(name string, took time.Duration, err error) {
	if err == nil {
		fmt.Fprintf(l.w, "  [%d/%d] %s built in %s\n", l.k, l.total, name, seconds(took))
	}
}

func (l *lines) End(error) {}

func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
