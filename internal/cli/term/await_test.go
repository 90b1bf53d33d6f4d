package term

import (
	"context"
	"errors"
	"io"
	"testing"
)

// A read that nobody answers ends with the command.
func TestAwait(t *testing.T) {
	in, keyboard := io.Pipe()
	defer keyboard.Close()
	s := Streams{In: in}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if line, err := s.Answer(ctx); line != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", line, err)
	}
	if text, err := (&Streams{In: in}).Input(ctx); len(text) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", text, err)
	}
	again, keys := io.Pipe()
	go func() { _, _ = keys.Write([]byte("yes\nand more")) }()
	if line, err := (&Streams{In: again}).Answer(t.Context()); line != "yes\n" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
}
