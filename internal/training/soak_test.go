package training_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

var (
	fullSoak = flag.Bool("training.soak", false, "the whole preemption soak: 20 disruptions, and 20 with peers of another slice")
	soakSeed = flag.Uint64("training.soakseed", 1, "draws the soak's disruptions")
)

// soakCluster is skipped unless asked for: a soak takes as long as it takes.
func soakCluster(t *testing.T) (context.Context, *kube.Client, *controlplane.ControlPlane) {
	t.Helper()
	if !*fullSoak {
		t.Skip("long; make soak runs it")
	}
	cl, cp := cluster(t), stage(t)
	spot(t.Context(), t, cl, cp)
	return t.Context(), cl, cp
}

// after waits; a soak draws its moments.
func (j *spotJob) after(d time.Duration) {
	j.t.Helper()
	select {
	case <-time.After(d):
	case <-j.ctx.Done():
		j.t.Fatal(j.ctx.Err())
	}
}

// Twenty disruptions of every kind, with peers of the same slice that fail up to
// five seconds before and any time after: none is counted.
func TestPreemptionSoak(t *testing.T) {
	ctx, cl, cp := soakCluster(t)
	random := rand.New(rand.NewPCG(*soakSeed, 8))
	var kinds []controlplane.Disruption
	for len(kinds) < 20 {
		kinds = append(kinds, controlplane.Disruptions...)
	}
	kinds = kinds[:20]
	random.Shuffle(len(kinds), func(a, b int) { kinds[a], kinds[b] = kinds[b], kinds[a] })

	j := submitSpot(ctx, t, cl, cp, "soak", func(s *training.Spec) { s.Restart.MaxRestarts = 1 })
	for n, kind := range kinds {
		if got := j.steady(); got != n {
			t.Fatalf("attempt %d runs, want %d: attempts have a gap", got, n)
		}
		slice, victim := random.IntN(spotSlices), random.IntN(spotHosts)
		peers := slices.DeleteFunc(random.Perm(spotHosts), func(h int) bool { return h == victim })[:1+random.IntN(spotHosts-1)]
		before := peers[:random.IntN(len(peers)+1)]
		lead := time.Duration(random.Int64N(int64(5 * time.Second)))
		lag := time.Duration(random.Int64N(int64(3 * time.Second)))
		host := j.nodeOf(slice, victim)
		later := j.podsOf(slice, peers[len(before):])
		began := time.Now()
		for _, peer := range before {
			j.exit(slice, peer, 1, "")
		}
		if len(before) > 0 {
			j.after(lead)
		}
		if err := cp.Disrupt(ctx, host, kind); err != nil {
			t.Fatal(err)
		}
		if len(later) > 0 {
			j.after(lag)
			j.fail(later)
		}
		j.restarted(n, host, kind)
		r := j.run()
		t.Logf("%2d: %-8s of %s, %d peers failed %s before, %d after: restart %d, %d counted, after %s", n+1, kind, host,
			len(before), lead.Round(100*time.Millisecond), len(peers)-len(before), r.Restarts, r.CountedRestarts, time.Since(began).Round(100*time.Millisecond))
		if r.CountedRestarts != 0 {
			t.Fatalf("disruption %d was counted: %s", n+1, r.Message)
		}
	}
	j.steady()
	j.environment("20")
	if r := j.finish(); r.Restarts != 20 || r.CountedRestarts != 0 {
		t.Errorf("%d restarts, %d of them counted: want 20 and 0", r.Restarts, r.CountedRestarts)
	}
}

// The same with peers of another slice that fail first: how often that costs a
// restart is measured, not promised.
func TestPeersOfOtherSlices(t *testing.T) {
	ctx, cl, cp := soakCluster(t)
	random := rand.New(rand.NewPCG(*soakSeed, 88))
	kinds := []controlplane.Disruption{controlplane.Evict, controlplane.Shutdown, controlplane.Taint, controlplane.Preempt}
	j := submitSpot(ctx, t, cl, cp, "others", func(s *training.Spec) { s.Restart.MaxRestarts = 1000 })
	type tally struct{ runs, counted int }
	by := map[int]*tally{}
	all := tally{}
	for n := range 20 {
		kind, peers := kinds[n%len(kinds)], 1+n/len(kinds)%spotHosts // 5 of each kind; 1 to 4 peers
		attempt := j.steady()
		before := j.run().CountedRestarts
		slice := random.IntN(spotSlices)
		other := (slice + 1 + random.IntN(spotSlices-1)) % spotSlices
		host := j.nodeOf(slice, random.IntN(spotHosts))
		lead := time.Duration(random.Int64N(int64(5 * time.Second)))
		for _, peer := range random.Perm(spotHosts)[:peers] {
			j.exit(other, peer, 1, "")
		}
		j.after(lead)
		if err := cp.Disrupt(ctx, host, kind); err != nil {
			t.Fatal(err)
		}
		j.restarted(attempt, host, kind)
		j.steady()
		r := j.run()
		if by[peers] == nil {
			by[peers] = &tally{}
		}
		by[peers].runs++
		all.runs++
		if r.CountedRestarts > before {
			by[peers].counted++
			all.counted++
		}
		t.Logf("%2d: %-8s of %s, %d of 4 hosts of another slice failed %s before: %d restarts, %d counted", n+1, kind, host,
			peers, lead.Round(100*time.Millisecond), r.Restarts-attempt, r.CountedRestarts-before)
	}
	for peers := range spotHosts {
		if c := by[peers+1]; c != nil {
			t.Logf("%d of 4 hosts of another slice first: %d of %d counted", peers+1, c.counted, c.runs)
		}
	}
	t.Logf("all: %d of %d counted", all.counted, all.runs)
	j.finish()
}
