package sandboxcmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

// program is how this program is called from the shell that called it: what is
// printed for people to paste must run.
func program() string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return callName(os.Args[0], self, exec.LookPath)
}

// callName is the bare name when PATH leads to self by it, else the name it was
// called by, as a word of the shell.
func callName(called, self string, lookPath func(string) (string, error)) string {
	name := filepath.Base(called)
	if found, err := lookPath(name); err == nil && sameFile(found, self) {
		return quote(name)
	}
	return quote(called)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// command is a command line that works on the same sandbox.
func command(verb, dirFlag string) string {
	line := program() + " sandbox " + verb
	if dirFlag != "" {
		line += " --dir " + quote(dirFlag)
	}
	return line
}

// hint completes what package sandbox says by what to do on the command line.
func hint(err error, dirFlag string) error {
	var running *sandbox.RunningError
	var stopped *sandbox.NotRunningError
	var folder *sandbox.FolderError
	var inUse *process.InUseError
	var port *sandbox.PortError
	switch {
	case errors.As(err, &running):
		return fmt.Errorf("%w\nUse it:   eval \"$(%s)\"\nStop it:  %s\nOr start another one in another folder, with --dir", err, command("env", dirFlag), command("down", dirFlag))
	case errors.As(err, &stopped):
		return fmt.Errorf("%w; start one:  %s", err, command("up", dirFlag))
	case errors.As(err, &folder), errors.As(err, &inUse):
		return fmt.Errorf("%w (--dir)", err)
	case errors.As(err, &port):
		return fmt.Errorf("%w (--port)", err)
	}
	return err
}
