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
)

var heard = make(chan os.Signal, 1)

func init() { signal.Notify(heard, os.Interrupt, syscall.SIGTERM) }

// Context ends with the first signal, also with one that came before it was
// asked for. stop gives signals their usual effect again.
func Context() (ctx context.Context, stop func()) {
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
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		cancel()
	}
}
