package slicepool_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/fakegke"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// A pool that shrinks lowers the quotas that follow it, before its slices go:
// also when GKE then keeps them. One that grows leaves them to the queue.
func TestShrinkLowersTheQuotasFirst(t *testing.T) {
	t.Parallel()
	g := acctest.NewGKE(t)
	g.Cluster.Keep(t, &kueue.ClusterQueue{})
	k := g.Cluster.Client(t)
	cluster := g.MakeCluster(t, "main")
	run := func() *acctest.Protocol { return g.Protocol(t, "team") } // one provider process, as Terraform has
	pool := func(count int) map[string]any {
		return map[string]any{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16", "slice_count": count, "deletion_protection": false}
	}
	const typ = "tpu_slice_pool"
	r, text := run().Apply(typ, nil, pool(3))
	if r == nil || strings.Contains(text, "ERROR") {
		t.Fatal(text)
	}
	s, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	q := queue.Queue{Name: "research", Quotas: []queue.Quota{{Flavor: "v5e", Slice: s, Slices: 3, Pool: r.State["id"].(string)}}}
	if err := k.Apply(t.Context(), q.ClusterQueue(), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	chips := func() int64 {
		t.Helper()
		live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "research"}}
		if found, err := k.Fetch(t.Context(), live); err != nil || !found {
			t.Fatal(found, err)
		}
		return live.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Value()
	}
	kept := g.Fail(fakegke.Fault{Method: "DeleteNodePool", Code: codes.PermissionDenied, Message: "not today"})
	r, text = run().Apply(typ, r, pool(2))
	kept()
	if got := chips(); got != 32 {
		t.Errorf("the quota is %d chips before the slice is gone, want 32; said %s", got, text)
	}
	fresh, _ := run().Refresh(r)
	if r, text = run().Apply(typ, fresh, pool(1)); strings.Contains(text, "ERROR") || chips() != 16 {
		t.Errorf("the quota of one slice is %d chips; said %s", chips(), text)
	}
	if r, text = run().Apply(typ, r, pool(2)); strings.Contains(text, "ERROR") || chips() != 16 {
		t.Errorf("after growing the quota is %d chips, want it left to the queue; said %s", chips(), text)
	}
	// In a replacement the queue stays: its quota is nothing until the pool is back.
	replacing := run()
	if left, text := replacing.Destroy(r); left != nil || text != "" || chips() != 0 {
		t.Errorf("after the pool is gone the quota is %d chips, want none; said %s", chips(), text)
	}
	if r, text = replacing.Apply(typ, nil, pool(2)); strings.Contains(text, "ERROR") || chips() != 16 {
		t.Errorf("after the pool is back the quota is %d chips, want what it was; said %s", chips(), text)
	}
	if left, text := run().Destroy(r); left != nil || text != "" || chips() != 0 {
		t.Errorf("after the pool is gone for good the quota is %d chips, want none; said %s", chips(), text)
	}
}
