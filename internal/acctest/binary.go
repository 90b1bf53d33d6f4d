package acctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

var built struct {
	once sync.Once
	path string
	err  error
}

// ProviderBinary builds the provider once for the whole test binary. What
// kills or interrupts a provider needs a process of its own.
func ProviderBinary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "tpu-provider-")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "terraform-provider-tpu")
		cmd := exec.Command("go", "build", "-o", built.path, "github.com/tpu-training/terraform-provider-tpu")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("%s", out)
			built.err = err
		}
	})
	if built.err != nil {
		t.Fatalf("building the provider: %v", built.err)
	}
	return built.path
}

// removeBinary removes what ProviderBinary built.
func removeBinary() {
	if built.path != "" {
		_ = os.RemoveAll(filepath.Dir(built.path))
	}
}

// Workspace is a working directory of the real command line with the built
// provider, pointed at the shared sandbox under a project of the test's own.
func Workspace(t testing.TB, module, project string) *tfrun.Dir {
	t.Helper()
	cli := tfrun.FindCLI()
	if cli == "" {
		t.Fatal("neither terraform nor tofu is on PATH: run `bin/tpuctl sandbox build --opentofu` and set TF_ACC_TERRAFORM_PATH to what `--opentofu -o name` prints")
	}
	d, err := tfrun.New(filepath.Join(t.TempDir(), "module"), module, cli, ProviderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	d.Env = append(Sandbox(t).Env(), "GOOGLE_PROJECT="+project, "TF_VAR_project="+project)
	if _, err := d.Output(t.Context(), "init", "-no-color"); err != nil {
		t.Fatal(err)
	}
	return d
}
