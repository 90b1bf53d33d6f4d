package gke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
)

// Looks are never closer than a poll interval, and seldom when nothing waits.
func TestPaceOfLooks(t *testing.T) {
	for what, c := range map[string]struct {
		slices int
		took   time.Duration
		most   int // looks
	}{
		"a wait for a slot":       {50, 20 * time.Second, 10 * 20},
		"nothing waits":           {5, 20 * time.Second, 22},
		"half an hour of nothing": {5, 30 * time.Minute, 20 + 46 + 170},
		"many long operations":    {100, 150 * time.Second, 20 * 40},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCloud(5)
				g.took = c.took
				made(t, create(t.Context(), g.client(t, nil), "train", c.slices))
				if len(g.listed) > c.most {
					t.Errorf("%d looks, want at most %d", len(g.listed), c.most)
				}
				for i := 1; i < len(g.listed); i++ {
					if gap := g.listed[i].Sub(g.listed[i-1]); gap < DefaultPollInterval {
						t.Errorf("looks %d and %d are %s apart", i-1, i, gap)
					}
				}
			})
		})
	}
}

// An operation whose like is known is looked at when it should be over, also
// when all are alike and something waits.
func TestPaceLearns(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	const kind, sec = containerpb.Operation_CREATE_NODE_POOL, time.Second
	ended := func(d time.Duration, code string) *containerpb.Operation {
		return &containerpb.Operation{OperationType: kind, StatusMessage: code, StartTime: start.Format(time.RFC3339), EndTime: at(d).Format(time.RFC3339Nano)}
	}
	steady := []*containerpb.Operation{ended(100*sec, ""), ended(100*sec, ""), ended(3*sec, "GCE_STOCKOUT")}
	varied := []*containerpb.Operation{ended(100*sec, ""), ended(40*sec, ""), ended(160*sec, ""), ended(60*sec, "")}
	for what, c := range map[string]struct {
		learned          []*containerpb.Operation
		asked            time.Duration
		since            []time.Duration
		hungry, doubtful bool
		want             time.Duration
	}{
		"unknown, young":                {nil, 10 * sec, []time.Duration{0}, false, false, 11 * sec},
		"unknown, old":                  {nil, 100 * sec, []time.Duration{0}, false, false, 105 * sec},
		"unknown, very old":             {nil, 1000 * sec, []time.Duration{0}, false, false, 1010 * sec},
		"unknown, old, something waits": {nil, 100 * sec, []time.Duration{0}, true, false, 101 * sec},
		"just started":                  {nil, 10 * sec, []time.Duration{10500 * time.Millisecond}, false, false, 11520 * time.Millisecond},
		"steady, young":                 {steady, 20 * sec, []time.Duration{0}, true, false, 25 * sec},
		"steady, due":                   {steady, 97 * sec, []time.Duration{0}, true, false, 100*sec + 20*time.Millisecond},
		"steady, due together":          {steady, 97 * sec, []time.Duration{0, 200 * time.Millisecond}, true, false, 100*sec + 220*time.Millisecond},
		"steady, overdue":               {steady, 101 * sec, []time.Duration{0}, true, false, 102 * sec},
		"varied, young":                 {varied, 20 * sec, []time.Duration{0}, true, false, 25 * sec},
		"varied, may be over":           {varied, 80 * sec, []time.Duration{0}, true, false, 81 * sec},
		"nothing of ours":               {nil, 50 * sec, nil, true, false, 52500 * time.Millisecond},
		"nothing can start before":      {steady, 20 * sec, []time.Duration{0}, true, true, 21 * sec},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPace(sec)
			for _, op := range c.learned {
				p.learn(op, 0)
			}
			p.began, p.asked = start, at(c.asked)
			var all []age
			for _, s := range c.since {
				all = append(all, age{kind, at(s)})
			}
			if got := p.next(all, c.hungry, c.doubtful).Sub(start); got != c.want {
				t.Errorf("next look after %s, want %s", got, c.want)
			}
		})
	}
}

// One operation is read by its name only when lists do not show it.
func TestOperationThatNoListShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(0)
		g.foreign("train-0", 30*time.Second)
		g.unlisted["operation-1"] = true
		c := g.client(t, nil)
		target := poolTarget("creating", name, "train-0", nil)
		if err := c.await(t.Context(), name.Parent(), target, &containerpb.Operation{Name: "operation-1"}); err != nil {
			t.Fatal(err)
		}
		if g.count("get") == 0 {
			t.Error("nobody asked for it")
		}
		err := c.await(t.Context(), name.Parent(), target, &containerpb.Operation{Name: "operation-of-last-year"})
		if !errors.Is(err, NotFound) {
			t.Errorf("an operation that GKE has forgotten: %v", err)
		}
	})
}

// A permission to list that is missing ends a wait and does not keep others
// from the answer that their own request gets.
func TestListsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(1)
		g.script = func(method, path string) *http.Response {
			if method == http.MethodGet && strings.HasSuffix(path, "/operations") {
				return busy(403, `Required "container.operations.list" permission(s).`)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for i, err := range create(ctx, g.client(t, nil), "train", 3) {
			if !errors.Is(err, Permission) {
				t.Errorf("%d: %v", i, err)
			}
		}
	})
}

// Lines about work under way come now and then, count what there is, and end
// with the end; what is quick is not worth one.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCloud(5)
		var lines, logged []string
		c := g.client(t, func(cfg *Config) {
			cfg.Progress = func(_ context.Context, p Progress) { lines = append(lines, p.String()) }
			cfg.Log = func(_ context.Context, msg string, fields map[string]any) {
				if msg == "operation under way" {
					logged = append(logged, fmt.Sprint(fields["operation"], " ", fields["says"]))
				}
			}
		})
		go func() {
			time.Sleep(25 * time.Second) // the second round
			g.mu.Lock()
			defer g.mu.Unlock()
			g.ops[len(g.ops)-1].NodepoolConditions = []*containerpb.StatusCondition{{Message: "[GCE_STOCKOUT]"}}
		}()
		made(t, create(t.Context(), c, "train", 12))
		took := lines[len(lines)-1]
		if len(lines) < 4 || len(lines) > 7 || !strings.HasPrefix(took, "slice pool train: 12 of 12 slices ready, 1m") {
			t.Errorf("lines:\n%s", strings.Join(lines, "\n"))
		}
		if !slices.Contains(lines, "slice pool train: 5 of 12 slices ready, 5 in progress, 2 waiting, 30s; GKE: [GCE_STOCKOUT]") {
			t.Errorf("no line with counts and trouble:\n%s", strings.Join(lines, "\n"))
		}
		if diff := cmp.Diff([]string{"operation-10 [GCE_STOCKOUT]"}, logged); diff != "" {
			t.Error(diff)
		}
		lines = nil
		g.took = time.Second
		made(t, create(t.Context(), c, "quick", 2))
		if len(lines) > 0 {
			t.Errorf("quick work is told of: %v", lines)
		}
	})
}

func TestProgressLine(t *testing.T) {
	for want, p := range map[string]Progress{
		"slice pool train: 12 of 50 slices ready, 5 in progress, 33 waiting, 3m10s":               {Pool: "train", Verb: "creating", Done: 12, Running: 5, Waiting: 33, Elapsed: 190 * time.Second},
		"slice pool train: 0 of 1 slice deleted, 1 in progress, 10s":                              {Pool: "train", Verb: "deleting", Running: 1, Elapsed: 10 * time.Second},
		"slice pool train: 2 of 4 slices ready, 1 failed, 1 in progress, 35m0s; GKE: no capacity": {Pool: "train", Verb: "creating", Done: 2, Failed: 1, Running: 1, Elapsed: 35 * time.Minute, Note: "no capacity"},
		"cluster main: updating, 2m0s":                                                            {Cluster: name, Verb: "updating", Running: 1, Elapsed: 2 * time.Minute},
		"cluster main: updating waits for other operations, 20s":                                  {Cluster: name, Verb: "updating", Waiting: 1, Elapsed: 20 * time.Second},
		"cluster main: ready, 6m0s":                                                               {Cluster: name, Verb: "creating", Done: 1, Elapsed: 6 * time.Minute},
		"cluster main: creating failed, 1s":                                                       {Cluster: name, Verb: "creating", Failed: 1, Elapsed: time.Second},
	} {
		if got := p.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// What GKE says: trouble before figures.
func TestWhatGKESays(t *testing.T) {
	figures := &containerpb.OperationProgress{Name: "creating nodes", Metrics: []*containerpb.OperationProgress_Metric{
		{Name: "NODES_TOTAL", Value: &containerpb.OperationProgress_Metric_IntValue{IntValue: 16}},
		{Name: "NODES_DONE", Value: &containerpb.OperationProgress_Metric_IntValue{IntValue: 4}},
	}}
	for want, op := range map[string]*containerpb.Operation{
		"": {},
		"creating nodes: nodes total 16, nodes done 4": {Progress: figures},
		"half of it":  {Progress: figures, Detail: "half of it"},
		"no capacity": {Progress: figures, Detail: "half of it", NodepoolConditions: []*containerpb.StatusCondition{{Message: "no capacity"}}},
	} {
		if got := says(op); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
