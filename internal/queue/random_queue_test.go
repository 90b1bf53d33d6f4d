package queue_test

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// queue draws a ClusterQueue with its LocalQueues, in namespaces that exist.
func (d dice) queue() sample {
	q := queue.Queue{Name: d.name("queue"), Cohort: d.name(pick(d, "", "all", "all", "all"))}
	cpu, memory := d.IntN(4) == 0, d.IntN(4) == 0
	d.quotas(&q, cpu, memory)
	if d.IntN(3) == 0 && (!cpu && !memory || d.rarely()) {
		d.hostFlavors(&q)
	}
	d.policies(&q)
	d.namespaces(&q)
	if d.IntN(4) == 0 {
		d.checks(&q)
	}
	s := sample{says: q.Validate(), objects: []client.Object{q.ClusterQueue()}}
	for _, ns := range q.Namespaces {
		s.objects = append(s.objects, q.LocalQueue(ns))
	}
	return s
}

// few is a small number; seldom as many as Kueue takes, or one more.
func (d dice) few() int {
	if d.rarely() {
		return pick(d, 0, 64, 65)
	}
	return pick(d, 1, 1, 2, 3)
}

func (d dice) quotas(q *queue.Queue, cpu, memory bool) {
	for i := range d.few() {
		name := "flavor" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if i < 3 && d.rarely() {
			name = d.name("flavoraa")
		}
		quota := queue.Quota{Flavor: name, Slice: d.slice(), Slices: d.Int64N(9)}
		if i < 3 {
			quota.Slices = d.number()
			if q.Cohort != "" || d.rarely() {
				quota.Borrow, quota.Lend = d.numberOrNone(), d.lends(quota.Slices)
			}
		}
		if i < 2 && d.rarely() {
			quota.Pool = "projects/p/locations/l/clusters/c/nodePools/v5e"
		}
		if cpu != (i > 0 && i < 3 && d.rarely()) {
			quota.CPU = d.hostQuota(q, i)
		}
		if memory {
			quota.Memory = d.hostQuota(q, i)
		}
		q.Quotas = append(q.Quotas, quota)
	}
}

// number is a number of slices, seldom one that cannot be.
func (d dice) number() int64 {
	if d.IntN(40) == 0 {
		return pick[int64](d, -1, 1<<40, 1<<60, math.MaxInt64)
	}
	return d.Int64N(50)
}

func (d dice) numberOrNone() *int64 {
	if d.IntN(3) > 0 {
		return nil
	}
	return ptr.To(d.number())
}

func (d dice) lends(of int64) *int64 {
	if d.IntN(3) > 0 {
		return nil
	}
	if d.rarely() && of < math.MaxInt64 {
		return ptr.To(of + 1)
	}
	return ptr.To(d.Int64N(min(max(of, 0), 50) + 1))
}

func (d dice) hostFlavors(q *queue.Queue) {
	cpu := d.IntN(3) > 0
	memory := !cpu || d.IntN(2) == 0
	for i := range d.few() {
		h := queue.HostFlavor{Flavor: "cpu" + string(rune('a'+i%26)) + string(rune('a'+i/26))}
		if i < 3 && d.rarely() {
			h.Flavor = pick(d, "flavoraa", "cpuaa", "B")
		}
		if cpu && !(i < 3 && d.rarely()) {
			h.CPU = d.hostQuota(q, i)
		}
		if memory {
			h.Memory = d.hostQuota(q, i)
		}
		q.Hosts = append(q.Hosts, h)
	}
}

func (d dice) hostQuota(q *queue.Queue, i int) *queue.HostQuota {
	amount := func() resource.Quantity {
		if i < 3 && d.IntN(40) == 0 {
			return resource.MustParse(pick(d, "-1", "1e30", "-1m", "1n"))
		}
		return resource.MustParse(pick(d, "0", "100", "1500m", "64Gi", "1Ti", "0.5", "2k", "1e9", "1P"))
	}
	h := &queue.HostQuota{Quota: amount()}
	if q.Cohort == "" && !d.rarely() || i > 2 {
		return h
	}
	if d.IntN(3) == 0 {
		h.Borrow = ptr.To(amount())
	}
	if d.IntN(3) == 0 {
		h.Lend = ptr.To(h.Quota)
		if d.rarely() {
			h.Lend = ptr.To(amount())
		}
	}
	return h
}

// or is a choice that is left out, one of all, or seldom none there is.
func or[T ~string](d dice, all ...T) T {
	if d.IntN(60) == 0 {
		return "Something"
	}
	return pick(d, append(all, "")...)
}

func (d dice) policies(q *queue.Queue) {
	q.Strategy = or(d, kueue.BestEffortFIFO, kueue.StrictFIFO)
	q.Stop = or(d, kueue.None, kueue.Hold, kueue.HoldAndDrain)
	q.Admission = or(d, kueue.UsageBasedAdmissionFairSharing, kueue.NoAdmissionFairSharing)
	q.Preemption.WithinQueue = or(d, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyLowerOrNewerEqualPriority)
	q.Preemption.ReclaimWithinCohort = or(d, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny)
	if d.IntN(3) == 0 {
		q.Preemption.BorrowWithinCohort = or(d, kueue.BorrowWithinCohortPolicyNever, kueue.BorrowWithinCohortPolicyLowerPriority)
		if q.Preemption.BorrowWithinCohort == kueue.BorrowWithinCohortPolicyLowerPriority || d.rarely() {
			q.Preemption.MaxPriority = pick(d, nil, ptr.To[int32](0), ptr.To[int32](-1<<31), ptr.To[int32](1<<31-1))
		}
	}
	q.Fungibility.WhenCanBorrow = or(d, kueue.MayStopSearch, kueue.TryNextFlavor)
	q.Fungibility.WhenCanPreempt = or(d, kueue.MayStopSearch, kueue.TryNextFlavor)
	if d.IntN(6) == 0 {
		q.Fungibility.Preference = or(d, kueue.BorrowingOverPreemption, kueue.PreemptionOverBorrowing)
	}
	if d.IntN(2) == 0 {
		q.Weight = d.weight()
	}
}

func (d dice) weight() *resource.Quantity {
	if d.rarely() {
		return ptr.To(resource.MustParse(pick(d, "-1", "1n", "2n", "-0.5")))
	}
	return ptr.To(resource.MustParse(pick(d, "0", "1", "0.5", "100", "1500m", "1e6")))
}

func (d dice) namespaces(q *queue.Queue) {
	for _, ns := range []string{"team-a", "team-b"} {
		if d.IntN(3) > 0 {
			q.Namespaces = append(q.Namespaces, ns)
		}
	}
	if d.rarely() {
		q.Namespaces = append(q.Namespaces, pick(d, "team-a", "kube-system", "A", "a.b", "-a"))
	}
	if d.IntN(3) == 0 {
		q.Stopped = map[string]kueue.StopPolicy{}
		for _, ns := range append([]string{}, q.Namespaces...) {
			q.Stopped[ns] = pick(d, kueue.None, kueue.Hold, kueue.HoldAndDrain, or(d, kueue.Hold))
		}
		if d.rarely() {
			q.Stopped["team-z"] = kueue.Hold
		}
	}
	if len(q.Namespaces) > 0 && d.IntN(3) == 0 {
		q.Weights = map[string]resource.Quantity{q.Namespaces[0]: *d.weight()}
	}
}

func (d dice) checks(q *queue.Queue) {
	for i := range d.few() {
		c := queue.Check{Name: "check" + string(rune('a'+i%26)) + string(rune('a'+i/26))}
		if i < 3 && d.rarely() {
			c.Name = d.name("checkaa")
		}
		for range pick(d, 0, 0, 1, 2) {
			if len(q.Quotas) > 0 {
				c.Flavors = append(c.Flavors, q.Quotas[d.IntN(len(q.Quotas))].Flavor)
			}
		}
		if i < 3 && d.rarely() {
			c.Flavors = append(c.Flavors, "elsewhere")
		}
		q.Checks = append(q.Checks, c)
	}
}
