package internal_test

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/tpu-training/terraform-provider-tpu"

// The rules of the house: which package may know which. A pattern is a path
// inside the module; a trailing /... takes everything below it. A foreign
// import is named by its full path.
var (
	middle = []string{
		"internal/gke/...", "internal/compute/...", "internal/kube/...", "internal/controllers/...",
		"internal/queue/...", "internal/training/...", "internal/jobfile/...", "internal/preflight/...", "internal/explain/...", "internal/image/...",
	}
	faces      = []string{"internal/provider/...", "internal/cli/..."}
	harness    = []string{"internal/fakegke/...", "internal/sandbox/...", "internal/acctest/...", "internal/demo/...", "internal/tfrun/...", "internal/faults/...", "internal/chaos/..."}
	terraform  = []string{"github.com/hashicorp/terraform-plugin-framework/...", "github.com/hashicorp/terraform-plugin-go/..."}
	cobra      = []string{"github.com/spf13/cobra/..."}
	everything = []string{"internal/..."}
)

type rule struct {
	name   string
	from   []string
	never  [][]string
	except []string // imports that are allowed all the same
	exempt []string // packages for which it does not hold
	deep   bool     // look through the whole tree of imports, not only the direct ones
}

var rules = []rule{
	{
		name:  "accelerator knows nobody and does no I/O",
		from:  []string{"internal/accelerator/..."},
		never: [][]string{everything, {"os", "net", "net/http", "io/fs"}},
	},
	{
		name:  "the middle packages know Kubernetes and GKE, never Terraform, cobra or the faces",
		from:  middle,
		never: [][]string{terraform, cobra, faces, harness},
	},
	{
		name:  "kube reaches any cluster and does not know GKE",
		from:  []string{"internal/kube/..."},
		never: [][]string{{"internal/gke/..."}},
		deep:  true,
	},
	{
		name:  "the provider does not know the command line",
		from:  []string{"internal/provider/..."},
		never: [][]string{{"internal/cli/..."}, cobra},
	},
	{
		name:  "the command line does not know the provider or Terraform",
		from:  []string{"cmd/tpuctl", "internal/cli/..."},
		never: [][]string{{"internal/provider/..."}, terraform},
		deep:  true,
	},
	{
		name:   "the command line calls no other program, the sandbox's commands apart",
		from:   []string{"cmd/tpuctl", "internal/cli/..."},
		never:  [][]string{{"os/exec"}},
		exempt: []string{"internal/cli/sandboxcmd"},
	},
	{
		name:  "the provider binary ships no sandbox, fake or test harness",
		from:  []string{""},
		never: [][]string{harness},
		deep:  true,
	},
	{
		name:   "a resource's package knows no other resource's",
		from:   []string{"internal/provider/*"},
		never:  [][]string{{"internal/provider/..."}},
		except: []string{"internal/provider/conn", "internal/provider/attr", "internal/provider/private", "internal/provider/kubeobject"},
	},
	{
		name:  "the fake is written against Google's API, not against our client of it",
		from:  []string{"internal/fakegke/..."},
		never: [][]string{{"internal/gke/...", "internal/compute/..."}, faces},
	},
}

func TestImportsPointTheRightWay(t *testing.T) {
	pkgs := load(t)
	if len(pkgs) < 10 {
		t.Fatalf("loaded only %d packages: the rules would hold of nothing", len(pkgs))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, p := range pkgs {
				if !matchesAny(p.PkgPath, r.from) || matchesAny(p.PkgPath, r.exempt) {
					continue
				}
				for path := range imports(p, r.deep) {
					for _, bad := range r.never {
						if path != p.PkgPath && matchesAny(path, bad) && !matchesAny(path, r.except) {
							t.Errorf("%s imports %s", p.PkgPath, path)
						}
					}
				}
			}
		})
	}
}

func TestRulesCatchAWrongArrow(t *testing.T) {
	for _, c := range []struct {
		path, pattern string
		want          bool
	}{
		{module, "", true},
		{module + "/internal/gke", "internal/gke/...", true},
		{module + "/internal/gkeother", "internal/gke/...", false},
		{module + "/internal/provider/cluster", "internal/provider/*", true},
		{module + "/internal/provider", "internal/provider/*", false},
		{module + "/internal/provider/a/b", "internal/provider/*", false},
		{"net/http", "net/http", true},
		{"net/http/httptest", "net/http", false},
		{"github.com/spf13/cobra", "github.com/spf13/cobra/...", true},
	} {
		if got := matches(c.path, c.pattern); got != c.want {
			t.Errorf("matches(%q, %q) = %v, want %v", c.path, c.pattern, got, c.want)
		}
	}
}

func load(t *testing.T) []*packages.Package {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps,
		Dir:  "..",
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, e)
		}
	}
	return pkgs
}

// imports returns what p imports, directly or (deep) through others.
func imports(p *packages.Package, deep bool) map[string]bool {
	seen := map[string]bool{}
	var walk func(*packages.Package)
	walk = func(p *packages.Package) {
		for path, dep := range p.Imports {
			if !seen[path] {
				seen[path] = true
				if deep {
					walk(dep)
				}
			}
		}
	}
	walk(p)
	return seen
}

func matchesAny(path string, patterns []string) bool {
	for _, p := range patterns {
		if matches(path, p) {
			return true
		}
	}
	return false
}

func matches(path, pattern string) bool {
	if pattern == "" {
		return path == module
	}
	if strings.HasPrefix(pattern, "internal/") || strings.HasPrefix(pattern, "cmd/") {
		pattern = module + "/" + pattern
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	if base, ok := strings.CutSuffix(pattern, "/*"); ok {
		rest, ok := strings.CutPrefix(path, base+"/")
		return ok && !strings.Contains(rest, "/")
	}
	return path == pattern
}
