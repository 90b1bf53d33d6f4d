package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Scripts branch on these numbers, however deep in an error its kind sits.
func TestCode(t *testing.T) {
	plain := errors.New("no answer")
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"success":                         {nil, 0},
		"a failure":                       {plain, 1},
		"a usage error":                   {Usagef("no flag %s", "--foo"), 64},
		"a wrapped usage error":           {fmt.Errorf("list: %w", Usagef("no flag")), 64},
		"Ctrl-C":                          {fmt.Errorf("listing: %w", context.Canceled), 130},
		"a timeout is a failure":          {context.DeadlineExceeded, 1},
		"a code of its own":               {&CodeError{Code: 3, Err: plain}, 3},
		"a wrapped code":                  {fmt.Errorf("wait: %w", &CodeError{Code: 2}), 2},
		"a code wins over the usage":      {&CodeError{Code: 3, Err: Usagef("no flag")}, 3},
		"a code wins over Ctrl-C":         {&CodeError{Code: 1, Err: context.Canceled}, 1},
		"a usage error wins over Ctrl-C":  {&UsageError{Err: context.Canceled}, 64},
		"one of several joined is enough": {errors.Join(plain, Usagef("no flag")), 64},
	} {
		if got := Code(tt.err); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// What wraps an error keeps its words and its identity.
func TestErrorsKeepTheirCause(t *testing.T) {
	cause := errors.New("no answer")
	for _, err := range []error{&UsageError{Err: cause}, &CodeError{Code: 3, Err: cause}} {
		if err.Error() != "no answer" || !errors.Is(err, cause) {
			t.Errorf("%T: %q", err, err)
		}
	}
	if err := Usagef("--port: %w", cause); err.Error() != "--port: no answer" || !errors.Is(err, cause) {
		t.Errorf("Usagef: %q", err)
	}
	if err := (&CodeError{Code: 3}); err.Error() != "exit code 3" || err.Unwrap() != nil {
		t.Errorf("a code alone: %q", err)
	}
}
