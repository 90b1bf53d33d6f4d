package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (d *demo) summary() {
	total := time.Since(d.started)
	fmt.Fprintf(d.out, "\nEverything worked, and nothing is left.\n\n")
	if d.table {
		fmt.Fprintf(d.out, "%s, %d cores, %s memory, %s/%s, %s\n\n", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), memory(), runtime.GOOS, runtime.GOARCH, runtime.Version())
		fmt.Fprintf(d.out, "| step | seconds |\n| --- | ---: |\n")
		for _, s := range d.steps {
			fmt.Fprintf(d.out, "| %s | %.1f |\n", s.name, s.took.Seconds())
		}
		fmt.Fprintf(d.out, "| all | %.1f |\n", total.Seconds())
		return
	}
	width := 0
	for _, s := range d.steps {
		width = max(width, len(s.name))
	}
	for _, s := range d.steps {
		fmt.Fprintf(d.out, "  %-*s  %8s\n", width, s.name, seconds(s.took))
	}
	fmt.Fprintf(d.out, "  %-*s  %8s\n", width, "all", seconds(total))
}

// memory is the machine's, where the kernel says so.
func memory() string {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "unknown"
	}
	var kib int64
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			return fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
		}
	}
	return "unknown"
}
