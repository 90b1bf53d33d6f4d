package gke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// GKE's time of one create in the measurements, and the client's interval.
const (
	operationTime = 20 * time.Second
	fakeCreate    = 150 * time.Second // what the fake takes at scale 1
)

// run is one slice pool created from the fake GKE API. real is what an operation
// takes on this machine; the poll interval shrinks alike.
type run struct {
	slices, quota int // quota 0 is none
	real          time.Duration
}

type measured struct {
	wall    time.Duration // real
	refused int
	calls   map[string]int
}

func (r run) String() string {
	quota := fmt.Sprint(r.quota)
	if r.quota == 0 {
		quota = "none"
	}
	return fmt.Sprintf("slices=%d/quota=%s", r.slices, quota)
}

// scaled is a real duration in GKE's time.
func (r run) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(operationTime) / float64(r.real))
}

// bound is the least time that the quota allows: ceil(N/quota) operations one
// after the other. Without a quota it is one operation.
func (r run) bound() time.Duration {
	if r.quota == 0 {
		return r.real
	}
	return time.Duration(math.Ceil(float64(r.slices)/float64(r.quota))) * r.real
}

func (r run) utilisation(m measured) float64 { return float64(r.bound()) / float64(m.wall) }

// config is a client whose clocks shrink with the fake's.
func (r run) config() Config {
	return Config{PollInterval: r.real / (operationTime / DefaultPollInterval), PerMinute: int(RequestsPerMinute * operationTime / r.real)}
}

// fake is the API for this run. It remembers few operations: to write and read
// a thousand with each look costs a machine more than all the rest.
func (r run) fake() []fakegke.Option {
	quota := r.quota
	if quota == 0 {
		quota = math.MaxInt
	}
	return []fakegke.Option{fakegke.WithToken("t0ken"), fakegke.WithTimeScale(float64(r.real) / float64(fakeCreate)),
		fakegke.WithOperationQuota(quota), fakegke.WithOperationsKept(100)}
}

func (r run) measure(tb testing.TB, fake *fakegke.Server, c *Client) measured {
	tb.Helper()
	ctx := context.Background()
	if err := c.CreateCluster(ctx, name, &containerpb.Cluster{Name: name.Cluster, InitialNodeCount: 1}, nil); err != nil {
		tb.Fatal(err)
	}
	before := fake.Calls()
	began := time.Now()
	res, err := c.ApplySlicePool(ctx, testPool(tb, "v5litepod-16", func(p *SlicePool) {
		p.Name, p.Cluster, p.Zone, p.Count = "train", name, name.Location, r.slices
	}), SlicePoolRun{})
	m := measured{wall: time.Since(began), calls: fake.Calls()}
	if err != nil || res.Slices.Ready() != r.slices {
		tb.Fatalf("%d of %d slices are ready: %v", res.Slices.Ready(), r.slices, err)
	}
	for k, n := range before {
		if m.calls[k] -= n; m.calls[k] == 0 {
			delete(m.calls, k)
		}
	}
	m.refused = m.calls["CreateNodePool"] - r.slices
	return m
}

// served measures over HTTP, by the clock of this machine.
func (r run) served(tb testing.TB) measured {
	tb.Helper()
	fake, err := fakegke.New(r.fake()...)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- fake.Serve(l) }()
	defer func() {
		if err := errors.Join(fake.Close(), <-ended); err != nil {
			tb.Error(err)
		}
	}()
	cfg := r.config()
	cfg.Endpoint, cfg.Tokens = "http://"+l.Addr().String(), static("t0ken")
	c, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return r.measure(tb, fake, c)
}

// perRequest is about what a request to GKE takes.
const perRequest = 50 * time.Millisecond

// virtual measures in virtual time, which this machine has no part in: the fake
// is called without sockets. It must be called in a bubble.
func (r run) virtual(t *testing.T) measured {
	t.Helper()
	fake, err := fakegke.New(r.fake()...)
	if err != nil {
		t.Fatal(err)
	}
	cfg := r.config()
	cfg.Tokens, cfg.Transport = static("t0ken"), inProcess{fake}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := r.measure(t, fake, c)
	time.Sleep(time.Minute) // a look that is under way ends too
	if err := fake.Close(); err != nil {
		t.Error(err)
	}
	return m
}

// inProcess is a transport to a handler.
type inProcess struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(perRequest / 2)
	in := r.Clone(r.Context())
	if in.Body == nil { // as a server has it
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, in)
	time.Sleep(perRequest / 2)
	return w.Result(), nil
}

const tableHead = "| slices | quota | bound, s | took, s | used of the bound | refused creates | API calls |\n| ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"

// row is a line of that table, in GKE's time.
func (r run) row(m measured) string {
	var calls []string
	sum := 0
	for _, k := range slices.Sorted(maps.Keys(m.calls)) {
		calls, sum = append(calls, fmt.Sprintf("%s %d", k, m.calls[k])), sum+m.calls[k]
	}
	_, quota, _ := strings.Cut(r.String(), "quota=")
	return fmt.Sprintf("| %d | %s | %.1f | %.1f | %.1f%% | %d | %d: %s |\n", r.slices, quota, r.scaled(r.bound()).Seconds(), r.scaled(m.wall).Seconds(),
		100*r.utilisation(m), m.refused, sum, strings.Join(calls, ", "))
}

// Whatever the quota, at least 95% of the time that it allows is used, and ten
// creates at most are refused. With -v it prints the table of
// docs/benchmarks.md.
func TestOperationsUseTheQuota(t *testing.T) {
	table := tableHead
	for _, r := range []run{{50, 5, operationTime}, {50, 20, operationTime}, {50, 0, operationTime}, {1000, 5, operationTime}} {
		t.Run(r.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := r.virtual(t)
				if used := r.utilisation(m); used < 0.95 || m.refused > 10 {
					t.Errorf("took %s, %.1f%% of it needed, want 95%%; %d creates were refused, want 10 at most", m.wall, 100*used, m.refused)
				}
				if looks := m.calls["ListOperations"]; looks > 1+int(m.wall/DefaultPollInterval) || m.calls["GetOperation"]+m.calls["GetNodePool"] > 0 {
					t.Errorf("calls %v", m.calls)
				}
				table += r.row(m)
			})
		})
	}
	_, _ = fmt.Fprintf(t.Output(), "In virtual time, one operation %s, one request %s:\n\n%s\n", operationTime, perRequest, table)
}

// Over real HTTP and in seconds, what is refused and asked is the same. How long
// it takes is the machine's affair.
func TestOperationsOverHTTP(t *testing.T) {
	for _, r := range []run{
		{50, 5, 150 * time.Millisecond},
		{50, 0, 600 * time.Millisecond},
	} {
		m := r.served(t)
		if m.refused > 10 {
			t.Errorf("%s: %d creates were refused", r, m.refused)
		}
		if looks := m.calls["ListOperations"]; looks > 1+int(r.scaled(m.wall)/DefaultPollInterval) || m.calls["GetOperation"]+m.calls["GetNodePool"] > 0 {
			t.Errorf("%s: calls %v", r, m.calls)
		}
	}
}

// BenchmarkOperations prints the same table by the clock of this machine; `make
// bench-operations` runs it once. The real time of an operation is as long as
// three minutes in all allow, so that what the machine itself needs for requests
// and lists weighs little.
func BenchmarkOperations(b *testing.B) {
	table := tableHead
	for _, r := range []run{
		{50, 5, 2 * time.Second},
		{50, 20, 3 * time.Second},
		{50, 0, 6 * time.Second},
		{1000, 5, 600 * time.Millisecond},
	} {
		b.Run(r.String(), func(b *testing.B) {
			for b.Loop() {
				m := r.served(b)
				b.ReportMetric(100*r.utilisation(m), "%used")
				b.ReportMetric(float64(m.refused), "refused")
				table += r.row(m)
			}
		})
	}
	fmt.Printf("\nOver HTTP by this machine's clock, scaled to operations of %s:\n\n%s\n", operationTime, table)
}
