package queue

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// FromLive is the queue that a ClusterQueue and its LocalQueues are. had is what
// it was the last time, for what an object does not say: the slice of each
// flavor that had knows, which others ask sliceOf for.
//
// A number of chips that is no whole number of slices is rounded down, or up
// where that would look as if nothing had changed.
func FromLive(cq *kueue.ClusterQueue, doors []kueue.LocalQueue, had Queue, sliceOf func(flavor string) (accelerator.Slice, bool)) Queue {
	q := Queue{
		Name:     cq.Name,
		Cohort:   string(cq.Spec.CohortName),
		Strategy: cq.Spec.QueueingStrategy,
		Stop:     ptr.Deref(cq.Spec.StopPolicy, kueue.None),
	}
	if p := cq.Spec.Preemption; p != nil {
		q.Preemption = Preemption{WithinQueue: p.WithinClusterQueue, ReclaimWithinCohort: p.ReclaimWithinCohort}
		if b := p.BorrowWithinCohort; b != nil {
			q.Preemption.BorrowWithinCohort, q.Preemption.MaxPriority = b.Policy, b.MaxPriorityThreshold
		}
	}
	// What the object leaves open, an older version of Kueue takes for Never.
	q.Preemption.WithinQueue = orElse(q.Preemption.WithinQueue, kueue.PreemptionPolicyNever)
	q.Preemption.ReclaimWithinCohort = orElse(q.Preemption.ReclaimWithinCohort, kueue.PreemptionPolicyNever)
	q.Preemption.BorrowWithinCohort = orElse(q.Preemption.BorrowWithinCohort, kueue.BorrowWithinCohortPolicyNever)
	q.Fungibility = DefaultFungibility
	if f := cq.Spec.FlavorFungibility; f != nil {
		q.Fungibility = Fungibility{orElse(f.WhenCanBorrow, kueue.MayStopSearch), orElse(f.WhenCanPreempt, kueue.TryNextFlavor), ptr.Deref(f.Preference, "")}
	}
	if f := cq.Spec.FairSharing; f != nil {
		q.Weight = f.Weight
	}
	if a := cq.Spec.AdmissionScope; a != nil {
		q.Admission = a.AdmissionMode
	}
	if s := cq.Spec.AdmissionChecksStrategy; s != nil {
		for _, rule := range s.AdmissionChecks {
			c := Check{Name: string(rule.Name)}
			for _, f := range rule.OnFlavors {
				c.Flavors = append(c.Flavors, string(f))
			}
			q.Checks = append(q.Checks, c)
		}
	}
	q.readGroups(cq, had, sliceOf)
	q.readDoors(cq, doors, had)
	return q
}

// HandsOutSlices tells whether a ClusterQueue counts TPU chips.
func HandsOutSlices(cq *kueue.ClusterQueue) bool {
	return slices.ContainsFunc(cq.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
		return slices.Contains(g.CoveredResources, accelerator.ResourceName)
	})
}

// SlicePools are the slice pools that a ClusterQueue follows, by flavor.
func SlicePools(cq *kueue.ClusterQueue) map[string]string {
	var pools map[string]string
	if json.Unmarshal([]byte(cq.Annotations[AnnotationSlicePools]), &pools) != nil {
		return nil // not ours, or written by hand
	}
	return pools
}

func (q *Queue) readGroups(cq *kueue.ClusterQueue, had Queue, sliceOf func(string) (accelerator.Slice, bool)) {
	before := map[string]Quota{}
	for _, quota := range had.Quotas {
		before[quota.Flavor] = quota
	}
	pools := SlicePools(cq)
	for _, group := range cq.Spec.ResourceGroups {
		tpus := slices.Contains(group.CoveredResources, accelerator.ResourceName)
		for _, f := range group.Flavors {
			name := string(f.Name)
			cpu, memory := hostQuota(f, corev1.ResourceCPU), hostQuota(f, corev1.ResourceMemory)
			if !tpus {
				q.Hosts = append(q.Hosts, HostFlavor{Flavor: name, CPU: cpu, Memory: memory})
				continue
			}
			was := before[name]
			quota := Quota{Flavor: name, Slice: was.Slice, CPU: cpu, Memory: memory, Pool: pools[name]}
			if quota.Slice.Chips == 0 {
				if s, ok := sliceOf(name); ok {
					quota.Slice = s
				}
			}
			if r := resourceOf(f, accelerator.ResourceName); r != nil {
				per := max(int64(quota.Slice.Chips), 1)
				quota.Slices = inSlices(r.NominalQuota, per, &was.Slices)
				if r.BorrowingLimit != nil {
					quota.Borrow = ptr.To(inSlices(*r.BorrowingLimit, per, was.Borrow))
				}
				if r.LendingLimit != nil {
					quota.Lend = ptr.To(inSlices(*r.LendingLimit, per, was.Lend))
				}
			}
			q.Quotas = append(q.Quotas, quota)
		}
	}
}

func inSlices(chips resource.Quantity, perSlice int64, had *int64) int64 {
	n := chips.Value() / perSlice
	if chips.Value()%perSlice != 0 && had != nil && n == *had {
		return n + 1
	}
	return n
}

func resourceOf(f kueue.FlavorQuotas, name corev1.ResourceName) *kueue.ResourceQuota {
	for i := range f.Resources {
		if f.Resources[i].Name == name {
			return &f.Resources[i]
		}
	}
	return nil
}

func hostQuota(f kueue.FlavorQuotas, name corev1.ResourceName) *HostQuota {
	r := resourceOf(f, name)
	if r == nil {
		return nil
	}
	return &HostQuota{Quota: r.NominalQuota, Borrow: r.BorrowingLimit, Lend: r.LendingLimit}
}

// readDoors finds the namespaces whose jobs get into the queue: those that it
// selects and that have a LocalQueue. One that it selects by name and that it
// did not have before is told even without a LocalQueue: somebody let it in.
func (q *Queue) readDoors(cq *kueue.ClusterQueue, doors []kueue.LocalQueue, had Queue) {
	selects := labels.Nothing()
	if s, err := metav1.LabelSelectorAsSelector(cq.Spec.NamespaceSelector); err == nil {
		selects = s
	}
	in := map[string]bool{}
	for i := range doors {
		door := &doors[i]
		ns := door.Namespace
		if !selects.Matches(labels.Set{LabelNamespaceName: ns}) {
			continue
		}
		in[ns] = true
		if stop := ptr.Deref(door.Spec.StopPolicy, kueue.None); stop != kueue.None {
			if q.Stopped == nil {
				q.Stopped = map[string]kueue.StopPolicy{}
			}
			q.Stopped[ns] = stop
		}
		if f := door.Spec.FairSharing; f != nil && f.Weight != nil {
			if q.Weights == nil {
				q.Weights = map[string]resource.Quantity{}
			}
			q.Weights[ns] = *f.Weight
		}
	}
	if s := cq.Spec.NamespaceSelector; s != nil {
		for _, e := range s.MatchExpressions {
			if e.Key != LabelNamespaceName || e.Operator != metav1.LabelSelectorOpIn {
				continue
			}
			for _, ns := range e.Values {
				if !slices.Contains(had.Namespaces, ns) && had.Name != "" {
					in[ns] = true
				}
			}
		}
	}
	if opened := widened(cq.Spec.NamespaceSelector); opened != "" {
		in[opened] = true
	}
	q.Namespaces = slices.Sorted(maps.Keys(in))
}

// widened is how a selector shows that lets in namespaces by more than their
// names: "*" for all of them, otherwise the selector itself. No namespace has
// such a name, so a plan shows it, and an apply takes it back.
func widened(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return "*"
	}
	for _, e := range s.MatchExpressions {
		if e.Key == LabelNamespaceName && e.Operator == metav1.LabelSelectorOpIn {
			return "" // by name, and perhaps less than that
		}
	}
	if _, ok := s.MatchLabels[LabelNamespaceName]; ok {
		return ""
	}
	return metav1.FormatLabelSelector(s)
}
