package cli_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var benchJobs = flag.Int("cli.jobs", 0, "how many jobs BenchmarkList queues; 0 skips it")

// BenchmarkList measures tpuctl list of many queued jobs on a real control
// plane, as a process of its own, and what it transfers, beside the list of all
// Workloads as JSON, which is what kubectl get workloads -o json asks for.
func BenchmarkList(b *testing.B) {
	if *benchJobs == 0 {
		b.Skip("-cli.jobs")
	}
	w, err := world()
	if err != nil {
		b.Fatal(err)
	}
	queueJobs(b, w, *benchJobs)
	p := listenProxy(b, w)
	program := buildProgram(b)
	fmt.Printf("\n| %d queued jobs | seconds | bytes received |\n| --- | ---: | ---: |\n", *benchJobs)
	row := func(what string, took time.Duration, received int64) {
		fmt.Printf("| %s | %.2f | %d |\n", what, took.Seconds(), received)
	}
	list := func(args ...string) (took time.Duration, received int64, out string) {
		var best time.Duration
		for range 5 {
			before, began := p.received.Load(), time.Now()
			cmd := exec.Command(program, append(args, "--kube-context", "proxy", "--kubeconfig", p.kubeconfig)...)
			cmd.Env = append(os.Environ(), w.env...)
			var buffer, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &buffer, &stderr
			if err := cmd.Run(); err != nil {
				b.Fatalf("%v: %s", err, stderr.String())
			}
			if took := time.Since(began); best == 0 || took < best {
				best = took
			}
			received, out = p.received.Load()-before, buffer.String()
		}
		return best, received, out
	}
	for b.Loop() {
		took, received, out := list("list")
		if n := strings.Count(out, "\n") - 1; n != *benchJobs {
			b.Fatalf("listed %d jobs", n)
		}
		row("tpuctl list", took, received)
		b.ReportMetric(took.Seconds(), "s/list")
		b.ReportMetric(float64(received), "B/list")
		took, received, _ = list("list", "--owner", "ada")
		row("tpuctl list --owner ada (1 in 100)", took, received)
		took, received, _ = list("list", "-o", "json")
		row("tpuctl list -o json (everything)", took, received)
		began := time.Now()
		received = getWorkloads(b, w, "")
		row("GET workloads as JSON (kubectl get workloads -o json)", time.Since(began), received)
		began = time.Now()
		received = getWorkloads(b, w, "gzip")
		row("the same, compressed", time.Since(began), received)
	}
}

func buildProgram(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "tpuctl")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../cmd/tpuctl") // as make build does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return program
}

// queueJobs submits jobs of which two slices can run, and waits until Kueue
// knows them all.
func queueJobs(b *testing.B, w *worldOf, n int) {
	b.Helper()
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	var work errgroup.Group
	work.SetLimit(32)
	for i := range n {
		work.Go(func() error {
			owner := "grace"
			if i%100 == 0 {
				owner = "ada"
			}
			_, err := training.Submit(context.Background(), w.kube, training.Spec{
				Namespace: "research", Name: fmt.Sprintf("sweep-%05d", i), Queue: "research", Slice: slice, Slices: 1, Owner: owner, Experiment: "lr",
				Image: "train:1", Command: []string{"python", "train.py"}, Args: []string{fmt.Sprintf("--seed=%d", i)}, Env: map[string]string{"SEED": fmt.Sprint(i)},
				Restart: training.DefaultRestart(),
			})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		b.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Minute); ; time.Sleep(2 * time.Second) {
		lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "research"}}
		if _, err := w.kube.Fetch(context.Background(), lq); err != nil {
			b.Fatal(err)
		}
		known := int(lq.Status.PendingWorkloads + lq.Status.AdmittedWorkloads)
		if known == n {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("Kueue knows %d of %d jobs", known, n)
		}
	}
	b.Logf("queued %d jobs in %s", n, time.Since(began).Round(time.Second))
	settle(b, w)
	b.Logf("and Kueue had looked at them all after %s", time.Since(began).Round(time.Second))
}

// settle waits until the cluster does no more than stand: Kueue writes to every
// job that it looks at, and thousands of them keep the API server busy for a
// while. What is written then are leases.
func settle(b *testing.B, w *worldOf) {
	b.Helper()
	const every, leases = 2 * time.Second, 20
	revision := func() int64 {
		var nothing corev1.ConfigMapList
		if err := w.kube.List(b.Context(), &nothing, client.InNamespace("nowhere")); err != nil {
			b.Fatal(err)
		}
		n, err := strconv.ParseInt(nothing.ResourceVersion, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	for last, deadline := revision(), time.Now().Add(10*time.Minute); ; {
		time.Sleep(every)
		now := revision()
		if now-last < leases {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("the cluster still writes %d times in %s", now-last, every)
		}
		last = now
	}
}

func getWorkloads(b *testing.B, w *worldOf, encoding string) int64 {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, w.kube.Config.Host+"/apis/kueue.x-k8s.io/v1beta2/workloads", nil)
	if err != nil {
		b.Fatal(err)
	}
	if encoding == "" {
		encoding = "identity"
	}
	req.Header.Set("Accept-Encoding", encoding)
	resp, err := w.kube.HTTP.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
	return n
}

// proxy passes connections on to the API server and counts what it sends.
type proxy struct {
	kubeconfig string
	received   atomic.Int64
}

func listenProxy(b *testing.B, w *worldOf) *proxy {
	b.Helper()
	server, err := url.Parse(w.kube.Config.Host)
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	p := &proxy{kubeconfig: filepath.Join(b.TempDir(), "kubeconfig")}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server.Host)
			if err != nil {
				near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, &counted{far, &p.received}); near.Close() }()
		}
	}()
	if block, _ := pem.Decode(w.kube.Config.CAData); block == nil {
		b.Fatal("no CA")
	}
	config := clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://" + l.Addr().String(), CertificateAuthorityData: w.kube.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: w.box.Token()}},
		Contexts:  map[string]*clientcmdapi.Context{"proxy": {Cluster: "c", AuthInfo: "u"}},
	}
	if err := clientcmd.WriteToFile(config, p.kubeconfig); err != nil {
		b.Fatal(err)
	}
	return p
}

type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}
