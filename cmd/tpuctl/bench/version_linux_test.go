package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkVersion measures what every command costs before it does anything.
// It stands by itself, with little linked in: Linux counts the memory of the
// process that starts another one as the other one's too.
func BenchmarkVersion(b *testing.B) {
	program := filepath.Join(b.TempDir(), "tpuctl")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "..") // as make build does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	const runs = 20
	var took, processor []time.Duration
	var memory []int64
	for b.Loop() {
		took, processor, memory = nil, nil, nil
		for range runs {
			began := time.Now()
			cmd := exec.Command(program, "version")
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			took = append(took, time.Since(began))
			processor = append(processor, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			memory = append(memory, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		}
	}
	slices.Sort(took)
	slices.Sort(processor)
	slices.Sort(memory)
	fmt.Printf("\n| medians of %d | ms | of the processor, ms | memory, MB |\n| --- | ---: | ---: | ---: |\n| tpuctl version | %d | %d | %.1f |\n",
		runs, took[runs/2].Milliseconds(), processor[runs/2].Milliseconds(), float64(memory[runs/2])*1024/1e6)
}
