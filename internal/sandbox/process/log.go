package process

import (
	"io"
	"os"
	"slices"
	"strings"
)

const (
	// tailLines go into an error: enough for a Go panic's message or a usage
	// error, few enough to read.
	tailLines = 12
	// linesBeforePanic of a log say what led to a panic.
	linesBeforePanic = 3
	// maxLog is where an old log is dropped rather than appended to, in bytes.
	maxLog = 32 << 20
	// tailBytes bounds how much of a log is read for its last lines.
	tailBytes = 64 << 10
	// maxLine bounds one line in an error, in bytes.
	maxLine = 600
)

func openLog(path string) (*os.File, error) {
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		mode |= os.O_TRUNC
	}
	return os.OpenFile(path, mode, 0o600)
}

// tail returns the last n lines of a file from an offset on.
func tail(path string, from int64, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from = max(from, size-tailBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	// A panic says where for pages; why is in its first line and before it.
	at := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ")
	})
	if at >= 0 {
		trace := slices.IndexFunc(lines[at:], func(l string) bool { return strings.HasPrefix(l, "goroutine ") })
		if trace >= 0 {
			lines = lines[:at+trace]
		}
		lines = lines[max(0, at-linesBeforePanic):]
		for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
			lines = lines[:len(lines)-1]
		}
	}
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		if len(l) > maxLine {
			lines[i] = l[:maxLine] + "..."
		}
	}
	return strings.Join(lines, "\n")
}
