package conn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// counter answers with a new address each time it is asked.
type counter struct {
	asked atomic.Int32
	begin chan struct{}
}

func (c *counter) Access(_ context.Context, n gke.ClusterName) (kube.Access, error) {
	<-c.begin
	return kube.Access{Name: n.String(), Server: fmt.Sprintf("https://127.0.0.1:%d", c.asked.Add(1))}, nil
}

const path = "projects/p/locations/us-west4-a/clusters/c"

// GKE is asked once per cluster and run, however many ask at a time, and again
// after the cluster was made anew: another address, other certificates.
func TestClusterIsAskedForOnceUntilForgotten(t *testing.T) {
	c := &counter{begin: make(chan struct{})}
	d := &Data{Clusters: c}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if k, err := d.Cluster(t.Context(), path); err != nil || k.Config.Host != "https://127.0.0.1:1" {
				t.Errorf("got %v, %v", k, err)
			}
		})
	}
	close(c.begin)
	wg.Wait()
	name, _ := gke.ParseClusterName(path)
	d.Forget(name)
	k, err := d.Cluster(t.Context(), path)
	if err != nil || k.Config.Host != "https://127.0.0.1:2" || c.asked.Load() != 2 {
		t.Errorf("after Forget: %v, %v, asked %d times", k, err, c.asked.Load())
	}
}
