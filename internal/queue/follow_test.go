package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const shrinking = "projects/p/locations/l/clusters/c/nodePools/v5e"

// followers are queues with and without a quota that follows the pool.
func followers(t *testing.T) []client.Object {
	t.Helper()
	s := slice(t, "v5litepod-16")
	quota := func(slices int64, pool string) queue.Quota {
		return queue.Quota{Flavor: "v5e", Slice: s, Slices: slices, Pool: pool}
	}
	lends := quota(4, shrinking)
	lends.Lend = ptr.To[int64](3)
	return []client.Object{
		queue.Queue{Name: "all", Cohort: "c", Quotas: []queue.Quota{lends, {Flavor: "v6e", Slice: slice(t, "v6e-64"), Slices: 9}}}.ClusterQueue(),
		queue.Queue{Name: "other-pool", Quotas: []queue.Quota{quota(4, shrinking+"-2")}}.ClusterQueue(),
		queue.Queue{Name: "part", Quotas: []queue.Quota{quota(1, shrinking)}}.ClusterQueue(),
		queue.Queue{Name: "unbound", Quotas: []queue.Quota{quota(4, "")}}.ClusterQueue(),
	}
}

// Before a pool shrinks, the quotas that follow it and are too high are lowered,
// and what they lend with them; no other quota is touched.
func TestLowerFollowers(t *testing.T) {
	k := cluster(t, nil, followers(t)...)
	lowered, err := queue.Lower(t.Context(), k, shrinking, 32)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"all"}, lowered); diff != "" {
		t.Error(diff)
	}
	got := map[string][]string{}
	var all kueue.ClusterQueueList
	if err := k.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, q := range all.Items {
		for _, f := range q.Spec.ResourceGroups[0].Flavors {
			r := f.Resources[0]
			text := r.NominalQuota.String()
			if r.LendingLimit != nil {
				text += " lends " + r.LendingLimit.String()
			}
			got[q.Name] = append(got[q.Name], text)
		}
	}
	want := map[string][]string{"all": {"32 lends 32", "576"}, "other-pool": {"64"}, "part": {"16"}, "unbound": {"64"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A change that somebody makes at the same time is not lost, and the quota is
// lowered all the same.
func TestLowerMeetsAnotherChange(t *testing.T) {
	conflicts := 0
	funcs := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
		if conflicts++; conflicts == 1 {
			other := &kueue.ClusterQueue{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), other); err != nil {
				return err
			}
			other.Spec.StopPolicy = ptr.To(kueue.Hold)
			if err := c.Update(ctx, other); err != nil {
				return err
			}
		}
		return c.Patch(ctx, obj, p, opts...)
	}}
	k := &kube.Client{Name: "main", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(followers(t)[0]).WithInterceptorFuncs(funcs).Build()}
	lowered, err := queue.Lower(t.Context(), k, shrinking, 16)
	if err != nil || len(lowered) != 1 {
		t.Fatal(lowered, err)
	}
	got := &kueue.ClusterQueue{}
	if err := k.Get(t.Context(), client.ObjectKey{Name: "all"}, got); err != nil {
		t.Fatal(err)
	}
	if *got.Spec.StopPolicy != kueue.Hold || got.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Value() != 16 {
		t.Errorf("got %s with %v", *got.Spec.StopPolicy, got.Spec.ResourceGroups[0].Flavors[0].Resources[0])
	}
}

// Without Kueue nothing follows; a cluster that does not say is an error.
func TestLowerWithoutKueue(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"not installed": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ClusterQueue"}}, ""},
		"going":         {apierrors.NewNotFound(schema.GroupResource{Resource: "clusterqueues"}, ""), ""},
		"refused":       {errors.New("not today"), "listing ClusterQueues that follow " + shrinking + " on cluster main: not today"},
	} {
		funcs := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.err }}
		k := &kube.Client{Name: "main", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(funcs).Build()}
		lowered, err := queue.Lower(t.Context(), k, shrinking, 16)
		if len(lowered) > 0 || (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, lowered, err)
		}
	}
}
