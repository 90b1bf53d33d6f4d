package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// maxFlavors is Kueue's limit of flavors in one resource group.
	maxFlavors = 64
	// maxChecks is Kueue's limit of admission checks, and of the flavors of one.
	maxChecks = 64
)

// problems collects what is wrong with one object, each with its name.
type problems struct {
	what string
	errs []error
}

func (p *problems) add(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: "+format, append([]any{p.what}, args...)...))
}

func (p *problems) note(err error) {
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

// Validate checks what the CRDs and Kueue's webhooks would refuse, and what
// they would take but could never mean anything.
func (q Queue) Validate() error {
	p := &problems{what: "queue " + q.Name}
	// The name becomes a label value, and names LocalQueues: 63 characters.
	p.note(CheckQueueName(q.Name))
	if q.Cohort != "" {
		p.note(checkName("cohort", q.Cohort))
	}
	q.checkFlavors(p)
	q.checkHosts(p)
	q.checkNamespaces(p)
	q.checkPolicies(p)
	q.checkChecks(p)
	if q.Weight != nil {
		p.weight("its weight in fair sharing", *q.Weight)
	}
	return errors.Join(p.errs...)
}

func (q Queue) checkFlavors(p *problems) {
	if n := max(len(q.Quotas), len(q.Hosts)); n > maxFlavors {
		p.add("%d flavors; Kueue allows %d of slices, and as many of cpu and memory", n, maxFlavors)
	}
	seen := map[string]bool{}
	for _, name := range q.flavors() {
		p.note(checkName("flavor", name))
		if seen[name] {
			p.add("flavor %s is listed twice; add the quotas up in one entry", name)
		}
		seen[name] = true
	}
	for _, quota := range q.Quotas {
		if quota.Slices < 0 {
			p.add("flavor %s: a quota of %d slices; it cannot be negative", quota.Flavor, quota.Slices)
		}
		if perSlice := max(int64(quota.Slice.Chips), 1); most(quota) > maxChips/perSlice {
			p.add("flavor %s: %d slices are more than Kueue can count", quota.Flavor, most(quota))
		}
		if q.Cohort == "" && (quota.Borrow != nil || quota.Lend != nil) {
			p.add("flavor %s: borrowing and lending limits need a cohort to borrow from", quota.Flavor)
		}
		if quota.Borrow != nil && *quota.Borrow < 0 || quota.Lend != nil && *quota.Lend < 0 {
			p.add("flavor %s: borrowing and lending limits cannot be negative", quota.Flavor)
		}
		if quota.Lend != nil && *quota.Lend > quota.Slices {
			p.add("flavor %s: it cannot lend %d slices out of %d", quota.Flavor, *quota.Lend, quota.Slices)
		}
	}
}

// most is the largest number of slices that a quota speaks of.
func most(q Quota) int64 {
	n := q.Slices
	for _, limit := range []*int64{q.Borrow, q.Lend} {
		if limit != nil {
			n = max(n, *limit)
		}
	}
	return n
}

func (q Queue) checkHosts(p *problems) {
	type counted struct {
		flavor      string
		cpu, memory *HostQuota
	}
	group := func(all []counted) {
		for _, c := range all {
			if (c.cpu == nil) != (all[0].cpu == nil) || (c.memory == nil) != (all[0].memory == nil) {
				p.add("flavors %s and %s do not count the same of cpu and memory; Kueue wants it of all flavors or of none", all[0].flavor, c.flavor)
			}
			q.checkHostQuota(p, "flavor "+c.flavor+": cpu", c.cpu, maxCPU)
			q.checkHostQuota(p, "flavor "+c.flavor+": memory", c.memory, maxMemory)
		}
	}
	var ofSlices, alone []counted
	for _, quota := range q.Quotas {
		ofSlices = append(ofSlices, counted{quota.Flavor, quota.CPU, quota.Memory})
	}
	for _, h := range q.Hosts {
		alone = append(alone, counted{h.Flavor, h.CPU, h.Memory})
		if h.CPU == nil && h.Memory == nil {
			p.add("flavor %s counts neither cpu nor memory; leave it out, or give it a quota", h.Flavor)
		}
	}
	group(ofSlices)
	group(alone)
	if len(ofSlices) == 0 || len(alone) == 0 {
		return
	}
	if ofSlices[0].cpu != nil && alone[0].cpu != nil || ofSlices[0].memory != nil && alone[0].memory != nil {
		p.add("cpu and memory are counted by the flavors of slices or by flavors of their own, not by both")
	}
}

// The largest quotas of cpu and memory: Kueue adds cpu up in thousandths of a
// core and memory in bytes, in 64 bits.
var maxCPU, maxMemory = resource.MustParse("1P"), resource.MustParse("1E")

func (q Queue) checkHostQuota(p *problems, what string, h *HostQuota, most resource.Quantity) {
	if h == nil {
		return
	}
	for _, v := range []*resource.Quantity{&h.Quota, h.Borrow, h.Lend} {
		switch {
		case v == nil:
		case v.Sign() < 0:
			p.add("%s: %s is negative; quotas and limits cannot be", what, v)
		case v.Cmp(most) > 0:
			p.add("%s: %s is more than Kueue can count", what, v)
		}
	}
	if q.Cohort == "" && (h.Borrow != nil || h.Lend != nil) {
		p.add("%s: borrowing and lending limits need a cohort to borrow from", what)
	}
	if h.Lend != nil && h.Lend.Cmp(h.Quota) > 0 {
		p.add("%s: it cannot lend %s out of %s", what, h.Lend, &h.Quota)
	}
}

func (q Queue) checkNamespaces(p *problems) {
	seen := map[string]bool{}
	for _, ns := range q.Namespaces {
		p.note(CheckNamespace(ns))
		if seen[ns] {
			p.add("namespace %s is listed twice", ns)
		}
		seen[ns] = true
	}
	for _, ns := range q.doors() {
		if !seen[ns] {
			p.add("namespace %s has a stop policy or a weight, and is not one of the queue's namespaces", ns)
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(q.Stopped)) {
		if !oneOf(q.Stopped[ns], kueue.None, kueue.Hold, kueue.HoldAndDrain) {
			p.add("namespace %s: unknown stop policy %q", ns, q.Stopped[ns])
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(q.Weights)) {
		p.weight("the weight of namespace "+ns, q.Weights[ns])
	}
}

func (p *problems) weight(what string, w resource.Quantity) {
	if err := checkWeight(w); err != nil {
		p.add("%s: %w", what, err)
	}
}

// oneOf tells whether v is empty, which means the default, or one of all.
func oneOf[T ~string](v T, all ...T) bool { return v == "" || slices.Contains(all, v) }

func (q Queue) checkPolicies(p *problems) {
	pre, fun := q.Preemption, q.Fungibility
	unknown := func(what string, value any, ok bool) {
		if !ok {
			p.add("unknown %s %q", what, value)
		}
	}
	unknown("queueing strategy", q.Strategy, oneOf(q.Strategy, kueue.BestEffortFIFO, kueue.StrictFIFO))
	unknown("stop policy", q.Stop, oneOf(q.Stop, kueue.None, kueue.Hold, kueue.HoldAndDrain))
	unknown("admission mode", q.Admission, oneOf(q.Admission, kueue.UsageBasedAdmissionFairSharing, kueue.NoAdmissionFairSharing))
	unknown("preemption within the queue", pre.WithinQueue, oneOf(pre.WithinQueue,
		kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyLowerOrNewerEqualPriority))
	unknown("reclaiming within the cohort", pre.ReclaimWithinCohort, oneOf(pre.ReclaimWithinCohort,
		kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny))
	unknown("borrowing within the cohort", pre.BorrowWithinCohort, oneOf(pre.BorrowWithinCohort,
		kueue.BorrowWithinCohortPolicyNever, kueue.BorrowWithinCohortPolicyLowerPriority))
	unknown("choice of flavors when borrowing", fun.WhenCanBorrow, oneOf(fun.WhenCanBorrow, kueue.MayStopSearch, kueue.TryNextFlavor))
	unknown("choice of flavors when preempting", fun.WhenCanPreempt, oneOf(fun.WhenCanPreempt, kueue.MayStopSearch, kueue.TryNextFlavor))
	unknown("preference of flavors", fun.Preference, oneOf(fun.Preference, kueue.BorrowingOverPreemption, kueue.PreemptionOverBorrowing))

	rendered := pre.object()
	borrows := rendered.BorrowWithinCohort.Policy != kueue.BorrowWithinCohortPolicyNever
	if borrows && rendered.ReclaimWithinCohort == kueue.PreemptionPolicyNever {
		p.add("a job that has to borrow may evict others (borrow_within_cohort) only where one that needs not may (reclaim_within_cohort is Never)")
	}
	if pre.MaxPriority != nil && !borrows {
		p.add("a highest priority to evict when borrowing says nothing while borrowing evicts nobody (borrow_within_cohort is Never)")
	}
	if f := fun.object(); f.Preference != nil && (f.WhenCanBorrow != kueue.TryNextFlavor || f.WhenCanPreempt != kueue.TryNextFlavor) {
		p.add("a preference (%s) chooses between flavors that were all tried: it needs TryNextFlavor both when a job can borrow and when it can preempt", *f.Preference)
	}
}

func (q Queue) checkChecks(p *problems) {
	if len(q.Checks) > maxChecks {
		p.add("%d admission checks; Kueue allows %d", len(q.Checks), maxChecks)
	}
	flavors, seen := q.flavors(), map[string]bool{}
	for _, c := range q.Checks {
		p.note(checkName("admission check", c.Name))
		if seen[c.Name] {
			p.add("admission check %s is listed twice; list its flavors in one entry", c.Name)
		}
		seen[c.Name] = true
		if len(c.Flavors) > maxChecks {
			p.add("admission check %s: %d flavors; Kueue allows %d", c.Name, len(c.Flavors), maxChecks)
		}
		on := map[string]bool{}
		for _, f := range c.Flavors {
			if !slices.Contains(flavors, f) {
				p.add("admission check %s is for flavor %s, which the queue has not; it has %s", c.Name, f, strings.Join(flavors, ", "))
			}
			if on[f] {
				p.add("admission check %s: flavor %s is listed twice", c.Name, f)
			}
			on[f] = true
		}
	}
}
