// Package interrupt hears Ctrl-C from the first milliseconds of a process on. It
// imports next to nothing, so that it is set up before the packages that take
// their time: a command that is interrupted while those are still says whether it
// did anything.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// together is how close two signals are one: timeout(1) sends a process that it
// ends two of them, and whoever presses Ctrl-C again has waited.
const together = 300 * time.Millisecond

var heard = make(chan os.Signal, 1)

func init() { signal.Notify(heard, os.Interrupt, syscall.SIGTERM) }

// Context ends with the first signal, also with one that came before it was
// asked for. A second one ends the process at once, unless it is patient and
// cleans up behind itself. stop gives signals their usual effect again.
func Context(patient bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	select {
	case <-heard: // as seen by whatever begins now
		cancel()
	default:
	}
	go func() {
		select {
		case <-heard:
			cancel()
		case <-ctx.Done(): // by that first one; else by stop, and nothing is left to do
		}
		if !patient {
			time.Sleep(together)
			signal.Stop(heard)
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		cancel()
	}
}
