// Package exit says which errors end tpuctl with which exit code. It knows no
// command.
package exit

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes that scripts rely on.
const (
	OK           = 0
	Failure      = 1
	Usage        = 64  // EX_USAGE: the command line cannot be carried out as written
	TimedOut     = 124 // of wait, as scripts for xpk expect
	Unsuccessful = 125 // of wait: the job ended without success
	Interrupted  = 130 // Ctrl-C, as shells report it
)

// UsageError refuses a command line before anything is done.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// CodeError ends with a code of its own. A nil Err prints nothing: the command
// has said what there is to say.
type CodeError struct {
	Code int
	Err  error
}

func (e *CodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *CodeError) Unwrap() error { return e.Err }

// Code is the exit code for err.
func Code(err error) int {
	var usage *UsageError
	var code *CodeError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &code):
		return code.Code
	case errors.As(err, &usage):
		return Usage
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failure
}
