package term

import (
	"bufio"
	"context"
	"io"
	"os"
)

// Await is read's result, or the end of ctx if that comes first: nothing else
// ends a read of a terminal or of a pipe. What read gets later is lost, so it is
// for a command that ends then.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// File reads a whole file, which may be a pipe.
func File(ctx context.Context, name string) ([]byte, error) {
	return Await(ctx, func() ([]byte, error) { return os.ReadFile(name) })
}

// Answer reads a line from In, with its end where it has one.
func (s *Streams) Answer(ctx context.Context) (string, error) {
	return Await(ctx, func() (string, error) { return bufio.NewReader(s.In).ReadString('\n') })
}

// Input reads In to its end.
func (s *Streams) Input(ctx context.Context) ([]byte, error) {
	return Await(ctx, func() ([]byte, error) { return io.ReadAll(s.In) })
}
