package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The copies that are embedded must be the modules that `make manifests`, the
// tests and a reader of tools/ see.
func TestEmbeddedModulesAreThoseInTools(t *testing.T) {
	for _, m := range []module{controlPlane, olderControllers, openTofu} {
		for file, embedded := range map[string][]byte{"go.mod": m.mod, "go.sum": m.sum} {
			want, err := os.ReadFile(filepath.Join("..", "..", "..", "tools", m.name, file))
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(embedded) {
				t.Errorf("tools/%s/%s and its copy differ: run go generate ./internal/sandbox/binaries", m.name, file)
			}
		}
	}
}

func TestWhatChangesTheResultChangesTheFolder(t *testing.T) {
	base := module{name: "m", mod: []byte("a"), sum: []byte("b"), ldflags: "-s", targets: []target{{"x", "p/x"}}}
	seen := map[string]string{}
	add := func(what, folder string) {
		if other, ok := seen[folder]; ok {
			t.Errorf("%s and %s share the folder %s", what, other, folder)
		}
		seen[folder] = what
	}
	add("base", base.folder("go1", "linux", "amd64"))
	add("another Go", base.folder("go2", "linux", "amd64"))
	add("another system", base.folder("go1", "darwin", "amd64"))
	add("another architecture", base.folder("go1", "linux", "arm64"))
	for what, change := range map[string]func(*module){
		"another go.mod":      func(m *module) { m.mod = []byte("a2") },
		"another go.sum":      func(m *module) { m.sum = []byte("b2") },
		"a byte moved across": func(m *module) { m.mod, m.sum = []byte("ab"), nil },
		"other flags":         func(m *module) { m.ldflags = "-w" },
		"another program":     func(m *module) { m.targets = []target{{"y", "p/y"}} },
	} {
		m := base
		change(&m)
		add(what, m.folder("go1", "linux", "amd64"))
	}
	if same := base; same.folder("go1", "linux", "amd64") != base.folder("go1", "linux", "amd64") {
		t.Error("the same module has two folders")
	}
}

func TestTheVersionKueueParsesIsLinkedIn(t *testing.T) {
	if want := "v1.36.2"; KubernetesVersion != want {
		t.Errorf("KubernetesVersion = %s, want %s, as tools/controlplane/go.mod requires", KubernetesVersion, want)
	}
}

// A sandbox picks these programs by the tag of a pod's image, so the tag must
// be the version that is built.
func TestOlderImagesAreWhatIsBuilt(t *testing.T) {
	for name, tag := range OlderImages {
		if line := "\tsigs.k8s.io/" + name + " " + tag; !strings.Contains(string(olderControllersMod), line) {
			t.Errorf("tools/controllers-older/go.mod does not require %s %s", name, tag)
		}
	}
}
