package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Spec says what to run and where its traces go.
type Spec struct {
	Name string   // names the log file and the record; unique among the live children of Dir
	Path string   // the executable
	Args []string // without argv[0]
	Env  []string // the whole environment: nothing is inherited, credentials least of all
	Dir  string   // holds logs/NAME.log and pids/NAME
	Work string   // working directory; empty means Dir
}

// Child is one running process.
type Child struct {
	spec     Spec
	cmd      *exec.Cmd
	log      *os.File
	logStart int64 // where this run's lines begin in the log
	record   string
	done     chan struct{}
	err      error // set before done is closed
}

// ExitError says how a child ended and what it said last.
type ExitError struct {
	Name    string
	Code    int    // -1 when a signal ended it
	Status  string // "exit status 1", "signal: killed"
	LogFile string
	Lines   string // the last lines of the log
}

// Error names the log and repeats its last lines: they are the cause.
func (e *ExitError) Error() string {
	msg := fmt.Sprintf("%s ended with %s; its log is %s", e.Name, e.Status, e.LogFile)
	if e.Lines == "" {
		return msg + " (it is empty)"
	}
	return msg + ", and ends with:\n" + e.Lines
}

// Supported is nil where children can be kept from outliving their parent: on
// the systems that a sandbox runs on.
func Supported() error { return supported() }

// Start runs a child and returns as soon as it runs and is recorded.
func Start(s Spec) (*Child, error) {
	if err := supported(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	logs, pids := filepath.Join(s.Dir, "logs"), filepath.Join(s.Dir, recordDir)
	for _, d := range []string{logs, pids} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("starting %s: %w", s.Name, err)
		}
	}
	log, err := openLog(filepath.Join(logs, s.Name+".log"))
	if err != nil {
		return nil, fmt.Errorf("starting %s: opening its log: %w", s.Name, err)
	}
	c := &Child{spec: s, log: log, record: filepath.Join(pids, s.Name), done: make(chan struct{})}
	if fi, err := log.Stat(); err == nil {
		c.logStart = fi.Size()
	}
	c.cmd = exec.Command(s.Path, s.Args...)
	c.cmd.Env = append([]string{}, s.Env...) // never nil: nil means inherit
	c.cmd.Dir = s.Work
	if c.cmd.Dir == "" {
		c.cmd.Dir = s.Dir
	}
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = attributes()
	if err := spawn(c.cmd); err != nil {
		log.Close()
		return nil, fmt.Errorf("starting %s (%s): %w", s.Name, s.Path, err)
	}
	if err := writeRecord(c.record, c.cmd.Process.Pid); err != nil {
		_ = killGroup(c.cmd.Process.Pid, syscall.SIGKILL)
		_ = c.cmd.Wait()
		log.Close()
		return nil, fmt.Errorf("starting %s: recording its process id: %w", s.Name, err)
	}
	go c.wait()
	return c, nil
}

func (c *Child) wait() {
	err := c.cmd.Wait()
	status, code := "exit status 0", 0
	if err != nil {
		status, code = err.Error(), -1
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		}
	}
	c.err = &ExitError{Name: c.spec.Name, Code: code, Status: status, LogFile: c.LogFile(), Lines: c.Tail(tailLines)}
	c.log.Close()
	_ = os.Remove(c.record)
	close(c.done)
}

// Pid is the process id, also that of its group.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Name is the name given in the Spec.
func (c *Child) Name() string { return c.spec.Name }

// LogFile is where its output goes.
func (c *Child) LogFile() string { return c.log.Name() }

// Done is closed when the process has ended and its record is gone.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is nil while the process runs, then an *ExitError.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Tail returns the last n lines that this run logged.
func (c *Child) Tail(n int) string { return tail(c.LogFile(), c.logStart, n) }

// Stop asks the process to end, and kills its whole group when it has not
// within grace. It returns when the process is gone. Stopping twice is fine.
func (c *Child) Stop(grace time.Duration) {
	if c.Err() != nil {
		return
	}
	if grace > 0 {
		_ = killGroup(c.Pid(), syscall.SIGTERM)
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-c.done:
			return
		case <-t.C:
		}
	}
	_ = killGroup(c.Pid(), syscall.SIGKILL)
	<-c.done
}
