package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// live is the queue as its cluster has it, after a change made by hand.
func live(t *testing.T, q queue.Queue, edit func(*kueue.ClusterQueue, *[]kueue.LocalQueue)) queue.Queue {
	t.Helper()
	cq := q.ClusterQueue()
	var doors []kueue.LocalQueue
	for _, ns := range q.Namespaces {
		doors = append(doors, *q.LocalQueue(ns))
	}
	if edit != nil {
		edit(cq, &doors)
	}
	return queue.FromLive(cq, doors, q, nil)
}

// What is rendered is read back as it was written: a second plan is empty.
func TestLiveQueueIsTheWrittenOne(t *testing.T) {
	for _, q := range []queue.Queue{everything(t), {Name: "closed"}} {
		got := live(t, q, nil)
		if diff := cmp.Diff(q.ClusterQueue(), got.ClusterQueue()); diff != "" {
			t.Errorf("ClusterQueue (-written +read):\n%s", diff)
		}
		for _, ns := range q.Namespaces {
			if diff := cmp.Diff(q.LocalQueue(ns), got.LocalQueue(ns)); diff != "" {
				t.Errorf("LocalQueue (-written +read):\n%s", diff)
			}
		}
		if err := got.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// An import knows nothing before: the slice follows from the flavor's labels.
func TestImportedQueueFindsItsSlices(t *testing.T) {
	q := everything(t)
	var doors []kueue.LocalQueue
	for _, ns := range q.Namespaces {
		doors = append(doors, *q.LocalQueue(ns))
	}
	got := queue.FromLive(q.ClusterQueue(), doors, queue.Queue{}, func(flavor string) (accelerator.Slice, bool) {
		for _, quota := range q.Quotas {
			if quota.Flavor == flavor {
				return quota.Slice, true
			}
		}
		return accelerator.Slice{}, false
	})
	if diff := cmp.Diff(q.Quotas, got.Quotas); diff != "" {
		t.Error(diff)
	}
}

// What somebody changes by hand is read as a change of exactly that setting.
func TestChangesByHandShow(t *testing.T) {
	flavor := func(q *kueue.ClusterQueue, group, i int) *kueue.FlavorQuotas {
		return &q.Spec.ResourceGroups[group].Flavors[i]
	}
	chips := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	for name, c := range map[string]struct {
		hand func(*kueue.ClusterQueue, *[]kueue.LocalQueue)
		want func(*queue.Queue)
	}{
		"quota": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			flavor(q, 0, 0).Resources[0].NominalQuota = chips(32)
		},
			func(q *queue.Queue) { q.Quotas[0].Slices = 2 }},
		"quota of part of a slice more": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			flavor(q, 0, 0).Resources[0].NominalQuota = chips(65)
		},
			func(q *queue.Queue) { q.Quotas[0].Slices = 5 }},
		"quota of part of a slice less": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			flavor(q, 0, 0).Resources[0].NominalQuota = chips(63)
		},
			func(q *queue.Queue) { q.Quotas[0].Slices = 3 }},
		"borrowing limit taken away": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { flavor(q, 0, 0).Resources[0].BorrowingLimit = nil },
			func(q *queue.Queue) { q.Quotas[0].Borrow = nil }},
		"lending limit given": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			flavor(q, 0, 1).Resources[0].LendingLimit = ptr.To(chips(64))
		},
			func(q *queue.Queue) { q.Quotas[1].Lend = ptr.To[int64](1) }},
		"order of flavors": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			f := q.Spec.ResourceGroups[0].Flavors
			f[0], f[1] = f[1], f[0]
		}, func(q *queue.Queue) { q.Quotas[0], q.Quotas[1] = q.Quotas[1], q.Quotas[0] }},
		"memory": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			flavor(q, 1, 1).Resources[1].NominalQuota = resource.MustParse("1Gi")
		}, func(q *queue.Queue) { q.Hosts[1].Memory = host("1Gi") }},
		"pool":        {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Annotations = nil }, func(q *queue.Queue) { q.Quotas[0].Pool = "" }},
		"cohort":      {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.CohortName = "" }, func(q *queue.Queue) { q.Cohort = "" }},
		"stop policy": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.StopPolicy = nil }, func(q *queue.Queue) { q.Stop = kueue.None }},
		"strategy":    {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.QueueingStrategy = kueue.BestEffortFIFO }, func(q *queue.Queue) { q.Strategy = kueue.BestEffortFIFO }},
		"threshold": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			q.Spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold = nil
		}, func(q *queue.Queue) { q.Preemption.MaxPriority = nil }},
		"preference": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.FlavorFungibility.Preference = nil }, func(q *queue.Queue) { q.Fungibility.Preference = "" }},
		"weight":     {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.FairSharing = nil }, func(q *queue.Queue) { q.Weight = nil }},
		"admission":  {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.AdmissionScope = nil }, func(q *queue.Queue) { q.Admission = "" }},
		"checks":     {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.AdmissionChecksStrategy = nil }, func(q *queue.Queue) { q.Checks = nil }},
		"opened to all": {func(c *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { c.Spec.NamespaceSelector = &metav1.LabelSelector{} },
			func(q *queue.Queue) { q.Namespaces = []string{"*", "team-a", "team-b"} }},
		"door deleted": {func(_ *kueue.ClusterQueue, d *[]kueue.LocalQueue) { *d = (*d)[:1] }, func(q *queue.Queue) { q.Namespaces, q.Stopped = []string{"team-a"}, nil }},
		"door opened":  {func(_ *kueue.ClusterQueue, d *[]kueue.LocalQueue) { (*d)[1].Spec.StopPolicy = nil }, func(q *queue.Queue) { q.Stopped = nil }},
		"door's weight": {func(_ *kueue.ClusterQueue, d *[]kueue.LocalQueue) { (*d)[0].Spec.FairSharing = nil },
			func(q *queue.Queue) { q.Weights = nil }},
		"namespace let in": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			q.Spec.NamespaceSelector.MatchExpressions[0].Values = []string{"team-a", "team-b", "team-c"}
		}, func(q *queue.Queue) { q.Namespaces = []string{"team-a", "team-b", "team-c"} }},
		"namespace kept out": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			q.Spec.NamespaceSelector.MatchExpressions[0].Values = []string{"team-a"}
		}, func(q *queue.Queue) { q.Namespaces, q.Stopped = []string{"team-a"}, nil }},
		"everybody kept out": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) { q.Spec.NamespaceSelector = nil },
			func(q *queue.Queue) { q.Namespaces, q.Stopped, q.Weights = nil, nil, nil }},
		"selected by another label": {func(q *kueue.ClusterQueue, _ *[]kueue.LocalQueue) {
			q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		}, func(q *queue.Queue) { q.Namespaces, q.Stopped, q.Weights = []string{"team=a"}, nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			want := everything(t)
			c.want(&want)
			if diff := cmp.Diff(want, live(t, everything(t), c.hand)); diff != "" {
				t.Errorf("(-want +read):\n%s", diff)
			}
		})
	}
}

func TestWeights(t *testing.T) {
	for _, w := range []string{"0", "1", "0.5", "500m", "0.000000002", "123456.789", "1e9"} {
		if _, err := queue.ParseWeight(w); err != nil {
			t.Errorf("%s is refused: %v", w, err)
		}
	}
	for w, want := range map[string]string{"0": "0", "500m": "0.5", "10": "10", "1500m": "1.5", "2k": "2000"} {
		if got := queue.WeightText(resource.MustParse(w)); got != want {
			t.Errorf("%s is written %s", w, got)
		}
	}
	for w, want := range map[string]string{"-1": "negative", "1n": "too small", "0.0000000001": "too small", "heavy": "not a weight", "": "not a weight"} {
		_, err := queue.ParseWeight(w)
		refused(t, err, want)
	}
}
