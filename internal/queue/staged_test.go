package queue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// What the settings of a queue mean, staged on the real Kueue, and what it takes
// of random objects. The scenes share a control plane and nothing else.
func TestOnTheRealKueue(t *testing.T) {
	s := newStage(t)
	t.Run("scenes", func(t *testing.T) {
		t.Run("random", func(t *testing.T) {
			t.Parallel()
			randomKinds(t, s.cl)
		})
		for name, play := range map[string]func(*scene){
			"borrow": borrowLendReclaim, "limit": borrowingLimit, "strict": strictFIFO, "best-effort": bestEffortFIFO, "stopped": stoppedQueue,
			"priority": preemptionAndReturn, "shares": fairSharing, "gang": wholeGang, "pool": followedPool,
			"everything": everySetting,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(s.scene(t, name))
			})
		}
	})
	t.Run("down", func(t *testing.T) { kueueDown(t, s) })
}

// Two teams in a cohort: one borrows what the other lends and not more; the
// other takes its own back, and what had to go comes back after it.
func borrowLendReclaim(s *scene) {
	s.opens(queue.Queue{Name: "borrow-a", Cohort: "borrow", Quotas: s.quota(2, nil, nil)})
	b := queue.Queue{Name: "borrow-b", Cohort: "borrow", Quotas: s.quota(2, nil, ptr.To[int64](1)),
		Preemption: queue.Preemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}}
	s.opens(b)
	s.submits("borrow-a", "", "ba1", "ba2", "ba3")
	s.sees("borrow-a", "ba1 ba2 ba3", "")
	s.submits("borrow-a", "", "ba4")
	s.until("borrow-a", "keeps ba4 waiting and says why, with 3 slices used and 1 of them borrowed", func(st queue.Status) bool {
		f := st.Flavors[0]
		return names(st.Pending) == "ba4" && st.Pending[0].Message != "" && f.Slices(f.Quota) == 2 && f.Slices(f.Used) == 3 && f.Slices(f.Borrowed) == 1
	})
	s.submits("borrow-b", "", "bb1", "bb2") // the second slice is lent out
	s.sees("borrow-b", "bb1 bb2", "")
	s.until("borrow-a", "holds only its own", func(st queue.Status) bool {
		return len(st.Admitted) == 2 && len(st.Pending) == 2 && st.Flavors[0].Borrowed == 0
	})
	s.ends("borrow-b", "bb1", "bb2")
	s.until("borrow-a", "borrows again", func(st queue.Status) bool { return len(st.Admitted) == 3 && len(st.Pending) == 1 })
	b.Quotas = s.quota(2, nil, nil) // lends everything
	s.opens(b)
	s.sees("borrow-a", "ba1 ba2 ba3 ba4", "")
}

// A queue takes no more from its cohort than its limit says.
func borrowingLimit(s *scene) {
	a := queue.Queue{Name: "limit-a", Cohort: "limit", Quotas: s.quota(1, ptr.To[int64](1), nil)}
	s.opens(a)
	s.opens(queue.Queue{Name: "limit-b", Cohort: "limit", Quotas: s.quota(3, nil, nil)})
	s.submits("limit-a", "", "la1", "la2")
	s.sees("limit-a", "la1 la2", "")
	s.submits("limit-a", "", "la3")
	s.until("limit-a", "keeps la3 waiting and says why", func(st queue.Status) bool {
		return names(st.Pending) == "la3" && st.Pending[0].Message != ""
	})
	a.Quotas = s.quota(1, ptr.To[int64](2), nil)
	s.opens(a)
	s.sees("limit-a", "la1 la2 la3", "")
}

// A job that does not fit holds up those behind it. The order is by priority:
// the age of jobs that were made within one second is the same.
func strictFIFO(s *scene) {
	s.opens(queue.Queue{Name: "strict", Strategy: kueue.StrictFIFO, Quotas: s.quota(2, nil, nil)})
	s.submits("strict", "high", "st1")
	s.sees("strict", "st1", "")
	s.submit("strict", "medium", "st-big", 2)
	s.sees("strict", "st1", "st-big")
	s.submits("strict", "low", "st-small") // would fit
	st := s.sees("strict", "st1", "st-big st-small")
	if !st.Ordered || st.Pending[0].Name != "st-big" || st.Pending[0].Position != 1 || st.Pending[1].Position != 2 {
		s.t.Errorf("the order is %+v, told by Kueue: %t", st.Pending, st.Ordered)
	}
	s.ends("strict", "st1")
	s.sees("strict", "st-big", "st-small")
	s.ends("strict", "st-big")
	s.sees("strict", "st-small", "")
	if !s.before("st-big", "st-small") {
		s.t.Error("the small job passed the big one")
	}
	for holder, want := range map[string]int{"strict": 1, "": 0} { // this server selects, so that not all Workloads need be read
		var all kueue.WorkloadList
		err := s.cl.List(s.t.Context(), &all, client.InNamespace("strict"), client.MatchingFields{"status.admission.clusterQueue": holder})
		if err != nil || len(all.Items) != want {
			s.t.Errorf("Workloads that hold quota of %q: %d, %v", holder, len(all.Items), err)
		}
	}
}

// A job that does not fit lets smaller ones pass.
func bestEffortFIFO(s *scene) {
	s.opens(queue.Queue{Name: "best-effort", Strategy: kueue.BestEffortFIFO, Quotas: s.quota(2, nil, nil)})
	s.submits("best-effort", "", "be1")
	s.sees("best-effort", "be1", "")
	s.submit("best-effort", "", "be-big", 2)
	s.sees("best-effort", "be1", "be-big")
	s.submits("best-effort", "", "be-small")
	s.sees("best-effort", "be-small be1", "be-big")
	s.ends("best-effort", "be1", "be-small")
	s.sees("best-effort", "be-big", "")
	if !s.before("be-small", "be-big") {
		s.t.Error("the small job did not pass")
	}
}

// A queue on hold lets run what runs; one that is drained does not; once it is
// open, everything goes on.
func stoppedQueue(s *scene) {
	q := queue.Queue{Name: "stopped", Quotas: s.quota(2, nil, nil)}
	s.opens(q)
	s.submits("stopped", "", "sq1")
	s.sees("stopped", "sq1", "")
	q.Stop = kueue.Hold
	s.opens(q)
	st := s.until("stopped", "is stopped", func(st queue.Status) bool { return !st.Active })
	if st.Reason != "Stopped" || !strings.Contains(st.Message, "set stop_policy to None") {
		s.t.Errorf("got %s: %s", st.Reason, st.Message)
	}
	s.submits("stopped", "", "sq2")
	s.sees("stopped", "sq1", "sq2")
	q.Stop = kueue.HoldAndDrain
	s.opens(q)
	s.sees("stopped", "", "sq1 sq2")
	q.Stop = kueue.None
	s.opens(q)
	s.sees("stopped", "sq1 sq2", "")
}

// A job of higher priority takes the place of a lower one, which comes back.
func preemptionAndReturn(s *scene) {
	s.opens(queue.Queue{Name: "priority", Quotas: s.quota(1, nil, nil)})
	s.submits("priority", "low", "pr-low")
	s.sees("priority", "pr-low", "")
	s.submits("priority", "high", "pr-high")
	st := s.sees("priority", "pr-high", "pr-low")
	if st.Admitted[0].PriorityClass != "high" || st.Pending[0].PriorityClass != "low" || st.Pending[0].Position != 1 {
		s.t.Errorf("got %+v and %+v", st.Admitted, st.Pending)
	}
	s.submits("priority", "medium", "pr-medium") // waits: it is lower than what runs
	st = s.sees("priority", "pr-high", "pr-low pr-medium")
	if st.Pending[0].Name != "pr-medium" {
		s.t.Errorf("the next is %s, want pr-medium", st.Pending[0].Name)
	}
	s.ends("priority", "pr-high")
	s.sees("priority", "pr-medium", "pr-low")
	s.ends("priority", "pr-medium")
	s.sees("priority", "pr-low", "")
}

// What belongs to nobody is shared by weight, also when one team came first.
func fairSharing(s *scene) {
	weight := func(w string) *resource.Quantity { return ptr.To(resource.MustParse(w)) }
	s.opens(queue.Queue{Name: "shares-idle", Cohort: "shares", Quotas: s.quota(4, nil, nil)})
	anybody := queue.Preemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}
	s.opens(queue.Queue{Name: "shares-a", Cohort: "shares", Quotas: s.quota(0, nil, nil), Weight: weight("3"), Preemption: anybody})
	s.opens(queue.Queue{Name: "shares-b", Cohort: "shares", Quotas: s.quota(0, nil, nil), Weight: weight("1"), Preemption: anybody})
	s.submits("shares-a", "", "sa1", "sa2", "sa3", "sa4")
	s.sees("shares-a", "sa1 sa2 sa3 sa4", "")
	s.submits("shares-b", "", "sb1", "sb2")
	s.until("shares-b", "has one slice of four", func(st queue.Status) bool { return len(st.Admitted) == 1 && len(st.Pending) == 1 })
	s.until("shares-a", "has three slices of four, and a share for them", func(st queue.Status) bool {
		return len(st.Admitted) == 3 && len(st.Pending) == 1 && st.Share > 0
	})
}

// A job of two slices waits whole while one is free, and then runs whole.
func wholeGang(s *scene) {
	s.opens(queue.Queue{Name: "gang", Quotas: s.quota(2, nil, nil)})
	s.submits("gang", "", "ga1")
	s.sees("gang", "ga1", "")
	job := training.Spec{Namespace: "gang", Name: "gang", Queue: "gang", Slice: s.slice, Slices: 2,
		Image: "train:1", Command: []string{"train"}, Restart: training.DefaultRestart()}
	if _, err := training.Submit(s.t.Context(), s.cl, job); err != nil {
		s.t.Fatal(err)
	}
	st := s.until("gang", "keeps the gang waiting and says why", func(st queue.Status) bool {
		return names(st.Pending) == "gang" && st.Pending[0].Message != ""
	})
	if w := st.Pending[0]; w.Slices != 2 || w.Kind != "JobSet" {
		s.t.Errorf("what waits is %+v", w)
	}
	if pods := s.pods("gang"); len(pods) > 0 {
		s.t.Fatalf("half of the gang is there: %v", pods)
	}
	s.ends("gang", "ga1")
	s.sees("gang", "gang", "")
	run := s.running("gang")
	pools := map[string]bool{}
	for _, slice := range run.SliceRuns {
		pools[slice.NodePool] = true
	}
	if len(pools) != 2 || run.HostsReady != 2 {
		s.t.Errorf("the gang runs on %v with %d hosts ready, want both slices", pools, run.HostsReady)
	}
}

func (s *scene) pods(job string) (names []string) {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.cl.List(s.t.Context(), &pods, client.MatchingLabels{jobset.JobSetNameKey: job}); err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

func (s *scene) running(job string) training.Run {
	s.t.Helper()
	run, err := training.Wait(s.t.Context(), s.cl, client.ObjectKey{Namespace: s.name, Name: job}, training.LevelRunning, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// A quota that follows a slice pool is lowered before the pool shrinks: what
// runs stays, and nothing new is admitted to slices that are going.
func followedPool(s *scene) {
	q := queue.Queue{Name: "pool", Quotas: s.quota(2, nil, nil)}
	q.Quotas[0].Pool = shrinking
	s.opens(q)
	s.submits("pool", "", "po1")
	s.sees("pool", "po1", "")
	lowered, err := queue.Lower(s.t.Context(), s.cl, shrinking, 1, int64(s.slice.Chips))
	if err != nil || len(lowered) != 1 || lowered[0].Queue != "pool" {
		s.t.Fatalf("lowered %v, %v", lowered, err)
	}
	s.submits("pool", "", "po2")
	st := s.until("pool", "keeps po2 waiting and says why", func(st queue.Status) bool {
		return names(st.Admitted) == "po1" && names(st.Pending) == "po2" && st.Pending[0].Message != ""
	})
	if f := st.Flavors[0]; f.Slices(f.Quota) != 1 {
		s.t.Errorf("the quota is %+v, want 1 slice", f)
	}
	s.opens(q) // the pool has grown again
	s.sees("pool", "po1 po2", "")
}

// A queue with every setting is taken by the real webhooks and read back as it
// was written; one that lacks what it names says so.
func everySetting(s *scene) {
	q := everything(s.t)
	q.Quotas[0].Pool += "-of-everything" // another scene's pool shrinks
	s.apply(queue.Namespace{Name: "team-a"}.Objects()[0], queue.Namespace{Name: "team-b"}.Objects()[0],
		q.ClusterQueue(), q.LocalQueue("team-a"), q.LocalQueue("team-b"))
	s.readsBack(q)
	q.Stop, q.Weight, q.Checks, q.Quotas[0].Borrow = kueue.None, nil, nil, nil
	s.apply(q.ClusterQueue())
	s.readsBack(q)
	st := s.until("team-a", "misses its flavors", func(st queue.Status) bool { return st.Reason == kueue.ClusterQueueActiveReasonFlavorNotFound })
	if !strings.Contains(st.Message, "v5e-4x4") || !strings.Contains(st.Message, "tpu_kueue_flavor") {
		s.t.Errorf("it says %s", st.Message)
	}
}

func (s *scene) readsBack(want queue.Queue) {
	s.t.Helper()
	live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: want.Name}}
	var all kueue.LocalQueueList
	if found, err := s.cl.Fetch(s.t.Context(), live); err != nil || !found {
		s.t.Fatal(found, err)
	}
	if err := s.cl.List(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	doors := slices.DeleteFunc(all.Items, func(lq kueue.LocalQueue) bool { return string(lq.Spec.ClusterQueue) != want.Name })
	got := queue.FromLive(live, doors, want, nil)
	same := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(want.ClusterQueue(), got.ClusterQueue(), same); diff != "" {
		s.t.Errorf("ClusterQueue (-written +read):\n%s", diff)
	}
	for _, ns := range want.Namespaces {
		if diff := cmp.Diff(want.LocalQueue(ns), got.LocalQueue(ns), same); diff != "" {
			s.t.Errorf("LocalQueue (-written +read):\n%s", diff)
		}
	}
}

// While Kueue is down its queues can be read, but not written, and the error
// says what is down.
func kueueDown(t *testing.T, s *stage) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager"}}
	if err := s.cl.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
		t.Fatal(err)
	}
	if err := s.cl.Until(t.Context(), d, func(bool) (bool, error) { return d.Status.Replicas == 0, nil }); err != nil {
		t.Fatal(err)
	}
	st, err := queue.ReadStatus(t.Context(), s.cl, "strict")
	if err != nil || st.Ordered || names(st.Admitted) != "st-small" {
		t.Errorf("got %+v, %v", st, err)
	}
	_, err = queue.Lower(t.Context(), s.cl, shrinking, 0, 4)
	if err == nil || !strings.Contains(err.Error(), "Service kueue-webhook-service in namespace kueue-system is down") {
		t.Errorf("lowering a quota: %v", err)
	}
}
