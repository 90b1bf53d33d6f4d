package gke

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// As many operations run as GKE takes, whatever it says about its quota, and
// hardly any is refused.
func TestOperationsFindTheQuota(t *testing.T) {
	for what, c := range map[string]struct {
		slices, quota, most int
		silent              bool
		atOnce, refused     int
		used                float64
	}{
		"published quota":           {slices: 50, quota: 5, atOnce: 5, refused: 5, used: 0.95},
		"more than published":       {slices: 50, quota: 20, atOnce: 20, refused: 5, used: 0.95},
		"none":                      {slices: 50, quota: 0, atOnce: 50, refused: 0, used: 0.95},
		"one":                       {slices: 10, quota: 1, atOnce: 1, refused: 5, used: 0.95},
		"thousand slices":           {slices: 1000, quota: 5, atOnce: 5, refused: 5, used: 0.95},
		"quota that is not named":   {slices: 1000, quota: 5, silent: true, atOnce: 5, refused: 10, used: 0.95},
		"twenty that are not named": {slices: 100, quota: 20, silent: true, atOnce: 20, refused: 10, used: 0.95},
		"the user's bound":          {slices: 20, quota: 20, most: 2, atOnce: 2, refused: 0, used: 0.95},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCloud(c.quota)
				g.silent = c.silent
				client := g.client(t, func(cfg *Config) { cfg.MaxOperations = c.most })
				began := time.Now()
				made(t, create(t.Context(), client, "train", c.slices))
				bound := time.Duration(math.Ceil(float64(c.slices)/float64(c.atOnce))) * g.took
				if used := float64(bound) / float64(time.Since(began)); used < c.used {
					t.Errorf("took %s, %.1f%% of the bound of %s, want %.0f%%", time.Since(began), 100*used, bound, 100*c.used)
				}
				if g.most != c.atOnce || g.refused > c.refused || g.count("get") > 0 {
					t.Errorf("%d at once, want %d; %d refused, want at most %d; %d single gets", g.most, c.atOnce, g.refused, c.refused, g.count("get"))
				}
			})
		})
	}
}

// Two slices are not behind four hundred.
func TestSlicePoolsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(5)
		c := g.client(t, nil)
		began := time.Now()
		var both sync.WaitGroup
		both.Go(func() { made(t, create(t.Context(), c, "large", 400)) })
		time.Sleep(time.Minute)
		made(t, create(t.Context(), c, "small", 2))
		if took := time.Since(began) - time.Minute; took > 3*g.took {
			t.Errorf("the small pool took %s beside a large one, want %s and its turn", took, g.took)
		}
		both.Wait()
	})
}

// Operations on the cluster and on its node pools exclude each other, and
// neither kind keeps the other waiting for long.
func TestClusterOperationsAreExclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(5)
		c := g.client(t, nil)
		var all sync.WaitGroup
		all.Go(func() { made(t, create(t.Context(), c, "train", 60)) })
		time.Sleep(30 * time.Second)
		g.mu.Lock()
		before := g.refused
		g.mu.Unlock()
		for i := range 6 {
			all.Go(func() {
				if err := c.UpdateCluster(t.Context(), name, &containerpb.ClusterUpdate{DesiredNodeVersion: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if g.refused != before {
			t.Errorf("%d operations met another that excludes them", g.refused-before)
		}
		// The first waits for what is running only, and node pools have a round
		// between two of them.
		var at []int
		for i, target := range g.started {
			if target == name.Cluster {
				at = append(at, i)
			}
		}
		if len(at) != 6 || at[0] > 11 {
			t.Fatalf("operations on the cluster are numbers %v of %d", at, len(g.started))
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap != 6 {
				t.Errorf("%d node pools between two operations on the cluster, want a round of 5: %v", gap-1, at)
			}
		}
	})
}

// Somebody else's operations are waited for, not asked about with requests
// that are refused, and their place is used when they have ended.
func TestOperationsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name    string
			foreign []string // node pools, "" is the cluster
			refused int
		}{
			{"on the cluster", []string{""}, 10},
			{"all of the quota", []string{"a", "b", "c", "d", "e"}, 5},
			{"part of the quota", []string{"a", "b", "c"}, 5},
			{"on the same node pool", []string{"train-0"}, 6},
		} {
			g := newCloud(5)
			for _, pool := range c.foreign {
				g.foreign(pool, 10*time.Minute)
			}
			client := g.client(t, nil)
			began := time.Now()
			made(t, create(t.Context(), client, "train", 100))
			rounds := 20 * g.took // all after the others' end
			if took := time.Since(began); took > 10*time.Minute+rounds+30*time.Second {
				t.Errorf("%s: took %s", c.name, took)
			}
			if g.refused > c.refused {
				t.Errorf("%s: %d refused, want at most %d", c.name, g.refused, c.refused)
			}
			if g.most != 5 {
				t.Errorf("%s: %d at once in the end", c.name, g.most)
			}
		}
	})
}

// An operation on the cluster waits for others' on its node pools.
func TestClusterOperationAfterOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(5)
		g.foreign("theirs", 5*time.Minute)
		began := time.Now()
		if err := g.client(t, nil).UpdateCluster(t.Context(), name, &containerpb.ClusterUpdate{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); g.refused > 1 || took > 5*time.Minute+40*time.Second {
			t.Errorf("%d refused, took %s", g.refused, took)
		}
	})
}

// GKE may list operations for ever that it does not count.
func TestOthersOperationThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(1)
		g.foreign("first", time.Minute)
		c := g.client(t, nil)
		go func() {
			time.Sleep(30 * time.Second)
			g.foreign("stuck", 1000*time.Hour)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.quota = 2 // as if that one did not count
		}()
		began := time.Now()
		made(t, create(t.Context(), c, "train", 3))
		if took := time.Since(began); took > time.Hour {
			t.Errorf("took %s", took)
		}
	})
}

// Who is interrupted in the queue leaves it at once and takes no slot along.
func TestInterruptInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(5)
		c := g.client(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var left []error
		all.Go(func() { made(t, create(t.Context(), c, "stays", 20)) })
		all.Go(func() { left = create(ctx, c, "leaves", 20) })
		time.Sleep(5 * time.Second) // both have some running
		cancel()
		synctest.Wait()
		if len(left) != 20 {
			t.Fatal("an interrupt did not end the wait at once")
		}
		for _, err := range left {
			if !errors.Is(err, Interrupted) {
				t.Errorf("got %v", err)
			}
		}
		all.Wait()
		if g.most != 5 {
			t.Errorf("%d at once, want the quota of 5", g.most)
		}
	})
}

// What goes on in GKE after an interrupt keeps its slot: nothing more is
// refused, and the slot comes back when it ends.
func TestInterruptKeepsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(5)
		c := g.client(t, nil)
		made(t, create(t.Context(), c, "first", 10)) // the quota is known
		refused := g.refused
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		create(ctx, c, "left", 5)
		looks := g.count("list")
		time.Sleep(time.Second)
		if g.count("list") != looks {
			t.Error("operations that nobody waits for are looked at")
		}
		began := time.Now()
		made(t, create(t.Context(), c, "next", 5))
		if took := time.Since(began); took > g.took+17*time.Second || took < g.took+14*time.Second {
			t.Errorf("took %s, want the 14 s that the operations before still needed and %s", took, g.took)
		}
		if g.refused != refused {
			t.Errorf("%d refused: a slot was given away that GKE had not", g.refused-refused)
		}
	})
}

// A server that is always busy does not keep a run from ending, and is not
// asked more than now and then.
func TestBusyForEver(t *testing.T) {
	for _, message := range []string{
		`Too many operations: cluster "main" hits the concurrent operations quota 5, please try again later.`,
		`Too many operations, please try again later.`,
		`Quota exceeded for quota metric 'Requests'.`,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newCloud(0)
			g.script = func(method, _ string) *http.Response {
				if method != http.MethodPost {
					return nil
				}
				return busy(429, message)
			}
			c := g.client(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var interrupted time.Time
			time.AfterFunc(10*time.Minute, func() { interrupted = time.Now(); cancel() })
			errs := create(ctx, c, "train", 5)
			if took := time.Since(interrupted); took > 2*time.Second {
				t.Errorf("%s: took %s to end", message, took)
			}
			for _, err := range errs {
				if !errors.Is(err, Interrupted) {
					t.Errorf("%s: %v", message, err)
				}
			}
			if !slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), message) }) {
				t.Errorf("no error says what GKE answered: %v", errs[0])
			}
			if n := g.count("start"); n > 12*60 {
				t.Errorf("%s: %d requests in ten minutes", message, n)
			}
		})
	}
}

// A reply that was lost may have taken effect: what it started is found by a
// list before the next request, not by a refusal.
func TestLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(1)
		c := g.client(t, nil)
		made(t, create(t.Context(), c, "first", 2))
		refused := g.refused
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*g.latency/4, cancel) // the server has it, the reply is on its way
		if err := create(ctx, c, "lost", 1)[0]; !errors.Is(err, Interrupted) {
			t.Fatal(err)
		}
		made(t, create(t.Context(), c, "next", 1))
		if g.refused != refused || g.most != 1 {
			t.Errorf("%d refused, %d at once", g.refused-refused, g.most)
		}
	})
}
