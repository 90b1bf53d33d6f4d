package gke

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
)

// What a killed run was still making is adopted, and gets settings that were
// changed since in the same apply.
func TestAdoptedInTheMakingGetsNewSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, err := fakegke.New(fakegke.WithToken("t0ken"), fakegke.WithTimeScale(1))
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Tokens: static("t0ken"), Transport: inProcess{fake}}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CreateCluster(t.Context(), name, &containerpb.Cluster{Name: name.Cluster, InitialNodeCount: 1}, nil); err != nil {
			t.Fatal(err)
		}
		pool := func(disk int) SlicePool {
			return testPool(t, "v5litepod-16", func(p *SlicePool) {
				p.Cluster, p.Zone, p.Owner, p.DiskSizeGB = name, name.Location, "me", disk
			})
		}
		short, cancel := context.WithTimeout(t.Context(), fakeCreate/2)
		defer cancel()
		if res, err := c.ApplySlicePool(short, pool(100), SlicePoolRun{}); err != nil || res.Ended != TimedOut {
			t.Fatalf("the first run: %s, %v", res.Ended, err)
		}
		res, err := c.ApplySlicePool(t.Context(), pool(200), SlicePoolRun{})
		if err != nil || len(res.Adopted) != 2 || res.Slices.Status(2) != PoolReady {
			t.Errorf("%v adopted, %s, %v", res.Adopted, res.Slices.Status(2), err)
		}
		time.Sleep(time.Minute) // a look that is under way ends too
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
}
