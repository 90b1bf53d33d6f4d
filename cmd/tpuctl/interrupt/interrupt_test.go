package interrupt

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// A command that does not end by the first signal ends by the next.
func TestASecondSignalEndsTheProcess(t *testing.T) {
	const child = "TPUCTL_TEST_INTERRUPT"
	if os.Getenv(child) != "" {
		ctx, _ := Context(false)
		fmt.Println("begun")
		<-ctx.Done()
		fmt.Println("interrupted")
		select {}
	}
	if runtime.GOOS == "windows" {
		t.Skip("no process can be interrupted by another one")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	interrupt := func(after string) {
		if !said.Scan() || said.Text() != after {
			t.Fatalf("said %q, want %q", said.Text(), after)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	interrupt("begun")
	interrupt("interrupted") // so soon that it is the first one still
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for again := time.NewTicker(together / 3); ; {
		select {
		case err := <-ended:
			if cmd.ProcessState.ExitCode() != -1 {
				t.Errorf("ended by itself: %v", err)
			}
			return
		case <-again.C:
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended now
		}
	}
}
