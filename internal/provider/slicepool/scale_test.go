//go:build unix

package slicepool_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// The command line starts the provider, several times per command. To know
// what the provider alone uses, this test binary stands in for it: it runs the
// real one and appends what it used to a file.
const (
	providerVar = "TPU_SCALE_PROVIDER" // path of the real provider
	usageVar    = "TPU_SCALE_USAGE"    // file
)

// usage of the provider's processes of one command.
type usage struct {
	CPU time.Duration // user and system, all processes together
	RSS int64         // bytes, of the largest
}

func init() {
	if os.Getenv(usageVar) == "" {
		return
	}
	cmd := exec.Command(os.Getenv(providerVar), os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		line, _ := json.Marshal(usage{CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), RSS: r.Maxrss * rssUnit})
		if f, err := os.OpenFile(os.Getenv(usageVar), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.Write(append(line, '\n'))
			_ = f.Close()
		}
	}
	os.Exit(max(0, tfrun.ExitCode(err)))
}

// rssUnit is Linux's: getrusage counts in KiB there.
const rssUnit = 1024

// measured is one plan of a configuration that is up to date.
type measured struct {
	usage
	Wall  time.Duration
	State int64 // bytes of the state file
	Calls map[string]int
}

// scale applies a configuration of slice pools and measures plans of it, of
// which it returns the one with the least CPU.
func scale(t testing.TB, resources string, plans int) measured {
	t.Helper()
	g := acctest.NewGKE(t, fakegke.WithTimeScale(0), fakegke.WithOperationQuota(1000))
	cli := tfrun.FindCLI()
	if cli == "" {
		t.Fatal("neither terraform nor tofu is on PATH")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d, err := tfrun.New(filepath.Join(dir, "module"), "", cli, self)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "usage")
	d.Env = []string{providerVar + "=" + acctest.ProviderBinary(t), usageVar + "=" + file}
	config := strings.Replace(g.Config("scale", clusterHCL+resources), "poll_interval", "max_concurrent_operations = 1000\n  poll_interval", 1)
	if err := d.Write("main.tf", terraformBlock+config); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-no-color"}, {"apply", "-auto-approve", "-no-color"}} {
		if _, err := d.Output(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	var best measured
	for i := range plans {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		before, began := g.Calls(), time.Now()
		if out, err := d.Output(t.Context(), "plan", "-detailed-exitcode", "-no-color"); err != nil {
			t.Fatalf("the plan is not empty: %v\n%s", err, out)
		}
		m := measured{Wall: time.Since(began), Calls: map[string]int{}, usage: used(t, file)}
		for method, n := range g.Calls() {
			if n -= before[method]; n > 0 {
				m.Calls[method] = n
			}
		}
		if i == 0 || m.CPU < best.CPU {
			best = m
		}
	}
	state, err := os.Stat(filepath.Join(d.Path, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	best.State = state.Size()
	return best
}

func used(t testing.TB, file string) (sum usage) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var u usage
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			t.Fatal(err)
		}
		sum.CPU, sum.RSS = sum.CPU+u.CPU, max(sum.RSS, u.RSS)
	}
	return sum
}

func onePool(n int) string {
	return fmt.Sprintf(`
resource "tpu_slice_pool" "v5e" {
  cluster     = tpu_training_cluster.main.id
  name        = "v5e"
  accelerator = "v5litepod-16"
  slice_count = %d
}
`, n)
}

func manyPools(n int) string {
	return fmt.Sprintf(`
resource "tpu_slice_pool" "v5e" {
  count       = %d
  cluster     = tpu_training_cluster.main.id
  name        = "v5e-${count.index}"
  accelerator = "v5litepod-16"
}
`, n)
}

// A plan lists node pools once, however many slices and slice pools there are,
// and a slice takes little of the state.
func TestPlanAtScale(t *testing.T) {
	t.Parallel()
	want := map[string]int{"GetCluster": 1, "ListNodePools": 1}
	const perSlice, rest = 160, 8000 // bytes
	for name, c := range map[string]struct {
		resources string
		state     int64
	}{
		"one pool of 60 slices": {onePool(60), 60*perSlice + rest},
		"20 pools of one slice": {manyPools(20), 20*3000 + rest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := scale(t, c.resources, 1)
			if !maps.Equal(m.Calls, want) {
				t.Errorf("a plan calls %v, want %v", m.Calls, want)
			}
			if m.State > c.state {
				t.Errorf("the state has %d bytes, want at most %d", m.State, c.state)
			}
		})
	}
}

// BenchmarkPlanAtScale prints a table for docs/benchmarks.md. What a pool's
// slices cost is the difference to a plan without pools.
func BenchmarkPlanAtScale(b *testing.B) {
	fmt.Println("| configuration | wall, s | CPU of the provider, s | of that for the pools, s | memory, MiB | state, kB | API calls |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
	none := time.Duration(0)
	for _, c := range []struct{ name, resources string }{
		{"a cluster alone", ""},
		{"one pool of 400 slices", onePool(400)},
		{"400 pools of one slice", manyPools(400)},
	} {
		m := scale(b, c.resources, 5)
		if c.resources == "" {
			none = m.CPU
		}
		var calls []string
		for _, method := range slices.Sorted(maps.Keys(m.Calls)) {
			calls = append(calls, fmt.Sprintf("%d %s", m.Calls[method], method))
		}
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %d | %.1f | %s |\n", c.name, m.Wall.Seconds(), m.CPU.Seconds(), (m.CPU - none).Seconds(), m.RSS>>20, float64(m.State)/1000, strings.Join(calls, ", "))
	}
}
