package queue

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

const (
	// LabelClusterQueue marks a LocalQueue with the ClusterQueue it was made for,
	// so that one left behind by an interrupted change is found again.
	LabelClusterQueue = "tpu-training.github.io/cluster-queue"
	// AnnotationSlicePools is on a ClusterQueue that follows slice pools: JSON,
	// the path of the slice pool by flavor.
	AnnotationSlicePools = "tpu-training.github.io/slice-pools"
)

// Preemption says whom a waiting job may evict. An empty part is that of
// DefaultPreemption.
type Preemption struct {
	WithinQueue         kueue.PreemptionPolicy
	ReclaimWithinCohort kueue.PreemptionPolicy
	// BorrowWithinCohort lets a job that has to borrow evict jobs of other queues,
	// of at most the priority MaxPriority; nil is any.
	BorrowWithinCohort kueue.BorrowWithinCohortPolicy
	MaxPriority        *int32
}

// DefaultPreemption lets a job evict lower priorities of its own queue, and
// nobody else's.
var DefaultPreemption = Preemption{
	WithinQueue:         kueue.PreemptionPolicyLowerPriority,
	ReclaimWithinCohort: kueue.PreemptionPolicyNever,
	BorrowWithinCohort:  kueue.BorrowWithinCohortPolicyNever,
}

// Fungibility says when a job that does not simply fit a flavor tries the next
// one. An empty part is that of DefaultFungibility; Preference may stay empty.
type Fungibility struct {
	WhenCanBorrow, WhenCanPreempt kueue.FlavorFungibilityPolicy
	Preference                    kueue.FlavorFungibilityPreference
}

// DefaultFungibility is Kueue's own: borrow rather than try the next flavor,
// try the next flavor rather than preempt.
var DefaultFungibility = Fungibility{WhenCanBorrow: kueue.MayStopSearch, WhenCanPreempt: kueue.TryNextFlavor}

// Check is an admission check that jobs of the queue must pass.
type Check struct {
	Name    string
	Flavors []string // only for jobs that get one of these; none = for all
}

// Queue is a ClusterQueue and one LocalQueue of the same name in each of its
// namespaces.
type Queue struct {
	Name        string
	Cohort      string // "" = none
	Quotas      []Quota
	Hosts       []HostFlavor // cpu and memory in flavors of their own
	Namespaces  []string
	Stopped     map[string]kueue.StopPolicy  // by namespace, which is open otherwise
	Weights     map[string]resource.Quantity // by namespace, for admission fair sharing
	Strategy    kueue.QueueingStrategy       // "" = BestEffortFIFO
	Stop        kueue.StopPolicy             // "" = None
	Preemption  Preemption
	Fungibility Fungibility
	Weight      *resource.Quantity  // in fair sharing; nil = 1
	Admission   kueue.AdmissionMode // "" = no admission scope
	Checks      []Check
}

// Chips is the queue's own quota as Kueue counts it.
func (q Queue) Chips() int64 {
	var n int64
	for _, quota := range q.Quotas {
		n += quota.Chips()
	}
	return n
}

func orElse[T ~string](v, other T) T {
	if v == "" {
		return other
	}
	return v
}

// ClusterQueue renders the ClusterQueue, defaults included, so that the server
// adds nothing we would have to explain away.
func (q Queue) ClusterQueue() *kueue.ClusterQueue {
	cq := &kueue.ClusterQueue{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "ClusterQueue"},
		ObjectMeta: metav1.ObjectMeta{Name: q.Name, Labels: managed(), Annotations: q.follows()},
		Spec: kueue.ClusterQueueSpec{
			ResourceGroups:    q.groups(),
			CohortName:        kueue.CohortReference(q.Cohort),
			QueueingStrategy:  orElse(q.Strategy, kueue.BestEffortFIFO),
			StopPolicy:        ptr.To(orElse(q.Stop, kueue.None)),
			NamespaceSelector: q.selector(),
			FlavorFungibility: q.Fungibility.object(),
			Preemption:        q.Preemption.object(),
		},
	}
	if q.Weight != nil {
		cq.Spec.FairSharing = &kueue.FairSharing{Weight: q.Weight}
	}
	if q.Admission != "" {
		cq.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: q.Admission}
	}
	if len(q.Checks) > 0 {
		cq.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{}
		for _, c := range q.Checks {
			rule := kueue.AdmissionCheckStrategyRule{Name: kueue.AdmissionCheckReference(c.Name)}
			for _, f := range c.Flavors {
				rule.OnFlavors = append(rule.OnFlavors, kueue.ResourceFlavorReference(f))
			}
			cq.Spec.AdmissionChecksStrategy.AdmissionChecks = append(cq.Spec.AdmissionChecksStrategy.AdmissionChecks, rule)
		}
	}
	return cq
}

func (p Preemption) object() *kueue.ClusterQueuePreemption {
	d := DefaultPreemption
	return &kueue.ClusterQueuePreemption{
		WithinClusterQueue:  orElse(p.WithinQueue, d.WithinQueue),
		ReclaimWithinCohort: orElse(p.ReclaimWithinCohort, d.ReclaimWithinCohort),
		BorrowWithinCohort: &kueue.BorrowWithinCohort{
			Policy: orElse(p.BorrowWithinCohort, d.BorrowWithinCohort), MaxPriorityThreshold: p.MaxPriority,
		},
	}
}

func (f Fungibility) object() *kueue.FlavorFungibility {
	out := &kueue.FlavorFungibility{
		WhenCanBorrow:  orElse(f.WhenCanBorrow, DefaultFungibility.WhenCanBorrow),
		WhenCanPreempt: orElse(f.WhenCanPreempt, DefaultFungibility.WhenCanPreempt),
	}
	if f.Preference != "" {
		out.Preference = ptr.To(f.Preference)
	}
	return out
}

// selector lets the queue's namespaces in. No selector selects no namespace, an
// empty one all of them.
func (q Queue) selector() *metav1.LabelSelector {
	if len(q.Namespaces) == 0 {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: LabelNamespaceName, Operator: metav1.LabelSelectorOpIn, Values: slices.Sorted(slices.Values(q.Namespaces)),
	}}}
}

// follows is the annotation that names the slice pools.
func (q Queue) follows() map[string]string {
	pools := map[string]string{}
	for _, quota := range q.Quotas {
		if quota.Pool != "" {
			pools[quota.Flavor] = quota.Pool
		}
	}
	if len(pools) == 0 {
		return nil
	}
	text, err := json.Marshal(pools)
	if err != nil {
		panic(err) // strings by strings
	}
	return map[string]string{AnnotationSlicePools: string(text)}
}

// groups are the resource groups: the slices, with cpu and memory where the
// slices' flavors count them too, and the flavors of cpu and memory alone.
func (q Queue) groups() (groups []kueue.ResourceGroup) {
	if len(q.Quotas) > 0 {
		g := kueue.ResourceGroup{CoveredResources: append([]corev1.ResourceName{accelerator.ResourceName}, covered(q.Quotas[0].CPU, q.Quotas[0].Memory)...)}
		for _, quota := range q.Quotas {
			g.Flavors = append(g.Flavors, quota.object())
		}
		groups = append(groups, g)
	}
	if len(q.Hosts) > 0 {
		g := kueue.ResourceGroup{CoveredResources: covered(q.Hosts[0].CPU, q.Hosts[0].Memory)}
		for _, h := range q.Hosts {
			g.Flavors = append(g.Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(h.Flavor), Resources: hostQuotas(h.CPU, h.Memory)})
		}
		groups = append(groups, g)
	}
	return groups
}

// LocalQueue renders the queue's door in one namespace.
func (q Queue) LocalQueue(namespace string) *kueue.LocalQueue {
	labels := managed()
	labels[LabelClusterQueue] = q.Name
	lq := &kueue.LocalQueue{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "LocalQueue"},
		ObjectMeta: metav1.ObjectMeta{Name: q.Name, Namespace: namespace, Labels: labels},
		Spec: kueue.LocalQueueSpec{
			ClusterQueue: kueue.ClusterQueueReference(q.Name),
			StopPolicy:   ptr.To(orElse(q.Stopped[namespace], kueue.None)),
		},
	}
	if w, ok := q.Weights[namespace]; ok {
		lq.Spec.FairSharing = &kueue.FairSharing{Weight: &w}
	}
	return lq
}

// flavors are the names of all flavors of the queue, in order.
func (q Queue) flavors() (names []string) {
	for _, quota := range q.Quotas {
		names = append(names, quota.Flavor)
	}
	for _, h := range q.Hosts {
		names = append(names, h.Flavor)
	}
	return names
}

// doors are the namespaces that Stopped and Weights speak of.
func (q Queue) doors() []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for ns := range maps.Keys(q.Stopped) {
			if !yield(ns) {
				return
			}
		}
		for ns := range maps.Keys(q.Weights) {
			if !yield(ns) {
				return
			}
		}
	}))
}
