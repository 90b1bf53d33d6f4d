package gke

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// lister answers creates of node pools with "already exists", and lists with
// what show says.
type lister struct {
	show  func() []*containerpb.NodePool
	lists int
}

func (l *lister) apply(t *testing.T, p SlicePool) *slicePoolApply {
	t.Helper()
	g := newCloud(0)
	g.script = func(method, path string) *http.Response {
		switch {
		case !strings.HasSuffix(path, "/nodePools"):
			return nil
		case method == http.MethodPost:
			return busy(409, "Already exists: "+path+".")
		}
		l.lists++
		return reply(&containerpb.ListNodePoolsResponse{NodePools: l.show()})
	}
	return &slicePoolApply{c: g.client(t, nil), p: p, failures: map[int]error{}, sent: map[int]bool{}}
}

// However many slices wait for what somebody else began, GKE is asked ever more
// seldom, and the end is noticed soon for how long it took.
func TestSettleAsksSeldom(t *testing.T) {
	for what, c := range map[string]struct {
		took time.Duration
		most int // lists
	}{
		"a quick end":  {10 * time.Second, 11},
		"half an hour": {30 * time.Minute, 20 + 47 + 160 + 5}, // each second, each twentieth, each ten seconds
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := testPool(t, "v5litepod-16", nil)
				began := time.Now()
				l := &lister{show: func() (all []*containerpb.NodePool) {
					status := containerpb.NodePool_PROVISIONING
					if time.Since(began) >= c.took {
						status = containerpb.NodePool_RUNNING
					}
					for i := range 50 {
						all = append(all, &containerpb.NodePool{Name: p.NodePoolName(i), Status: status})
					}
					return all
				}}
				a := l.apply(t, p)
				var all sync.WaitGroup
				for i := range 50 {
					all.Go(func() {
						np, err := a.settle(t.Context(), p.NodePoolName(i))
						if err != nil || np.GetStatus() != containerpb.NodePool_RUNNING {
							t.Errorf("slice %d: %v, %v", i, np, err)
						}
					})
				}
				all.Wait()
				if late := time.Since(began) - c.took; late > 12*time.Second || l.lists > c.most {
					t.Errorf("%d lists, want at most %d; noticed after %s", l.lists, c.most, late)
				}
			})
		})
	}
}

// A create whose reply was lost is recognised by what it made, also when lists
// show that late.
func TestCreateThatExists(t *testing.T) {
	for what, c := range map[string]struct {
		owner   string        // of the node pool
		shown   time.Duration // lists show it from then on
		up      time.Duration // and it runs from then on
		want    string        // in the error
		returns time.Duration // at the latest
	}{
		"ours, shown at once":       {owner: "me", returns: 2 * time.Second},
		"ours, shown late":          {owner: "me", shown: 20 * time.Second, up: 20 * time.Second, returns: 23 * time.Second},
		"ours, shown late and made": {owner: "me", shown: 20 * time.Second, up: 150 * time.Second, returns: 160 * time.Second},
		"another's, shown late":     {owner: "you", shown: 20 * time.Second, want: `its owner is "you"`, returns: 23 * time.Second},
		"never shown":               {owner: "me", shown: time.Hour, want: "GKE lists no such node pool", returns: 70 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := testPool(t, "v5litepod-16", func(p *SlicePool) { p.Owner = "me" })
				theirs := p
				theirs.Owner = c.owner
				np, err := theirs.NodePool(0, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				l := &lister{show: func() []*containerpb.NodePool {
					if time.Since(began) < c.shown {
						return nil
					}
					np.Status = containerpb.NodePool_RUNNING
					if time.Since(began) < c.up {
						np.Status = containerpb.NodePool_PROVISIONING
					}
					return []*containerpb.NodePool{np}
				}}
				err = l.apply(t, p).create(t.Context(), 0)
				switch {
				case c.want == "" && err != nil:
					t.Error(err)
				case c.want != "" && (!errors.Is(err, AlreadyExists) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("got %v, want %q", err, c.want)
				}
				if took := time.Since(began); took > c.returns {
					t.Errorf("took %s, want %s at most", took, c.returns)
				}
			})
		})
	}
}

// An interrupt ends the wait for a list at once.
func TestInterruptWhileAListIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{show: func() []*containerpb.NodePool { return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := l.apply(t, testPool(t, "v5litepod-16", nil)).create(ctx, 0)
		if took := time.Since(began); !errors.Is(err, TimedOut) || took > 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// A cluster that GKE has made, and does not show yet, is waited for; one that
// is gone is not waited for without end.
func TestCreatedClusterIsShownLate(t *testing.T) {
	for what, c := range map[string]struct {
		shown time.Duration
		cause Cause
	}{
		"late":  {20 * time.Second, ""},
		"never": {time.Hour, NotFound},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCloud(0)
				began := time.Now()
				g.script = func(method, path string) *http.Response {
					switch {
					case strings.Contains(path, "/operations"):
						return nil
					case method == http.MethodPost:
						return reply(g.add(path+"/"+name.Cluster, g.took))
					case time.Since(began) < g.took+c.shown:
						return busy(404, "Not found: "+path+".")
					}
					return reply(&containerpb.Cluster{Name: name.Cluster, Status: containerpb.Cluster_RUNNING})
				}
				cluster, _, err := g.client(t, nil).CreateTrainingCluster(t.Context(), TrainingCluster{Name: name})
				if c.cause == "" && (err != nil || cluster.GetName() != name.Cluster) || c.cause != "" && !errors.Is(err, c.cause) {
					t.Errorf("got %v, %v", cluster, err)
				}
				if took := time.Since(began); took > 2*time.Minute {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}
