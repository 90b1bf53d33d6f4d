package gke

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// cloud is the part of GKE that operations see, as a transport: without
// sockets, so that it runs in a bubble's virtual time.
type cloud struct {
	quota   int  // 0 is none
	silent  bool // refusals do not name it
	took    time.Duration
	latency time.Duration
	// script answers a request instead, if it returns anything.
	script func(method, path string) *http.Response

	mu       sync.Mutex
	ops      []*containerpb.Operation
	ends     map[string]time.Time
	unlisted map[string]bool
	calls    map[string]int // by method and last collection, "POST nodePools"
	listed   []time.Time
	started  []string // targets, in order
	refused  int
	most     int // operations at once
}

func newCloud(quota int) *cloud {
	return &cloud{quota: quota, took: 20 * time.Second, latency: 50 * time.Millisecond,
		ends: map[string]time.Time{}, unlisted: map[string]bool{}, calls: map[string]int{}}
}

// client must be called in the bubble.
func (g *cloud) client(t *testing.T, edit func(*Config)) *Client {
	t.Helper()
	cfg := Config{Tokens: static("t0ken"), Transport: g}
	if edit != nil {
		edit(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// A look that is under way when the test is done ends too: time stands still
	// once the bubble's first goroutine has left.
	t.Cleanup(func() { time.Sleep(time.Minute) })
	return c
}

// RoundTrip implements http.RoundTripper.
func (g *cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(g.latency / 2):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	res := g.serve(r)
	select {
	case <-time.After(g.latency / 2):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return res, nil
}

func (g *cloud) serve(r *http.Request) *http.Response {
	g.mu.Lock()
	defer g.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	parts := strings.Split(path, "/")
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/operations"):
		g.calls["list"]++
		g.listed = append(g.listed, time.Now())
	case strings.Contains(path, "/operations/"):
		g.calls["get"]++
	default:
		g.calls["start"]++
	}
	if g.script != nil {
		if res := g.script(r.Method, path); res != nil {
			return res
		}
	}
	g.settle()
	switch {
	case strings.HasSuffix(path, "/operations"):
		list := &containerpb.ListOperationsResponse{}
		for _, op := range g.ops {
			if !g.unlisted[op.Name] && time.Since(g.ends[op.Name]) < 5*time.Minute {
				list.Operations = append(list.Operations, op)
			}
		}
		return reply(list)
	case strings.Contains(path, "/operations/"):
		for _, op := range g.ops {
			if op.Name == parts[len(parts)-1] {
				return reply(op)
			}
		}
		return busy(404, "Not found.")
	}
	target := strings.TrimSuffix(path, "/nodePools")
	if target != path {
		body, _ := io.ReadAll(r.Body)
		req := &containerpb.CreateNodePoolRequest{}
		if err := protojson.Unmarshal(body, req); err != nil {
			return busy(400, err.Error())
		}
		target = path + "/" + req.GetNodePool().GetName()
	}
	return g.start(target)
}

// start begins an operation as GKE would, or refuses it.
func (g *cloud) start(target string) *http.Response {
	running := 0
	for _, op := range g.ops {
		if op.Status == containerpb.Operation_DONE {
			continue
		}
		running++
		whole := !strings.Contains(op.TargetLink, "/nodePools/") || !strings.Contains(target, "/nodePools/")
		if whole || strings.HasSuffix(op.TargetLink, target) {
			g.refused++
			return busy(400, "Cluster is running incompatible operation "+op.Name+".")
		}
	}
	if g.quota > 0 && running >= g.quota {
		g.refused++
		if g.silent {
			return busy(429, "Too many operations, please try again later.")
		}
		return busy(429, fmt.Sprintf("Too many operations: cluster \"main\" hits the concurrent operations quota %d, please try again later.", g.quota))
	}
	g.most = max(g.most, running+1)
	g.started = append(g.started, target[strings.LastIndex(target, "/")+1:])
	return reply(g.add(target, g.took))
}

// add makes an operation that runs for d.
func (g *cloud) add(target string, d time.Duration) *containerpb.Operation {
	kind := containerpb.Operation_CREATE_NODE_POOL
	if !strings.Contains(target, "/nodePools/") {
		kind = containerpb.Operation_UPDATE_CLUSTER
	}
	op := &containerpb.Operation{Name: fmt.Sprintf("operation-%d", len(g.ops)+1), OperationType: kind, Status: containerpb.Operation_RUNNING,
		TargetLink: "https://container.googleapis.com/v1/" + strings.Replace(target, "projects/acme", "projects/4711", 1),
		StartTime:  time.Now().UTC().Format(time.RFC3339Nano)}
	g.ops, g.ends[op.Name] = append(g.ops, op), time.Now().Add(d)
	return proto.CloneOf(op)
}

// settle ends what is over.
func (g *cloud) settle() {
	for _, op := range g.ops {
		if end := g.ends[op.Name]; op.Status != containerpb.Operation_DONE && !time.Now().Before(end) {
			op.Status, op.EndTime = containerpb.Operation_DONE, end.UTC().Format(time.RFC3339Nano)
		}
	}
}

// foreign makes somebody else's operation; pool "" is the cluster itself.
func (g *cloud) foreign(pool string, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	target := name.String()
	if pool != "" {
		target = name.NodePool(pool)
	}
	g.add(target, d)
}

func (g *cloud) count(call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[call]
}

func reply(m proto.Message) *http.Response {
	body, err := protojson.Marshal(m)
	if err != nil {
		panic(err)
	}
	return response(200, string(body))
}

func busy(code int, message string) *http.Response {
	body, err := protojson.Marshal(&status.Status{Code: int32(code), Message: message})
	if err != nil {
		panic(err)
	}
	return response(code, `{"error": `+string(body)+`}`)
}

func response(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body))}
}

// create makes node pools FROM-0, FROM-1, ... side by side and returns when
// all are there.
func create(ctx context.Context, c *Client, pool string, n int) (errs []error) {
	errs = make([]error, n)
	var tasks sync.WaitGroup
	for i := range n {
		tasks.Go(func() {
			errs[i] = c.CreateNodePool(ctx, name, &containerpb.NodePool{Name: fmt.Sprintf("%s-%d", pool, i)}, nil)
		})
	}
	tasks.Wait()
	return errs
}

// made fails the test for the first error.
func made(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
