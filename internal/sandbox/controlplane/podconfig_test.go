package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testLaunch is a launch of a container whose configuration file holds text.
func testLaunch(t *testing.T, text string, args ...string) *launch {
	t.Helper()
	dir := t.TempDir()
	cp := &ControlPlane{log: hclog.NewNullLogger(), cfg: Config{Binaries: map[string]string{"kueue": filepath.Join(dir, "kueue")}}}
	if err := os.WriteFile(cp.cfg.Binaries["kueue"], []byte("...sandbox-visibility..."), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &corev1.Container{Name: "manager", Command: []string{"/manager"}, Args: args, VolumeMounts: []corev1.VolumeMount{
		{Name: "config", MountPath: "/config.yaml", SubPath: "config.yaml"}, {Name: "cert", MountPath: "/certs"},
	}}
	run := &podRun{
		k: &kubelet{cp: cp}, dir: dir, container: c, replicas: 1,
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "kueue-system"}, Spec: corev1.PodSpec{Containers: []corev1.Container{*c}}},
	}
	v := &volumes{pod: run.pod, container: c, root: filepath.Join(dir, "root")}
	if err := replaceFile(filepath.Join(v.root, "config.yaml"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	return &launch{run: run, volumes: v, ports: map[int]int{}}
}

// configured returns the rewritten file with the loopback ports told by the pod
// ports they stand for.
func configured(t *testing.T, l *launch) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.run.dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), l.run.dir, "DIR")
	for pod, local := range l.ports {
		text = strings.ReplaceAll(text, fmt.Sprint(local), fmt.Sprintf("<%d>", pod))
	}
	return text
}

func TestConfigureRewritesPortsAndKeepsTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		binary, config, want string
		args, wantArgs       []string
		replicas             int
	}{
		"jobset with nothing set": {
			binary: "jobset",
			config: "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\nleaderElection:\n  leaderElect: true\n",
			args:   []string{"--config=/config.yaml", "--zap-log-level=2"},
			want: `apiVersion: config.jobset.x-k8s.io/v1alpha1
health:
  healthProbeBindAddress: 127.0.0.1:<8081>
internalCertManagement: {}
kind: Configuration
leaderElection:
  leaderElect: false
metrics:
  bindAddress: 127.0.0.1:<8443>
webhook:
  certDir: DIR/root/tmp/k8s-webhook-server/serving-certs
  host: 127.0.0.1
  port: <9443>
`,
			wantArgs: []string{"--zap-log-level=2", "--config=DIR/config.yaml"},
		},
		"kueue with ports of its own, two replicas": {
			binary: "kueue",
			config: `apiVersion: config.kueue.x-k8s.io/v1beta2
health: {healthProbeBindAddress: ":18081"}
metrics: {bindAddress: "0"}
webhook: {port: 10250, certDir: /certs}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
pprofBindAddress: ":8083"
integrations: {frameworks: [jobset.x-k8s.io/jobset]}
`,
			args: []string{"--config", "/config.yaml", "--feature-gates=X=true", "/certs/tls.crt"}, replicas: 2,
			want: `apiVersion: config.kueue.x-k8s.io/v1beta2
health:
  healthProbeBindAddress: 127.0.0.1:<18081>
integrations:
  frameworks:
  - jobset.x-k8s.io/jobset
leaderElection:
  leaderElect: true
  resourceName: c1f6bfd2.kueue.x-k8s.io
  resourceNamespace: kueue-system
metrics:
  bindAddress: "0"
namespace: kueue-system
visibilityServer:
  bindAddress: 127.0.0.1
  bindPort: <8082>
webhook:
  certDir: DIR/root/certs
  host: 127.0.0.1
  port: <10250>
`,
			wantArgs: []string{"--feature-gates=X=true", "DIR/root/certs/tls.crt", "--config=DIR/config.yaml"},
		},
		"flags that override the file": {
			binary: "jobset", config: "apiVersion: config.jobset.x-k8s.io/v1alpha1\ninternalCertManagement: {enable: false}\n",
			args: []string{"--config=/config.yaml", "--health-probe-bind-address=:7001", "--metrics-bind-address=0", "--leader-elect"},
			want: `apiVersion: config.jobset.x-k8s.io/v1alpha1
health:
  healthProbeBindAddress: 127.0.0.1:<7001>
internalCertManagement:
  enable: false
leaderElection:
  leaderElect: false
metrics:
  bindAddress: "0"
webhook:
  certDir: DIR/root/tmp/k8s-webhook-server/serving-certs
  host: 127.0.0.1
  port: <9443>
`,
			wantArgs: []string{"--config=DIR/config.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := testLaunch(t, c.config, c.args...)
			l.run.replicas = c.replicas
			if err := l.configure(c.binary); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, configured(t, l)); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			for i, a := range l.args {
				l.args[i] = strings.ReplaceAll(a, l.run.dir, "DIR")
			}
			if diff := cmp.Diff(c.wantArgs, l.args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if want := c.binary == "jobset" && !strings.Contains(c.config, "enable: false"); l.marker != want {
				t.Errorf("marker: %v, want %v", l.marker, want)
			}
		})
	}
}

func TestConfigureRefuses(t *testing.T) {
	for want, c := range map[string]struct{ text, arg string }{
		"has no --config argument":                {"{}", "--other"},
		"is its ConfigMap mounted":                {"{}", "--config=/elsewhere.yaml"},
		"reading /config.yaml":                    {"a: [", "--config=/config.yaml"},
		"health.healthProbeBindAddress of jobset": {"health: {healthProbeBindAddress: nonsense}", "--config=/config.yaml"},
	} {
		if err := testLaunch(t, c.text, c.arg).configure("jobset"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got: %v", want, err)
		}
	}
}

// A Kueue that was not linked for the sandbox would die on its visibility
// server.
func TestStockKueueHasNoVisibility(t *testing.T) {
	l := testLaunch(t, "{}", "--config=/config.yaml")
	if err := os.WriteFile(l.run.k.cp.cfg.Binaries["kueue"], make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.configure("kueue"); err != nil {
		t.Fatal(err)
	}
	if got := configured(t, l); !strings.Contains(got, "VisibilityOnDemand: false") {
		t.Errorf("the visibility server is on:\n%s", got)
	}
}

func TestContainsAcrossReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	for _, at := range []int{0, 1<<20 - 5, 1 << 20, 2<<20 - 20, 3<<20 - 18} {
		b := make([]byte, 3<<20)
		copy(b[at:], visibilityDir)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, err := contains(file, visibilityDir); err != nil || !ok {
			t.Errorf("at offset %d: %v, %v", at, ok, err)
		}
	}
}
