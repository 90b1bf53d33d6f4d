package cli_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
)

// submissions is how many each figure of BenchmarkSubmit is the median of.
const submissions = 20

// BenchmarkSubmit measures the own time of tpuctl submit, as a process of its
// own against the sandbox: the time from its start to its end less the time in
// which at least one of its requests was with a server.
func BenchmarkSubmit(b *testing.B) {
	w, err := world()
	if err != nil {
		b.Fatal(err)
	}
	program, s := buildProgram(b), serveTimed(b, w)
	fmt.Printf("\n| medians of %d, ms | all | servers | own | of the processor |\n| --- | ---: | ---: | ---: | ---: |\n", submissions)
	var own time.Duration
	for b.Loop() {
		for i, run := range []struct {
			what  string
			args  []string
			tells string // on standard error
		}{
			{what: "tpuctl submit --skip-preflight", args: []string{"--image", s.image, "--skip-preflight"}},
			{what: "tpuctl submit", args: []string{"--image", s.image}},
			{what: "tpuctl submit --kube-context", args: []string{"--image", s.image, "--kube-context", "timed", "--kubeconfig", s.kubeconfig}},
			{what: "tpuctl submit, of an image whose registry does not answer", args: []string{"--image", s.silent}, tells: "? image        " + s.silent + ": whether it is there is not known: no answer in time\n"},
		} {
			var all, servers, rest, processor []time.Duration
			for n := range submissions {
				s.times.reset()
				began := time.Now()
				cmd := exec.Command(program, append([]string{"submit", fmt.Sprintf("bench-%d-%d", i, n), "-n", "research", "--accelerator", "v5litepod-16"}, append(run.args, "--", "python", "train.py")...)...)
				cmd.Env = append(append(os.Environ(), w.env...), target.EndpointVariable+"="+s.gke, "HOME="+b.TempDir())
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Run(); err != nil || stderr.String() != run.tells {
					b.Fatalf("%s: %v: %s", run.what, err, stderr.String())
				}
				took, with := time.Since(began), s.times.spent()
				all, servers, rest = append(all, took), append(servers, with), append(rest, took-with)
				processor = append(processor, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			fmt.Printf("| %s | %s | %s | %s | %s |\n", run.what, median(all), median(servers), median(rest), median(processor))
			if i == 1 {
				slices.Sort(rest)
				own = rest[len(rest)/2]
			}
		}
	}
	b.ReportMetric(float64(own.Microseconds())/1e3, "own-ms/submit")
}

func median(of []time.Duration) string {
	slices.Sort(of)
	return strconv.FormatInt(of[len(of)/2].Milliseconds(), 10)
}

// timed are the servers that a submission asks, each behind what times them.
type timed struct {
	times         busy
	gke           string // the Container API's address
	kubeconfig    string // context "timed" leads to the cluster
	image, silent string // one that is there; one whose registry does not answer
}

func serveTimed(b *testing.B, w *worldOf) *timed {
	b.Helper()
	s := &timed{}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	start := func(h http.Handler, secure bool) *httptest.Server {
		server := httptest.NewUnstartedServer(s.times.time(h))
		server.EnableHTTP2 = true
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		b.Cleanup(server.Close)
		return server
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.kube.Config.CAData)
	apiServer, err := url.Parse(w.kube.Config.Host)
	check(err)
	cluster := httputil.NewSingleHostReverseProxy(apiServer)
	cluster.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	near := start(cluster, true)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: near.Certificate().Raw})
	s.kubeconfig = filepath.Join(b.TempDir(), "kubeconfig")
	check(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: near.URL, CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: w.box.Token()}},
		Contexts:  map[string]*clientcmdapi.Context{"timed": {Cluster: "c", AuthInfo: "u"}},
	}, s.kubeconfig))

	// What GKE says of the cluster leads to the timed way to it.
	endpoint, err := url.Parse(w.box.Endpoint())
	check(err)
	container := httputil.NewSingleHostReverseProxy(endpoint)
	led := strings.NewReplacer(apiServer.Host, strings.TrimPrefix(near.URL, "https://"),
		base64.StdEncoding.EncodeToString(w.kube.Config.CAData), base64.StdEncoding.EncodeToString(ca))
	container.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		text := led.Replace(string(body))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	}
	s.gke = start(plain(container), false).URL

	images := start(registry.New(registry.Logger(log.New(io.Discard, "", 0))), false)
	s.image = strings.TrimPrefix(images.URL, "http://") + "/team/train:1"
	ref, err := name.ParseReference(s.image)
	check(err)
	check(remote.Write(ref, empty.Image, remote.WithContext(b.Context())))
	over := make(chan struct{})
	silent := start(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}), false)
	b.Cleanup(func() { close(over) }) // before its server is closed
	s.silent = strings.TrimPrefix(silent.URL, "http://") + "/team/train:1"
	return s
}

// plain asks for answers that can be read.
func plain(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		h.ServeHTTP(w, r)
	})
}

// busy is the time in which at least one request is under way.
type busy struct {
	mu    sync.Mutex
	now   int
	since time.Time
	sum   time.Duration
}

func (b *busy) time(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.add(1)
		defer b.add(-1)
		h.ServeHTTP(w, r)
	})
}

func (b *busy) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.now += n; {
	case n > 0 && b.now == 1:
		b.since = time.Now()
	case b.now == 0:
		b.sum += time.Since(b.since)
	}
}

func (b *busy) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum, b.since = 0, time.Now()
}

// spent is the sum, of what is still under way until now.
func (b *busy) spent() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now > 0 {
		return b.sum + time.Since(b.since)
	}
	return b.sum
}
