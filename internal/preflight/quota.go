package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// queue looks for the job's queue, and whether its quota can ever admit the job.
func (c Checks) queue(ctx context.Context, s training.Spec) []Item {
	if s.Queue == "" {
		return nil
	}
	lq, items := c.queueOf(ctx, s)
	if lq == nil {
		return items
	}
	return append(items, c.quota(ctx, s, string(lq.Spec.ClusterQueue))...)
}

// quota holds the job's chips against the most that its queue can have.
func (c Checks) quota(ctx context.Context, s training.Spec, name string) []Item {
	cq := &kueue.ClusterQueue{}
	switch err := c.Cluster.Get(ctx, client.ObjectKey{Name: name}, cq); {
	case apierrors.IsForbidden(err):
		return unknown(nameQuota, "this account may not look at the quota of queue "+name)
	case apierrors.IsNotFound(err):
		return unknown(nameQuota, "ClusterQueue "+name+" does not exist: nothing is admitted until it does")
	case err != nil:
		return unknown(nameQuota, plain(err))
	}
	want := int64(s.Slices) * int64(s.Slice.Chips)
	labels := selector(s)
	var most int64
	var fit, others []string
	for _, group := range cq.Spec.ResourceGroups {
		for _, f := range group.Flavors {
			r := chips(f)
			if r == nil {
				continue
			}
			ok, err := c.fits(ctx, string(f.Name), labels)
			if err != nil {
				return unknown(nameQuota, "the flavors of queue "+name+" cannot be read: "+plain(err))
			}
			if !ok {
				others = append(others, string(f.Name))
				continue
			}
			fit = append(fit, string(f.Name))
			has, bounded, err := c.most(ctx, cq, f.Name, *r)
			if err != nil || !bounded {
				return passed(nameQuota, fmt.Sprintf("queue %s may borrow from its cohort for %d chips of %s", name, want, f.Name))
			}
			most = max(most, has)
		}
	}
	switch {
	case len(fit) == 0 && len(others) > 0:
		return failed(nameQuota, fmt.Sprintf("queue %s has no flavor for %s: it has %s", name, s.PoolSlice().Name, strings.Join(others, ", ")))
	case len(fit) == 0:
		return failed(nameQuota, fmt.Sprintf("queue %s has no quota of TPU chips", name))
	case most < want:
		return failed(nameQuota, fmt.Sprintf("queue %s can never have %d chips of %s (%d slices): with all that it may borrow it has %d. Ask for fewer slices, or raise its quota",
			name, want, strings.Join(fit, " or "), s.Slices, most))
	}
	return passed(nameQuota, fmt.Sprintf("%d of at most %d chips of %s", want, most, strings.Join(fit, " or ")))
}

// selector is the node selector of the job's pods, as Kueue reads it.
func selector(s training.Spec) map[string]string {
	js := s.JobSet()
	for _, rj := range js.Spec.ReplicatedJobs {
		if rj.Name == training.SliceJob {
			return rj.Template.Spec.Template.Spec.NodeSelector
		}
	}
	return s.NodeSelector()
}

func chips(f kueue.FlavorQuotas) *kueue.ResourceQuota {
	i := slices.IndexFunc(f.Resources, func(r kueue.ResourceQuota) bool { return r.Name == accelerator.ResourceName })
	if i < 0 {
		return nil
	}
	return &f.Resources[i]
}

// fits tells whether nodes of a flavor can be what the pods select: no label of
// both has two values.
func (c Checks) fits(ctx context.Context, flavor string, labels map[string]string) (bool, error) {
	rf := &kueue.ResourceFlavor{}
	if err := c.Cluster.Get(ctx, client.ObjectKey{Name: flavor}, rf); err != nil {
		return false, err
	}
	for key := range maps.Keys(rf.Spec.NodeLabels) {
		if want, asked := labels[key]; asked && want != rf.Spec.NodeLabels[key] {
			return false, nil
		}
	}
	return true, nil
}

// most is the largest amount of a flavor's chips that a queue can have: its own,
// and what it may borrow from the queues of its cohort. Of cohorts of cohorts it
// is not bounded here.
func (c Checks) most(ctx context.Context, cq *kueue.ClusterQueue, flavor kueue.ResourceFlavorReference, r kueue.ResourceQuota) (most int64, bounded bool, err error) {
	own := r.NominalQuota.Value()
	cohort := cq.Spec.CohortName
	if cohort == "" {
		return own, true, nil
	}
	if r.BorrowingLimit != nil && r.BorrowingLimit.IsZero() {
		return own, true, nil
	}
	object := &kueue.Cohort{}
	switch err := c.Cluster.Get(ctx, client.ObjectKey{Name: string(cohort)}, object); {
	case err == nil:
		return 0, false, nil // it has quota of its own, or a parent
	case !apierrors.IsNotFound(err):
		return 0, false, err
	}
	var all kueue.ClusterQueueList
	if err := c.Cluster.List(ctx, &all); err != nil {
		return 0, false, err
	}
	var lent int64
	for i := range all.Items {
		other := &all.Items[i]
		if other.Spec.CohortName != cohort || other.Name == cq.Name {
			continue
		}
		for _, group := range other.Spec.ResourceGroups {
			for _, f := range group.Flavors {
				if q := chips(f); f.Name == flavor && q != nil {
					lends := q.NominalQuota.Value()
					if q.LendingLimit != nil {
						lends = min(lends, q.LendingLimit.Value())
					}
					lent += lends
				}
			}
		}
	}
	if r.BorrowingLimit != nil {
		lent = min(lent, r.BorrowingLimit.Value())
	}
	return own + lent, true, nil
}
