package sandboxcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// cancelGrace is how long a background process that is told to stop while it
// starts has to end its own children.
const cancelGrace = 60 * time.Second

// detach runs this program again, as `sandbox serve`, in a session of its own,
// and waits until it is ready: it outlives this one and its terminal. When ctx
// ends first, it is stopped.
func detach(ctx context.Context, args []string) (endpoint string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("starting the sandbox: finding this program: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("starting the sandbox: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(self, append([]string{"sandbox", "serve"}, args...)...)
	cmd.Args[0] = os.Args[0] // what it says names us as we were called
	cmd.Dir = "/"            // keep no file system busy
	cmd.ExtraFiles = []*os.File{w}
	ownSession(cmd)
	err = cmd.Start()
	w.Close()
	if err != nil {
		return "", fmt.Errorf("starting the sandbox: %w", err)
	}
	var exited error
	ended := make(chan struct{})
	go func() {
		exited = cmd.Wait()
		close(ended)
	}()
	answer := make(chan report, 1)
	go func() {
		var a report
		_ = json.NewDecoder(r).Decode(&a) // a process that died says nothing
		answer <- a
	}()
	select {
	case a := <-answer:
		if a.Endpoint != "" {
			return a.Endpoint, nil
		}
		<-ended
		if a.Error != "" {
			return "", errors.New(a.Error)
		}
		return "", fmt.Errorf("starting the sandbox: its process ended without a word: %w", exited)
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(cancelGrace):
			_ = cmd.Process.Kill() // its children die with it, or at the next start
			<-ended
		}
		return "", context.Cause(ctx)
	}
}
