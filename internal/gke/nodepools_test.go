package gke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// pools is a Container API of one cluster: it counts lists, and knows how many
// node pools were made.
type pools struct {
	lists, made atomic.Int64
	hold        chan struct{} // if not nil, lists answer when it is closed
}

func (p *pools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/nodePools") && r.Method == http.MethodGet:
		n := p.made.Load() // as it is when asked
		p.lists.Add(1)
		if p.hold != nil {
			<-p.hold
		}
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(`{"name": "p-%d"}`, i)
		}
		_, _ = fmt.Fprintf(w, `{"nodePools": [%s]}`, strings.Join(names, ","))
	case r.Method == http.MethodPost:
		p.made.Add(1)
		_, _ = fmt.Fprint(w, `{"name": "operation-1", "status": "DONE"}`)
	default:
		http.NotFound(w, r)
	}
}

var listCluster = ClusterName{"p", "us-west4-a", "c"}

// Refreshing many slice pools takes one list per cluster.
func TestOneListForARefresh(t *testing.T) {
	api := &pools{}
	c := client(t, api)
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			if _, err := c.ReadSlicePool(t.Context(), SlicePoolRef{Cluster: listCluster, Name: fmt.Sprintf("pool%d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := api.lists.Load(); n != 1 {
		t.Errorf("%d lists, want 1", n)
	}
	other := listCluster
	other.Cluster = "d"
	if _, err := c.ListSlicePools(t.Context(), other, nil); err != nil || api.lists.Load() != 2 {
		t.Errorf("another cluster: %d lists, %v", api.lists.Load(), err)
	}
}

// A read after our own write never gets a list from before it, kept or still
// under way.
func TestNoListFromBeforeAWrite(t *testing.T) {
	api := &pools{}
	c := client(t, api)
	count := func(c *Client) int {
		list, err := c.listNodePools(t.Context(), listCluster, time.Hour)
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	create := func() {
		if err := c.CreateNodePool(t.Context(), listCluster, &containerpb.NodePool{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if n := count(c); n != i {
			t.Errorf("%d node pools after %d writes", n, i)
		}
		create()
	}

	api.hold = make(chan struct{})
	var early sync.WaitGroup
	asked := api.lists.Load()
	arrives := func() { // the next question, at the API
		for asked++; api.lists.Load() < asked; {
			time.Sleep(time.Millisecond)
		}
	}
	early.Go(func() { count(c) })
	arrives()
	create()
	late := make(chan int)
	go func() { late <- count(c) }()
	arrives()
	close(api.hold)
	if n := <-late; n != 4 {
		t.Errorf("%d node pools after 4 writes", n)
	}
	early.Wait()
}

// Every kind of write ends what was listCluster before.
func TestWritesThatEndAList(t *testing.T) {
	ctx := t.Context()
	for name, write := range map[string]func(c *Client) error{
		"create": func(c *Client) error { return c.CreateNodePool(ctx, listCluster, &containerpb.NodePool{}, nil) },
		"update": func(c *Client) error {
			return c.UpdateNodePool(ctx, listCluster, "p-0", &containerpb.UpdateNodePoolRequest{})
		},
		"delete": func(c *Client) error { return c.DeleteNodePool(ctx, listCluster, "p-0") },
		"resize": func(c *Client) error { return c.ResizeNodePool(ctx, listCluster, "p-0", 1) },
		"management": func(c *Client) error {
			return c.setManagement(ctx, listCluster, "p-0", &containerpb.NodeManagement{})
		},
		"autoscaling": func(c *Client) error {
			return c.setAutoscaling(ctx, SlicePool{Cluster: listCluster, Autoscaling: &Autoscaling{}}, &containerpb.NodePool{Name: "p-0"})
		},
		"cluster":         func(c *Client) error { return c.CreateCluster(ctx, listCluster, &containerpb.Cluster{}, nil) },
		"cluster, update": func(c *Client) error { return c.UpdateCluster(ctx, listCluster, &containerpb.ClusterUpdate{}) },
		"cluster, delete": func(c *Client) error { return c.DeleteCluster(ctx, listCluster) },
	} {
		api := &pools{}
		c := client(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				api.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"name": "operation-1", "status": "DONE"}`)
		}))
		for range 2 {
			if _, err := c.listNodePools(ctx, listCluster, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.listNodePools(ctx, listCluster, time.Hour); err != nil {
			t.Fatal(err)
		}
		if n := api.lists.Load(); n != 2 {
			t.Errorf("%s: %d lists, want one before and one after", name, n)
		}
	}
}

// Who waits for a list leaves at once when interrupted, with the error that
// says so, and takes nothing from those who stay.
func TestInterruptWhileListing(t *testing.T) {
	api := &pools{hold: make(chan struct{})}
	c := client(t, api)
	stays := make(chan error)
	go func() {
		_, err := c.ListNodePools(t.Context(), listCluster)
		stays <- err
	}()
	for api.lists.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ListNodePools(ctx, listCluster); !errors.Is(err, Interrupted) {
		t.Errorf("%v, want an interrupt", err)
	}
	close(api.hold)
	if err := <-stays; err != nil {
		t.Error(err)
	}
}
