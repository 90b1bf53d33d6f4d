package queue

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// LabelClusterQueue marks a LocalQueue with the ClusterQueue it was made for,
// so that one left behind by an interrupted change is found again.
const LabelClusterQueue = "tpu-training.github.io/cluster-queue"

// Quota is a queue's share of one flavor, in slices. A slice is the unit that
// jobs ask for; Kueue counts chips.
type Quota struct {
	Flavor string
	Slice  accelerator.Slice
	Slices int64
	// Borrow is how many slices above its own the queue may take from its
	// cohort, Lend how many of its own others may take while they are idle.
	// nil means no limit. Both need a cohort.
	Borrow, Lend *int64
}

// Chips is the quota as Kueue counts it.
func (q Quota) Chips() int64 { return q.Slices * int64(q.Slice.Chips) }

// Preemption says whom a waiting job may evict.
type Preemption struct {
	WithinQueue         kueue.PreemptionPolicy
	ReclaimWithinCohort kueue.PreemptionPolicy
}

// DefaultPreemption lets a job evict lower priorities of its own queue, and
// nobody else's.
var DefaultPreemption = Preemption{
	WithinQueue:         kueue.PreemptionPolicyLowerPriority,
	ReclaimWithinCohort: kueue.PreemptionPolicyNever,
}

// Queue is a ClusterQueue and one LocalQueue of the same name in each of its
// namespaces.
type Queue struct {
	Name       string
	Cohort     string // "" = none
	Quotas     []Quota
	Namespaces []string
	Strategy   kueue.QueueingStrategy // "" = BestEffortFIFO
	Stop       kueue.StopPolicy       // "" = None
	Preemption Preemption             // zero = DefaultPreemption
}

// ClusterQueue renders the ClusterQueue, defaults included, so that the server
// adds nothing we would have to explain away.
func (q Queue) ClusterQueue() *kueue.ClusterQueue {
	p := q.Preemption
	if p == (Preemption{}) {
		p = DefaultPreemption
	}
	cq := &kueue.ClusterQueue{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "ClusterQueue"},
		ObjectMeta: metav1.ObjectMeta{Name: q.Name, Labels: managed()},
		Spec: kueue.ClusterQueueSpec{
			CohortName:       kueue.CohortReference(q.Cohort),
			QueueingStrategy: q.Strategy,
			StopPolicy:       ptr.To(q.Stop),
			FlavorFungibility: &kueue.FlavorFungibility{
				WhenCanBorrow: kueue.MayStopSearch, WhenCanPreempt: kueue.TryNextFlavor,
			},
			Preemption: &kueue.ClusterQueuePreemption{
				WithinClusterQueue:  p.WithinQueue,
				ReclaimWithinCohort: p.ReclaimWithinCohort,
				BorrowWithinCohort:  &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever},
			},
		},
	}
	if q.Strategy == "" {
		cq.Spec.QueueingStrategy = kueue.BestEffortFIFO
	}
	if q.Stop == "" {
		cq.Spec.StopPolicy = ptr.To(kueue.None)
	}
	if len(q.Namespaces) > 0 {
		// No selector selects no namespace, an empty one all of them.
		cq.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: LabelNamespaceName, Operator: metav1.LabelSelectorOpIn, Values: slices.Sorted(slices.Values(q.Namespaces)),
		}}}
	}
	if len(q.Quotas) > 0 {
		group := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{accelerator.ResourceName}}
		for _, quota := range q.Quotas {
			group.Flavors = append(group.Flavors, quota.object())
		}
		cq.Spec.ResourceGroups = []kueue.ResourceGroup{group}
	}
	return cq
}

func (q Quota) object() kueue.FlavorQuotas {
	chips := func(slices int64) resource.Quantity {
		return *resource.NewQuantity(slices*int64(q.Slice.Chips), resource.DecimalSI)
	}
	r := kueue.ResourceQuota{Name: accelerator.ResourceName, NominalQuota: chips(q.Slices)}
	if q.Borrow != nil {
		r.BorrowingLimit = ptr.To(chips(*q.Borrow))
	}
	if q.Lend != nil {
		r.LendingLimit = ptr.To(chips(*q.Lend))
	}
	return kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(q.Flavor), Resources: []kueue.ResourceQuota{r}}
}

// LocalQueue renders the queue's door in one namespace.
func (q Queue) LocalQueue(namespace string) *kueue.LocalQueue {
	labels := managed()
	labels[LabelClusterQueue] = q.Name
	return &kueue.LocalQueue{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "LocalQueue"},
		ObjectMeta: metav1.ObjectMeta{Name: q.Name, Namespace: namespace, Labels: labels},
		Spec: kueue.LocalQueueSpec{
			ClusterQueue: kueue.ClusterQueueReference(q.Name),
			StopPolicy:   ptr.To(kueue.None),
		},
	}
}

// maxFlavors is Kueue's limit of flavors in one resource group.
const maxFlavors = 64

// Validate checks what the CRDs and Kueue's webhooks would refuse.
func (q Queue) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("queue %s: "+format, append([]any{q.Name}, args...)...))
	}
	// The name becomes a label value, and names LocalQueues: 63 characters.
	if err := CheckQueueName(q.Name); err != nil {
		errs = append(errs, err)
	}
	if q.Cohort != "" {
		if err := checkName("cohort", q.Cohort); err != nil {
			errs = append(errs, err)
		}
	}
	if len(q.Quotas) > maxFlavors {
		add("%d flavors; Kueue allows %d", len(q.Quotas), maxFlavors)
	}
	seen := map[string]bool{}
	for _, quota := range q.Quotas {
		if err := checkName("flavor", quota.Flavor); err != nil {
			errs = append(errs, err)
		}
		if seen[quota.Flavor] {
			add("flavor %s is listed twice; add the slices up in one entry", quota.Flavor)
		}
		seen[quota.Flavor] = true
		if quota.Slices < 0 {
			add("flavor %s: a quota of %d slices; it cannot be negative", quota.Flavor, quota.Slices)
		}
		if q.Cohort == "" && (quota.Borrow != nil || quota.Lend != nil) {
			add("flavor %s: borrowing and lending limits need a cohort to borrow from", quota.Flavor)
		}
		if quota.Borrow != nil && *quota.Borrow < 0 || quota.Lend != nil && *quota.Lend < 0 {
			add("flavor %s: borrowing and lending limits cannot be negative", quota.Flavor)
		}
		if quota.Lend != nil && *quota.Lend > quota.Slices {
			add("flavor %s: it cannot lend %d slices out of %d", quota.Flavor, *quota.Lend, quota.Slices)
		}
	}
	seen = map[string]bool{}
	for _, ns := range q.Namespaces {
		if err := CheckNamespace(ns); err != nil {
			errs = append(errs, err)
		}
		if seen[ns] {
			add("namespace %s is listed twice", ns)
		}
		seen[ns] = true
	}
	return errors.Join(errs...)
}
