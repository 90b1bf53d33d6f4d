package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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

// Before a pool shrinks, the quotas that follow it are lowered until they fit
// into it together, and what they lend with them; no other quota is touched.
func TestLowerFollowers(t *testing.T) {
	for _, c := range []struct {
		left    int64
		lowered []string
		want    map[string]string
	}{
		{5, nil, map[string]string{"all": "64 lends 48", "part": "16"}},
		{4, []string{"all"}, map[string]string{"all": "48 lends 48", "part": "16"}},
		{2, []string{"all", "part"}, map[string]string{"all": "32 lends 32", "part": "0"}},
		{0, []string{"all", "part"}, map[string]string{"all": "0 lends 0", "part": "0"}},
	} {
		k := cluster(t, nil, followers(t)...)
		lowered, err := queue.Lower(t.Context(), k, shrinking, c.left, 16)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.lowered, queuesOf(lowered)); diff != "" {
			t.Errorf("%d slices left: lowered (-want +got):\n%s", c.left, diff)
		}
		c.want["all v6e"], c.want["other-pool"], c.want["unbound"] = "576", "64", "64"
		if diff := cmp.Diff(c.want, quotas(t, k)); diff != "" {
			t.Errorf("%d slices left (-want +got):\n%s", c.left, diff)
		}
	}
}

func queuesOf(lowered []queue.Lowered) (names []string) {
	for _, l := range lowered {
		names = append(names, l.Queue)
	}
	return names
}

// What was lowered is raised again, except where somebody changed it since.
func TestRaise(t *testing.T) {
	k := cluster(t, nil, followers(t)...)
	want := quotas(t, k)
	lowered, err := queue.Lower(t.Context(), k, shrinking, 0, 16)
	if err != nil {
		t.Fatal(err)
	}
	part := &kueue.ClusterQueue{}
	if err := k.Get(t.Context(), client.ObjectKey{Name: "part"}, part); err != nil {
		t.Fatal(err)
	}
	part.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("160")
	if err := k.Update(t.Context(), part); err != nil {
		t.Fatal(err)
	}
	want["part"] = "160"
	for range 2 { // again, there is nothing left to do
		if err := queue.Raise(t.Context(), k, lowered); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, quotas(t, k)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// quotas are those of all queues in chips.
func quotas(t *testing.T, k *kube.Client) map[string]string {
	t.Helper()
	got := map[string]string{}
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
			name := q.Name
			if f.Name != "v5e" {
				name += " " + string(f.Name)
			}
			got[name] = text
		}
	}
	return got
}

// What jobs hold stays theirs as long as it can: the idle quota goes first. What
// they borrowed is another queue's.
func TestLowerTakesIdleQuotaFirst(t *testing.T) {
	s := slice(t, "v5litepod-16")
	for _, c := range []struct {
		quota, held [3]int64 // slices of the queues a, b and c; c's are borrowed as far as it has none
		left        int64
		want        [3]string
	}{
		{[3]int64{2, 2, 0}, [3]int64{2, 0, 1}, 2, [3]string{"32", "0", "0"}},
		{[3]int64{2, 2, 2}, [3]int64{0, 1, 0}, 3, [3]string{"16", "16", "16"}},
		{[3]int64{4, 4, 4}, [3]int64{4, 4, 0}, 6, [3]string{"48", "48", "0"}},
		{[3]int64{3, 1, 0}, [3]int64{0, 0, 0}, 2, [3]string{"32", "0", "0"}},
		{[3]int64{3, 3, 3}, [3]int64{3, 3, 3}, 1, [3]string{"16", "0", "0"}},
	} {
		var objs []client.Object
		for i, name := range []string{"a", "b", "c"} {
			cq := queue.Queue{Name: name, Cohort: "all", Quotas: []queue.Quota{{Flavor: "v5e", Slice: s, Slices: c.quota[i], Pool: shrinking}}}.ClusterQueue()
			chips := func(n int64) resource.Quantity { return *resource.NewQuantity(n*16, resource.DecimalSI) }
			cq.Status.FlavorsReservation = []kueue.FlavorUsage{{Name: "v5e", Resources: []kueue.ResourceUsage{
				{Name: "google.com/tpu", Total: chips(c.held[i]), Borrowed: chips(max(c.held[i]-c.quota[i], 0))}}}}
			objs = append(objs, cq)
		}
		k := cluster(t, nil, objs...)
		if _, err := queue.Lower(t.Context(), k, shrinking, c.left, 16); err != nil {
			t.Fatal(err)
		}
		got := quotas(t, k)
		if diff := cmp.Diff(map[string]string{"a": c.want[0], "b": c.want[1], "c": c.want[2]}, got); diff != "" {
			t.Errorf("%v of %v held, %d left (-want +got):\n%s", c.held, c.quota, c.left, diff)
		}
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
	lowered, err := queue.Lower(t.Context(), k, shrinking, 1, 16)
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
		lowered, err := queue.Lower(t.Context(), k, shrinking, 1, 16)
		if len(lowered) > 0 || (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, lowered, err)
		}
	}
}
