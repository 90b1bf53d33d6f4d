package jobs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/exit"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/version"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// isTpuctl makes the test binary tpuctl.
const isTpuctl = "JOBS_TEST_IS_TPUCTL"

func init() {
	if os.Getenv(isTpuctl) == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := cli.Main(ctx, os.Args[1:], term.System(), version.Build{Version: "test"})
	stop()
	os.Exit(code)
}

// gate is an API server that does something to its caller at one of its calls.
type gate struct {
	server *httptest.Server
	behind http.Handler

	mu     sync.Mutex
	calls  int
	at     int  // the call at which to strike; 0 is none
	after  bool // once the call has had its effect
	strike func() (lives bool)
}

func newGate(t *testing.T, at string) *gate {
	t.Helper()
	to, err := url.Parse("https://" + at)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the server of this test
	g := &gate{behind: proxy}
	g.server = httptest.NewTLSServer(g)
	t.Cleanup(g.server.Close)
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.calls++
	struck := g.calls == g.at
	after, strike := g.after, g.strike
	g.mu.Unlock()
	if !struck {
		g.behind.ServeHTTP(w, r)
		return
	}
	// The server notices that its caller is gone only once it has read the body.
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	serve := func() { g.behind.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context()))) }
	if after {
		serve()
	}
	if strike() { // it lives, and may hear the answer
		if !after {
			serve()
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return
	}
	<-r.Context().Done() // until the caller is gone
	panic(http.ErrAbortHandler)
}

// set begins to count anew.
func (g *gate) set(at int, after bool, strike func() bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls, g.at, g.after, g.strike = 0, at, after, strike
}

func (g *gate) counted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// harness submits one job with a file to an API server behind a gate.
type harness struct {
	*gate
	k    *kube.Client
	base []string // arguments of every submission
	args []string
	env  []string
}

func (h *harness) with(args ...string) []string { return append(slices.Clip(h.base), args...) }

func newHarness(t *testing.T) *harness {
	t.Helper()
	g := acctest.NewGKE(t)
	in := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &corev1.Namespace{}, &corev1.ConfigMap{ObjectMeta: in}, &corev1.Pod{ObjectMeta: in}, &batchv1.Job{ObjectMeta: in},
		&jobset.JobSet{ObjectMeta: in}, &kueue.Workload{ObjectMeta: in}, &kueue.LocalQueue{ObjectMeta: in})
	at, err := g.Cluster.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{gate: newGate(t, at.Host), k: g.Cluster.Client(t)}
	if err := h.k.Create(t.Context(), &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "q"}}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: h.server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})}
	config.AuthInfos["ada"] = &clientcmdapi.AuthInfo{}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "ada"}
	kubeconfig, settings := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "lr.yaml")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("lr: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.base = []string{"submit", "train", "-n", "research", "--accelerator", "v5litepod-16", "--kube-context", "c", "--kubeconfig", kubeconfig, "--skip-preflight"}
	h.args = h.with("--queue", "q", "--image", "train:1", "--file", settings+"=/etc/lr.yaml")
	h.env = []string{isTpuctl + "=1", "HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_CACHE_HOME=" + dir}
	return h
}

// submit runs tpuctl, and does something to it at a call.
func (h *harness) submit(t *testing.T, at int, after bool, do func(*os.Process) (lives bool)) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], h.args...) //nolint:gosec // this very binary
	cmd.Env = h.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	h.set(at, after, func() bool { return do(cmd.Process) })
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// there are the jobs and their files, as "jobs/files".
func (h *harness) there(t *testing.T) string {
	t.Helper()
	var sets jobset.JobSetList
	var files corev1.ConfigMapList
	if err := errors.Join(h.k.List(t.Context(), &sets), h.k.List(t.Context(), &files)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d/%d", len(sets.Items), len(files.Items))
}

func (h *harness) clear(t *testing.T) {
	t.Helper()
	if err := errors.Join(h.k.DeleteAllOf(t.Context(), &jobset.JobSet{}, client.InNamespace("research")),
		h.k.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("research"))); err != nil {
		t.Fatal(err)
	}
}

// A submission that is killed at any of its calls, before or after the call has
// had its effect, has made the job once or not at all; submitting again says
// which, and completes it.
func TestKilledSubmission(t *testing.T) {
	h := newHarness(t)
	if code, said := h.submit(t, 0, false, nil); code != 0 || h.there(t) != "1/1" {
		t.Fatalf("undisturbed: %d, %s\n%s", code, h.there(t), said)
	}
	calls := h.counted()
	if calls < 3 {
		t.Fatalf("only %d calls", calls)
	}
	for at := 1; at <= calls; at++ {
		for _, after := range []bool{false, true} {
			h.clear(t)
			code, said := h.submit(t, at, after, func(p *os.Process) bool { return p.Kill() != nil })
			was := h.there(t)
			if code != -1 || said != "" || was != "0/0" && was != "1/0" && was != "1/1" {
				t.Errorf("killed at call %d (after %t): exit code %d, %s there\n%s", at, after, code, was, said)
			}
			want := "Submitted research/train: "
			if was != "0/0" {
				want = "Unchanged: there is already research/train: "
			}
			if code, said := h.submit(t, 0, false, nil); code != 0 || !strings.HasPrefix(said, want) || h.there(t) != "1/1" {
				t.Errorf("again after a kill at call %d (after %t) with %s there: exit code %d, %s there, want %q\n%s", at, after, was, code, h.there(t), want, said)
			}
		}
	}
}

// The same where the queue is looked for, and where another job has the name: it
// is there as it was or gone, as was asked, and never half.
func TestKilledSubmissionBesideAnother(t *testing.T) {
	h := newHarness(t)
	other := h.with("--queue", "q", "--image", "other:1")
	for _, c := range []struct {
		name  string
		args  []string
		other bool
		// What may be there after a kill, and what is once it was submitted again.
		killed []string
		again  map[string]string // by what was there
	}{
		{"its queue is looked for", h.with("--image", "train:1"), false,
			[]string{"", "train of train:1"},
			map[string]string{"": "train of train:1", "train of train:1": "train of train:1"}},
		{"--replace", h.with("--queue", "q", "--image", "train:1", "--replace"), true,
			[]string{"train of other:1", "", "train of train:1"},
			map[string]string{"train of other:1": "train of train:1", "": "train of train:1", "train of train:1": "train of train:1"}},
		{"--suffix", h.with("--queue", "q", "--image", "train:1", "--suffix"), true,
			[]string{"train of other:1", "train of other:1, train-2 of train:1"},
			map[string]string{"train of other:1": "train of other:1, train-2 of train:1",
				"train of other:1, train-2 of train:1": "train of other:1, train-2 of train:1, train-3 of train:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := func() {
				h.clear(t)
				if !c.other {
					return
				}
				h.args = other
				if code, said := h.submit(t, 0, false, nil); code != 0 {
					t.Fatalf("the other job: %d\n%s", code, said)
				}
			}
			begin()
			h.args = c.args
			if code, said := h.submit(t, 0, false, nil); code != 0 {
				t.Fatalf("undisturbed: %d\n%s", code, said)
			}
			seen := map[string]bool{}
			for at, calls := 1, h.counted(); at <= calls; at++ {
				for _, after := range []bool{false, true} {
					begin()
					h.args = c.args
					if code, said := h.submit(t, at, after, func(p *os.Process) bool { return p.Kill() != nil }); code != -1 && code != 0 {
						t.Errorf("killed at call %d (after %t): exit code %d\n%s", at, after, code, said)
					}
					was := h.jobs(t)
					seen[was] = true
					if !slices.Contains(c.killed, was) {
						t.Errorf("killed at call %d (after %t): there is %q", at, after, was)
						continue
					}
					code, said := h.submit(t, 0, false, nil)
					if got := h.jobs(t); code != 0 || got != c.again[was] {
						t.Errorf("again after a kill at call %d (after %t) with %q there: exit code %d, now %q\n%s", at, after, was, code, got, said)
					}
				}
			}
			if len(seen) != len(c.killed) {
				t.Errorf("kills left only %v", slices.Sorted(maps.Keys(seen)))
			}
		})
	}
}

// jobs are the jobs that there are, and of which image.
func (h *harness) jobs(t *testing.T) string {
	t.Helper()
	var sets jobset.JobSetList
	if err := h.k.List(t.Context(), &sets); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range sets.Items {
		pod := sets.Items[i].Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
		all = append(all, sets.Items[i].Name+" of "+pod.Containers[0].Image)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// One that is interrupted says itself which.
func TestInterruptedAtEveryCall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can be interrupted by another one")
	}
	h := newHarness(t)
	if code, said := h.submit(t, 0, false, nil); code != 0 {
		t.Fatalf("undisturbed: %d\n%s", code, said)
	}
	calls := h.counted()
	for at := 1; at <= calls; at++ {
		for _, after := range []bool{false, true} {
			h.clear(t)
			code, said := h.submit(t, at, after, func(p *os.Process) bool { return p.Signal(os.Interrupt) == nil })
			there := h.there(t)
			switch {
			case code == 0 && there == "1/1" && strings.HasPrefix(said, "Submitted research/train: "): // it was quicker
			case code == exit.Interrupted && there == "0/0" && said == "tpuctl: interrupted: no job research/train was created\n":
			case code == exit.Interrupted && there != "0/0" && strings.Contains(said, "job research/train was created ("):
			default:
				t.Errorf("interrupted at call %d (after %t): exit code %d, %s there\n%s", at, after, code, there, said)
			}
		}
	}
}
