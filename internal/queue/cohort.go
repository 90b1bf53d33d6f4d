package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

// Cohort is a group of queues, and of further cohorts, that lend each other
// what is idle.
type Cohort struct {
	Name   string
	Parent string // "" = none
	// Quotas are slices that the cohort has for its members, above what each
	// of them has. Borrow and Lend are towards the parent.
	Quotas []Quota
	Weight *resource.Quantity // in fair sharing among the parent's members; nil = 1
}

// Chips is the cohort's own quota as Kueue counts it.
func (c Cohort) Chips() int64 {
	var n int64
	for _, q := range c.Quotas {
		n += q.Chips()
	}
	return n
}

// Object renders the Cohort.
func (c Cohort) Object() *kueue.Cohort {
	o := &kueue.Cohort{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Cohort"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: managed()},
		Spec:       kueue.CohortSpec{ParentName: kueue.CohortReference(c.Parent)},
	}
	if c.Weight != nil {
		o.Spec.FairSharing = &kueue.FairSharing{Weight: c.Weight}
	}
	if len(c.Quotas) > 0 {
		group := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{accelerator.ResourceName}}
		for _, q := range c.Quotas {
			group.Flavors = append(group.Flavors, q.object())
		}
		o.Spec.ResourceGroups = []kueue.ResourceGroup{group}
	}
	return o
}

// maxChips is the largest quota: Kueue adds quotas up in 64 bits.
const maxChips = 1 << 50

// Validate checks what the CRD and Kueue's webhook would refuse.
func (c Cohort) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("cohort %s: "+format, append([]any{c.Name}, args...)...))
	}
	if err := checkName("cohort", c.Name); err != nil {
		errs = append(errs, err)
	}
	if c.Parent != "" {
		if err := checkName("parent cohort", c.Parent); err != nil {
			errs = append(errs, err)
		}
	}
	if c.Parent == c.Name {
		add("it is its own parent")
	}
	if c.Weight != nil {
		if err := checkWeight(*c.Weight); err != nil {
			add("%w", err)
		}
	}
	if len(c.Quotas) > maxFlavors {
		add("%d flavors; Kueue allows %d", len(c.Quotas), maxFlavors)
	}
	seen := map[string]bool{}
	for _, q := range c.Quotas {
		if err := checkName("flavor", q.Flavor); err != nil {
			errs = append(errs, err)
		}
		if seen[q.Flavor] {
			add("flavor %s is listed twice; add the slices up in one entry", q.Flavor)
		}
		seen[q.Flavor] = true
		if c.Parent == "" && (q.Borrow != nil || q.Lend != nil) {
			add("flavor %s: borrowing and lending limits are towards the parent; it has none", q.Flavor)
		}
		for what, n := range map[string]*int64{"quota": &q.Slices, "borrowing limit": q.Borrow, "lending limit": q.Lend} {
			switch {
			case n == nil:
			case *n < 0:
				add("flavor %s: a %s of %d slices; it cannot be negative", q.Flavor, what, *n)
			case *n > maxChips/int64(max(q.Slice.Chips, 1)):
				add("flavor %s: a %s of %d slices is more than Kueue can count", q.Flavor, what, *n)
			}
		}
	}
	return errors.Join(errs...)
}

// Cycle returns the way from the cohort over its parents back to itself, or
// nil. all are the cohorts there are. Kueue accepts a cycle, and then admits
// nothing in any queue of its cohorts.
func (c Cohort) Cycle(all []kueue.Cohort) []string {
	parents := map[string]string{}
	for _, o := range all {
		parents[o.Name] = string(o.Spec.ParentName)
	}
	parents[c.Name] = c.Parent
	way := []string{c.Name}
	for at := c.Parent; at != ""; at = parents[at] {
		again := slices.Contains(way, at)
		way = append(way, at)
		if at == c.Name {
			return way
		}
		if again { // somebody else's cycle
			return nil
		}
	}
	return nil
}

// CycleError is a cohort that would be its own ancestor.
func CycleError(way []string) error {
	return fmt.Errorf("cohort %s would be its own ancestor: %s\nKueue stops admitting jobs in all of them. Choose another parent", way[0], strings.Join(way, " is in "))
}
