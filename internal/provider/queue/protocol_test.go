package queue_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const typ = "tpu_kueue_queue"

func TestMain(m *testing.M) { acctest.Main(m) }

// world is a cluster that has Kueue's kinds, and something that takes queues up
// as Kueue does.
func world(t *testing.T) (g *acctest.GKE, k *kube.Client, cluster string) {
	t.Helper()
	g = acctest.NewGKE(t)
	inSomeNamespace := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &kueue.ResourceFlavor{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{ObjectMeta: inSomeNamespace}, &kueue.Workload{ObjectMeta: inSomeNamespace})
	k = g.Cluster.Client(t)
	for name, of := range map[string]string{"v5e-4x4": "v5litepod-16", "v6e-8x8": "v6e-64"} {
		s, err := accelerator.Resolve(of)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Apply(t.Context(), queue.Flavor{Name: name, Slice: s}.Object(), kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			takeUp(ctx, k)
			time.Sleep(5 * time.Millisecond) // between two looks, as a controller's queue would
		}
	}()
	return g, k, g.MakeCluster(t, "main")
}

// takeUp gives every queue its condition.
func takeUp(ctx context.Context, k *kube.Client) {
	var all kueue.ClusterQueueList
	if k.List(ctx, &all) != nil {
		return
	}
	for i := range all.Items {
		q := &all.Items[i]
		want := metav1.Condition{Type: kueue.ClusterQueueActive, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: q.Generation}
		if missing := missingFlavor(ctx, k, q); missing != "" {
			want.Status, want.Reason, want.Message = metav1.ConditionFalse, kueue.ClusterQueueActiveReasonFlavorNotFound, "no flavor "+missing
		}
		if inactiveCheck(ctx, k, q) {
			want.Status, want.Reason, want.Message = metav1.ConditionFalse, kueue.ClusterQueueActiveReasonAdmissionCheckInactive, "inactive check"
		}
		if ptr.Deref(q.Spec.StopPolicy, kueue.None) != kueue.None {
			want.Status, want.Reason, want.Message = metav1.ConditionFalse, kueue.ClusterQueueActiveReasonStopped, "stopped"
		}
		if len(q.Status.Conditions) == 1 && q.Status.Conditions[0] == want {
			continue
		}
		before := q.DeepCopy()
		q.Status.Conditions, q.Status.FlavorsReservation = []metav1.Condition{want}, nil
		for _, g := range q.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				q.Status.FlavorsReservation = append(q.Status.FlavorsReservation, kueue.FlavorUsage{Name: f.Name})
			}
		}
		_ = k.Patch(ctx, q, client.MergeFrom(before))
	}
}

// inactiveCheck tells whether the queue names a check that is there and not active.
func inactiveCheck(ctx context.Context, k *kube.Client, q *kueue.ClusterQueue) bool {
	if q.Spec.AdmissionChecksStrategy == nil {
		return false
	}
	for _, c := range q.Spec.AdmissionChecksStrategy.AdmissionChecks {
		live := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: string(c.Name)}}
		if found, err := k.Fetch(ctx, live); err == nil && found && len(live.Status.Conditions) == 0 {
			return true
		}
	}
	return false
}

// missingFlavor names a flavor of slices that does not exist.
func missingFlavor(ctx context.Context, k *kube.Client, q *kueue.ClusterQueue) string {
	for _, g := range q.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			found, err := k.Fetch(ctx, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: string(f.Name)}})
			if slices.Contains(g.CoveredResources, accelerator.ResourceName) && !found && err == nil {
				return string(f.Name)
			}
		}
	}
	return ""
}

type object = map[string]any

// everything is a configuration that uses every attribute.
func everything(cluster string) object {
	return object{
		"cluster": cluster, "name": "team-a", "cohort": "all",
		"flavors": []any{
			object{"name": "v5e-4x4", "slice_pool": object{"id": cluster + "/nodePools/v5e", "accelerator": "v5litepod-16", "slice_count": 4}, "borrow_slices": 2, "lend_slices": 0},
			object{"name": "v6e-8x8", "accelerator": "v6e-64", "slices": 1},
		},
		"host_flavors": []any{
			object{"name": "cpu", "cpu": object{"quota": "200", "borrow": "50", "lend": "0"}, "memory": object{"quota": "1Ti"}},
			object{"name": "more-cpu", "cpu": object{"quota": "1500m"}, "memory": object{"quota": "64Gi"}},
		},
		"namespaces": []any{"team-a", "team-b"}, "namespace_stop_policies": object{"team-b": "Hold"}, "namespace_weights": object{"team-a": "2"},
		"queueing_strategy": "StrictFIFO", "stop_policy": "None",
		"preempt_within_queue": "LowerOrNewerEqualPriority", "reclaim_within_cohort": "Any", "borrow_within_cohort": "LowerPriority", "borrow_max_priority": 500,
		"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor", "flavor_preference": "PreemptionOverBorrowing",
		"fair_sharing_weight": "0.5", "admission_mode": "UsageBasedAdmissionFairSharing",
		"admission_checks": []any{object{"name": "provisioning", "on_flavors": []any{"v6e-8x8"}}, object{"name": "budget"}},
	}
}

func with(base, more object) object {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

// runner is one queue in state.
type runner struct {
	t      *testing.T
	p      *acctest.Protocol
	k      *kube.Client
	config object
}

// changes refreshes, and returns what a plan changes then.
func (r runner) changes(of *acctest.Resource) []string {
	r.t.Helper()
	fresh, text := r.p.Refresh(of)
	if fresh == nil || text != "" {
		r.t.Fatalf("refresh: %v, %s", fresh, text)
	}
	plan := r.p.Plan(typ, fresh, r.config)
	if plan.Text != "" || len(plan.Replace) > 0 {
		r.t.Errorf("plan: %s, replaces for %v", plan.Text, plan.Replace)
	}
	// What Kueue says of a queue that changes is known when it has changed.
	return slices.DeleteFunc(plan.Changed, func(attr string) bool { return attr == "status" })
}

func (r runner) hand(edit func(*kueue.ClusterQueue)) {
	r.t.Helper()
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	if found, err := r.k.Fetch(r.t.Context(), cq); err != nil || !found {
		r.t.Fatal(found, err)
	}
	before := cq.DeepCopy()
	edit(cq)
	if err := r.k.Patch(r.t.Context(), cq, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// Create, nothing to do, import, every field's drift shown as that field,
// update, destroy.
func TestLifecycle(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "team")
	config := everything(cluster)
	r, text := p.Apply(typ, nil, config)
	if text != "" || r == nil {
		t.Fatalf("create: %v, %s", r, text)
	}
	run := runner{t, p, k, config}
	if r.State["chips"] != 128 || r.State["status"] != "Active" || r.State["id"] != cluster+"/clusterQueues/team-a" {
		t.Errorf("chips %v, status %v, id %v", r.State["chips"], r.State["status"], r.State["id"])
	}
	first := r.State["flavors"].([]any)[0].(object)
	if first["slices"] != 4 || first["chips"] != 64 || first["accelerator"] != "v5litepod-16" {
		t.Errorf("what follows the slice pool is %v", first)
	}
	if diff := cmp.Diff([]string{}, run.changes(r), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a second plan changes (-want +got):\n%s", diff)
	}
	imported, text := p.Import(typ, cluster+"/clusterQueues/team-a")
	if text != "" {
		t.Fatal(text)
	}
	if diff := cmp.Diff(r.State, imported.State); diff != "" {
		t.Errorf("imported (-created +imported):\n%s", diff)
	}

	chips := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	for name, c := range map[string]struct {
		edit func(*kueue.ClusterQueue)
		want []string
	}{
		"quota": {func(q *kueue.ClusterQueue) { q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = chips(65) }, []string{"chips", "flavors"}},
		"pool":  {func(q *kueue.ClusterQueue) { q.Annotations = nil }, []string{"flavors"}},
		"cpu":   {func(q *kueue.ClusterQueue) { q.Spec.ResourceGroups[1].Flavors[0].Resources[0].BorrowingLimit = nil }, []string{"host_flavors"}},
		"namespaces": {func(q *kueue.ClusterQueue) {
			q.Spec.NamespaceSelector.MatchExpressions[0].Values = []string{"team-a", "team-b", "team-c"}
		}, []string{"namespaces"}},
		"cohort":   {func(q *kueue.ClusterQueue) { q.Spec.CohortName = "other" }, []string{"cohort"}},
		"strategy": {func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = kueue.BestEffortFIFO }, []string{"queueing_strategy"}},
		"stop":     {func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = ptr.To(kueue.Hold) }, []string{"stop_policy"}},
		"within":   {func(q *kueue.ClusterQueue) { q.Spec.Preemption.WithinClusterQueue = kueue.PreemptionPolicyNever }, []string{"preempt_within_queue"}},
		"reclaim":  {func(q *kueue.ClusterQueue) { q.Spec.Preemption.ReclaimWithinCohort = kueue.PreemptionPolicyNever }, []string{"reclaim_within_cohort"}},
		"borrow": {func(q *kueue.ClusterQueue) {
			q.Spec.Preemption.BorrowWithinCohort.Policy = kueue.BorrowWithinCohortPolicyNever
		}, []string{"borrow_within_cohort"}},
		"threshold": {func(q *kueue.ClusterQueue) {
			q.Spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold = ptr.To[int32](1)
		}, []string{"borrow_max_priority"}},
		"can borrow": {func(q *kueue.ClusterQueue) { q.Spec.FlavorFungibility.WhenCanBorrow = kueue.MayStopSearch }, []string{"when_can_borrow"}},
		"can evict":  {func(q *kueue.ClusterQueue) { q.Spec.FlavorFungibility.WhenCanPreempt = kueue.MayStopSearch }, []string{"when_can_preempt"}},
		"preference": {func(q *kueue.ClusterQueue) { q.Spec.FlavorFungibility.Preference = nil }, []string{"flavor_preference"}},
		"weight":     {func(q *kueue.ClusterQueue) { q.Spec.FairSharing.Weight = ptr.To(resource.MustParse("2")) }, []string{"fair_sharing_weight"}},
		"admission":  {func(q *kueue.ClusterQueue) { q.Spec.AdmissionScope.AdmissionMode = kueue.NoAdmissionFairSharing }, []string{"admission_mode"}},
		"checks":     {func(q *kueue.ClusterQueue) { q.Spec.AdmissionChecksStrategy.AdmissionChecks[0].OnFlavors = nil }, []string{"admission_checks"}},
	} {
		was := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
		if _, err := k.Fetch(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		run.hand(c.edit)
		if diff := cmp.Diff(c.want, run.changes(r)); diff != "" {
			t.Errorf("%s changed by hand (-want +planned):\n%s", name, diff)
		}
		run.hand(func(q *kueue.ClusterQueue) { q.Spec, q.Annotations = was.Spec, was.Annotations })
	}

	run.config = with(config, object{"namespaces": []any{"team-a"}, "namespace_stop_policies": nil, "stop_policy": "Hold", "host_flavors": nil, "admission_checks": nil})
	if r, text = p.Apply(typ, r, run.config); text != "" || r.State["status"] != "Stopped" {
		t.Fatalf("update: status %v, %s", r.State["status"], text)
	}
	if diff := cmp.Diff([]string{}, run.changes(r), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("after the update a plan changes (-want +got):\n%s", diff)
	}
	var doors kueue.LocalQueueList
	if err := k.List(t.Context(), &doors); err != nil || len(doors.Items) != 1 || doors.Items[0].Namespace != "team-a" {
		t.Errorf("LocalQueues: %v, %v", doors.Items, err)
	}
	if left, text := p.Destroy(r); left != nil || text != "" {
		t.Errorf("destroy: %v, %s", left, text)
	}
	if err := k.List(t.Context(), &doors); err != nil || len(doors.Items) != 0 {
		t.Errorf("LocalQueues after the destroy: %v, %v", doors.Items, err)
	}
	if gone, text := p.Refresh(r); gone != nil || text != "" {
		t.Errorf("after the destroy: %v, %s", gone, text)
	}
}

// A door that is shut, given a weight or taken away by hand is shown as such.
func TestDriftOfDoors(t *testing.T) {
	g, k, cluster := world(t)
	run := runner{t, g.Protocol(t, ""), k, everything(cluster)}
	r, text := run.p.Apply(typ, nil, run.config)
	if text != "" {
		t.Fatal(text)
	}
	door := func(namespace, patch string) {
		t.Helper()
		lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team-a"}}
		if err := k.Patch(t.Context(), lq, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	door("team-a", `{"spec":{"stopPolicy":"HoldAndDrain"}}`)
	if diff := cmp.Diff([]string{"namespace_stop_policies"}, run.changes(r)); diff != "" {
		t.Error(diff)
	}
	door("team-a", `{"spec":{"stopPolicy":"None","fairSharing":{"weight":"3"}}}`)
	if diff := cmp.Diff([]string{"namespace_weights"}, run.changes(r)); diff != "" {
		t.Error(diff)
	}
	door("team-a", `{"spec":{"fairSharing":{"weight":"2"}}}`)
	if err := k.Remove(t.Context(), &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "team-a"}}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"namespace_weights", "namespaces"}, run.changes(r)); diff != "" {
		t.Error(diff)
	}
	if r, text = run.p.Apply(typ, r, run.config); text != "" {
		t.Fatal(text)
	}
	if diff := cmp.Diff([]string{}, run.changes(r), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// The quota of a queue that follows a slice pool is the pool's, or a share of it.
func TestQueueFollowsASlicePool(t *testing.T) {
	g, k, cluster := world(t)
	p := g.Protocol(t, "")
	pool := func(count any) object {
		return object{"id": cluster + "/nodePools/v5e", "accelerator": "v5litepod-16", "slice_count": count}
	}
	config := func(flavor object) object {
		return object{"cluster": cluster, "name": "team-a", "flavors": []any{with(object{"name": "v5e-4x4"}, flavor)}}
	}
	counts := func(plan map[string]any) string {
		f := plan["flavors"].([]any)[0].(object)
		return fmt.Sprint(f["slices"], f["chips"], plan["chips"])
	}
	r, text := p.Apply(typ, nil, config(object{"slice_pool": pool(4)}))
	if text != "" {
		t.Fatal(text)
	}
	live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	if _, err := k.Fetch(t.Context(), live); err != nil || queue.SlicePools(live)["v5e-4x4"] != cluster+"/nodePools/v5e" {
		t.Errorf("the queue follows %v (%v)", queue.SlicePools(live), err)
	}
	if got := counts(p.Plan(typ, r, config(object{"slice_pool": pool(2)})).Planned); got != "2 32 32" {
		t.Errorf("when the pool shrinks, %s is planned", got)
	}
	unknown := fmt.Sprint(acctest.Unknown, acctest.Unknown, acctest.Unknown)
	if got := counts(p.Plan(typ, r, config(object{"slice_pool": pool(acctest.Unknown)})).Planned); got != unknown {
		t.Errorf("when the pool is not known, %s is planned", got)
	}
	// The pool has lowered the quota, and the apply did not come to the queue.
	if _, err := queue.Lower(t.Context(), k, cluster+"/nodePools/v5e", 1, 16); err != nil {
		t.Fatal(err)
	}
	run := runner{t, p, k, config(object{"slice_pool": pool(4)})}
	if diff := cmp.Diff([]string{"chips", "flavors"}, run.changes(r)); diff != "" {
		t.Errorf("a quota that was lowered (-want +planned):\n%s", diff)
	}
	share, text := p.Apply(typ, r, config(object{"slice_pool": pool(4), "slices": 3}))
	if text != "" || share.State["chips"] != 48 {
		t.Errorf("a share of 3 slices: %v chips, %s", share.State["chips"], text)
	}
}

// Queues that together hand out more than the slice pool that they follow has
// are told of, by the plan that has them all.
func TestQueuesThatShareASlicePool(t *testing.T) {
	g, _, cluster := world(t)
	config := func(name string, slices int) object {
		pool := object{"id": cluster + "/nodePools/v5e", "accelerator": "v5litepod-16", "slice_count": 4}
		return object{"cluster": cluster, "name": name, "flavors": []any{object{"name": "v5e-4x4", "slice_pool": pool, "slices": slices}}}
	}
	for _, c := range []struct {
		a, b int
		want string
	}{{2, 2, ""}, {4, 0, ""}, {4, 1, "Queues a, b hand out 5 slices of " + cluster + "/nodePools/v5e, which has 4."}} {
		p := g.Protocol(t, "")
		first := p.Plan(typ, nil, config("a", c.a))
		again := p.Plan(typ, nil, config("a", c.a)) // as Terraform does in a replacement
		second := p.Plan(typ, nil, config("b", c.b))
		if first.Text+again.Text != "" || !strings.Contains(second.Text, c.want) || c.want == "" && second.Text != "" || strings.Contains(second.Text, "ERROR") {
			t.Errorf("%d and %d slices: %q, %q, %q", c.a, c.b, first.Text, again.Text, second.Text)
		}
	}
}

// What Kueue would refuse, and what means nothing, is refused before anything
// is written.
func TestRefusals(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	flavors := func(all ...object) object {
		var list []any
		for _, f := range all {
			list = append(list, f)
		}
		return object{"flavors": list}
	}
	v5e := object{"name": "v5e-4x4", "accelerator": "v5litepod-16", "slices": 2}
	pool := object{"id": cluster + "/nodePools/v5e", "accelerator": "v5litepod-16", "slice_count": 2}
	for name, c := range map[string]struct {
		change object
		want   string
	}{
		"nothing to hand out":     {flavors(), "flavors"},
		"no slices":               {flavors(object{"name": "v5e-4x4", "accelerator": "v5litepod-16"}), "flavors[0] says neither how many slices"},
		"no accelerator":          {flavors(object{"name": "v5e-4x4", "slices": 1}), "flavors[0] says neither which slices"},
		"more than the pool":      {flavors(object{"name": "v5e-4x4", "slice_pool": pool, "slices": 3}), "3 slices of a slice pool that has 2"},
		"negative":                {flavors(with(v5e, object{"slices": -1})), "at least 0"},
		"twice":                   {flavors(v5e, v5e), "listed twice"},
		"lends more than it has":  {flavors(with(v5e, object{"lend_slices": 3})), "cannot lend 3 slices out of 2"},
		"no cohort":               {with(flavors(with(v5e, object{"borrow_slices": 1})), object{"cohort": nil, "host_flavors": nil}), "need a cohort"},
		"bad quantity":            {object{"host_flavors": []any{object{"name": "cpu", "cpu": object{"quota": "many"}}}}, "not a quantity"},
		"negative quantity":       {object{"host_flavors": []any{object{"name": "cpu", "cpu": object{"quota": "-1"}}}}, "negative"},
		"bad weight":              {object{"fair_sharing_weight": "-1"}, "negative"},
		"bad weight of a door":    {object{"namespace_weights": object{"team-a": "0.0000000001"}}, "too small"},
		"bad door policy":         {object{"namespace_stop_policies": object{"team-a": "None"}}, "Hold"},
		"stranger at the door":    {object{"namespace_stop_policies": object{"team-z": "Hold"}}, "team-z has a stop policy"},
		"check on strange flavor": {object{"admission_checks": []any{object{"name": "c", "on_flavors": []any{"v4"}}}}, "which the queue has not"},
		"borrows by force":        {object{"reclaim_within_cohort": nil}, "reclaim_within_cohort is Never"},
		"preference":              {object{"when_can_borrow": nil}, "needs TryNextFlavor"},
		"system namespace":        {object{"namespaces": []any{"kube-system"}}, "belong to Kubernetes"},
		"unknown strategy":        {object{"queueing_strategy": "LIFO"}, "LIFO"},
	} {
		if text := p.Validate(typ, with(everything(cluster), c.change)); !strings.Contains(text, "ERROR") || !strings.Contains(text, c.want) {
			t.Errorf("%s: want an error with %q, got %q", name, c.want, text)
		}
	}
}

// What depends on values that only the apply knows is not checked before.
func TestUnknownValues(t *testing.T) {
	g, _, cluster := world(t)
	p := g.Protocol(t, "")
	for name := range everything(cluster) {
		config := with(everything(cluster), object{name: acctest.Unknown})
		if text := p.Validate(typ, config); text != "" {
			t.Errorf("%s unknown: %s", name, text)
		}
		if plan := p.Plan(typ, nil, config); plan.Text != "" {
			t.Errorf("%s unknown: %s", name, plan.Text)
		}
	}
	for _, name := range []string{"name", "accelerator", "slice_pool", "slices", "borrow_slices", "lend_slices", "cpu", "memory"} {
		f := object{"name": "v5e-4x4", "accelerator": "v5litepod-16", "slices": 2, name: acctest.Unknown}
		config := object{"cluster": cluster, "name": "team-a", "cohort": "all", "flavors": []any{f}}
		if plan := p.Plan(typ, nil, config); p.Validate(typ, config)+plan.Text != "" {
			t.Errorf("%s of a flavor unknown: %s", name, plan.Text)
		}
	}
}

// A LocalQueue of that name that leads elsewhere is not turned around.
func TestSomebodyElsesDoor(t *testing.T) {
	g, k, cluster := world(t)
	if err := k.Apply(t.Context(), queue.Queue{Name: "other"}.LocalQueue("team-a"), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "team-a"}}
	theirs.Spec.ClusterQueue = "other"
	if err := k.Apply(t.Context(), theirs, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	_, text := g.Protocol(t, "").Apply(typ, nil, everything(cluster))
	if !strings.Contains(text, "namespace team-a already has a LocalQueue team-a, which leads to queue other") {
		t.Errorf("got %s", text)
	}
}
