package gke

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// All clusters of a client share the project's requests: no minute has more
// than the quota, however many want to ask.
func TestRequestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []time.Time
		g := newCloud(0)
		g.latency = 0
		g.script = func(_, _ string) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Now())
			return reply(&containerpb.Cluster{})
		}
		c := g.client(t, func(cfg *Config) { cfg.PerMinute = 600 })
		began := time.Now()
		var all sync.WaitGroup
		for i := range 1500 {
			all.Go(func() {
				n := name
				n.Cluster += string(rune('a' + i%3))
				if _, err := c.GetCluster(t.Context(), n); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 3*time.Minute {
			t.Errorf("took %s: the budget was not used", took)
		}
		for i := 600; i < len(sent); i++ {
			if gap := sent[i].Sub(sent[i-600]); gap < time.Minute {
				t.Fatalf("601 requests within %s", gap)
			}
		}
	})
}

// GKE's Retry-After holds for every request of the project.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(0)
		began := time.Now()
		var first sync.Once
		g.script = func(string, string) (res *http.Response) {
			res = reply(&containerpb.Cluster{})
			first.Do(func() {
				res = busy(429, "Quota exceeded for quota metric 'Requests'.") //nolint:bodyclose // the client does
				res.Header.Set("Retry-After", "30")
			})
			if at := time.Since(began); at > time.Second && at < 30*time.Second {
				t.Errorf("asked after %s", at)
			}
			return res
		}
		c := g.client(t, nil)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := c.GetCluster(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second) // the second asks while the first waits
		}
		all.Wait()
		if took := time.Since(began); took < 30*time.Second || took > 33*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// Also when it comes with a refused operation.
func TestRetryAfterOfOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(0)
		began := time.Now()
		n := 0
		g.script = func(method, _ string) *http.Response {
			if method != http.MethodPost {
				return nil
			}
			if n++; n > 1 {
				if at := time.Since(began); at < 30*time.Second {
					t.Errorf("asked again after %s", at)
				}
				return nil
			}
			res := busy(429, "Too many operations, please try again later.")
			res.Header.Set("Retry-After", "30")
			return res
		}
		made(t, create(t.Context(), g.client(t, nil), "train", 1))
	})
}

// A wait for the budget ends with the run.
func TestBudgetEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(600)
		b.hold(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := b.wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
