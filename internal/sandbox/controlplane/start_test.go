package controlplane

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/process"
)

func setNodes(t *testing.T, cp *ControlPlane, pool string, nodes []*corev1.Node) {
	t.Helper()
	began := time.Now()
	if err := cp.Nodes(t.Context(), pool, nodes); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes of %s are ready after %s", len(nodes), pool, time.Since(began).Round(time.Millisecond))
}

func names(t *testing.T, cp *ControlPlane) []string {
	t.Helper()
	list, err := cp.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Labels[poolLabel]+"/"+n.Name)
	}
	return out
}

// A pool's nodes become exactly those asked for, whatever was there before, and
// other pools stay. A cluster continues after a stop, on another port.
func TestNodesAndRestart(t *testing.T) {
	dir := t.TempDir()
	cp := start(t, dir)
	a, b := tpuHosts("a"), tpuHosts("b")
	setNodes(t, cp, "a", a)
	setNodes(t, cp, "b", b)
	a[1].Labels["changed"] = "yes"
	setNodes(t, cp, "a", a[1:3])
	setNodes(t, cp, "b", b)
	want := []string{"a/a-1", "a/a-2", "b/b-0", "b/b-1", "b/b-2", "b/b-3"}
	if diff := cmp.Diff(want, names(t, cp)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	n, err := cp.client.CoreV1().Nodes().Get(t.Context(), "a-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Labels["changed"] != "yes" || n.Status.Allocatable["google.com/tpu"] != *mustQuantity("4") || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "google.com/tpu" {
		t.Errorf("node a-1 has labels %v, taints %v, allocatable %v", n.Labels, n.Spec.Taints, n.Status.Allocatable)
	}
	setNodes(t, cp, "b", nil)
	want = want[:2]

	before, ca := cp.Endpoint(), cp.CA()
	began := time.Now()
	if err := cp.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
	if left := process.List(dir); len(left) > 0 {
		t.Fatalf("still running: %v", left)
	}
	cp = start(t, dir)
	if cp.Endpoint() == before || !bytes.Equal(cp.CA(), ca) {
		t.Errorf("after a restart: endpoint %s (before %s), same authority %v", cp.Endpoint(), before, bytes.Equal(cp.CA(), ca))
	}
	if diff := cmp.Diff(want, names(t, cp)); diff != "" {
		t.Errorf("nodes after a restart (-want +got):\n%s", diff)
	}
	disruptHosts(t, cp)
	onlyOurs(t, dir)
}

// onlyOurs checks that nobody else can read what the cluster wrote.
func onlyOurs(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir || strings.Contains(path, "/etcd/") {
			return err // etcd's folder is closed at its door
		}
		fi, err := d.Info()
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOnlyTheTokenOpensTheDoor(t *testing.T) {
	t.Parallel()
	cp := start(t, t.TempDir())
	for token, want := range map[string]bool{testToken: true, "another": false, "": false} {
		cfg := cp.RESTConfig()
		cfg.BearerToken = token
		err := probeConfig(t.Context(), cfg)
		if (err == nil) != want {
			t.Errorf("with token %q: %v", token, err)
		}
	}
}

// Two sandboxes on one machine share nothing.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	one, two := start(t, t.TempDir()), start(t, t.TempDir())
	setNodes(t, one, "pool", tpuHosts("one"))
	setNodes(t, two, "pool", tpuHosts("two")[:1])
	if n, m := len(names(t, one)), len(names(t, two)); n != 4 || m != 1 {
		t.Errorf("%d and %d nodes, want 4 and 1", n, m)
	}
	if bytes.Equal(one.CA(), two.CA()) {
		t.Error("both have the same certificate authority")
	}
	// A folder in use is refused, and its cluster is left alone.
	_, err := Start(t.Context(), testConfig(t, one.cfg.Dir))
	if err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("a second start in the same folder: %v", err)
	}
	if n := len(names(t, one)); n != 4 {
		t.Errorf("%d nodes after that, want 4", n)
	}
}

// A part that fails is named, with its own last lines, and nothing stays.
func TestStartNamesThePartThatFailed(t *testing.T) {
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cfg := testConfig(t, dir)
			cfg.Binaries[part] = filepath.Join(t.TempDir(), "broken")
			script := "#!/bin/sh\necho starting " + part + "\necho 'Error: out of luck' >&2\nexit 3\n"
			if err := os.WriteFile(cfg.Binaries[part], []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := Start(t.Context(), cfg)
			if err == nil {
				t.Fatal("it started")
			}
			for _, want := range []string{"starting control plane " + t.Name(), part + " ended with exit status 3", filepath.Join(dir, "logs", part+".log"), "Error: out of luck"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
			if left := process.List(dir); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no path given for the binary etcd": func(c *Config) { delete(c.Binaries, "etcd") },
		"token must be given":               func(c *Config) { c.Token = "" },
		"free of commas":                    func(c *Config) { c.Token = "a,b,c,\"system:masters\"" },
		"not a directory":                   func(c *Config) { c.Dir = filepath.Join(c.Binaries["etcd"], "x") },
	} {
		cfg := testConfig(t, t.TempDir())
		change(&cfg)
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q in the error, got: %v", name, err)
		}
	}
}

// A port that another program takes between our look and the start of a part
// is replaced; when all are taken, the error says so.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // after the parallel subtests
	for name, c := range map[string]struct {
		nth     int // of three in each try: kube-apiserver, etcd, etcd's peers
		every   bool
		refused string
	}{
		"kube-apiserver once": {nth: 0}, "etcd once": {nth: 1},
		"etcd always": {nth: 1, every: true, refused: "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, calls := testConfig(t, t.TempDir()), 0
			cfg.freePort = func() (int, error) {
				calls++
				if calls-1 == c.nth || c.every && (calls-1)%3 == c.nth {
					return l.Addr().(*net.TCPAddr).Port, nil
				}
				return process.FreePort()
			}
			cp, err := Start(t.Context(), cfg)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("want %q in the error, got %v", c.refused, err)
				}
				if calls != 3*portTries || len(process.List(cfg.Dir)) > 0 {
					t.Errorf("%d ports asked for; still running: %v", calls, process.List(cfg.Dir))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := cp.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ctrl-C during the start leaves nothing.
func TestStartCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	if _, err := Start(ctx, testConfig(t, dir)); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("a start that was called off: %v", err)
	}
	if left := process.List(dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// A killed sandbox leaves no process, and its cluster continues in the next.
func TestKilledParent(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(exe)
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, _ := out.Read(line)
	if got := strings.TrimSpace(string(line[:n])); got != "started <nil>" {
		t.Fatalf("the parent says %q", got)
	}
	if n := len(process.List(dir)); n != 5 {
		t.Errorf("%d processes, want 5", n)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if err := process.CleanUp(dir); err != nil {
		t.Fatal(err)
	}
	if left := process.List(dir); len(left) > 0 {
		t.Fatalf("still running: %v", left)
	}
	setNodes(t, start(t, dir), "pool", tpuHosts("host"))
}

// A part that dies later is started again; its cluster goes on.
func TestAPartThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cp := start(t, dir)
	for _, p := range process.List(dir) {
		if p.Name == "kwok" || p.Name == "etcd" {
			proc, err := os.FindProcess(p.Pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := proc.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, time.Minute, "all parts run again", func() error {
		if n := len(process.List(dir)); n != 5 {
			return errNotYet
		}
		return nil
	})
	eventually(t, time.Minute, "nodes become ready", func() error { return cp.Nodes(t.Context(), "pool", tpuHosts("host")) })
}
