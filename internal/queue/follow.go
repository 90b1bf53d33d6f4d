package queue

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Lowered is a quota that Lower has changed.
type Lowered struct {
	Queue, Flavor string

	from, to kueue.ResourceQuota
}

// Lower takes the quotas that follow the slice pool at path down until they are
// no more than so many slices together, and returns those that it changed. It is
// for whoever is about to shrink or delete the pool: a queue that is lowered
// afterwards admits jobs meanwhile to slices that are going. What runs is not
// evicted: what queues hold is lowered last. A cluster without Kueue has no queue
// that follows.
func Lower(ctx context.Context, k *kube.Client, pool string, left, chipsPerSlice int64) (lowered []Lowered, err error) {
	var all []kueue.ClusterQueue
	var page kueue.ClusterQueueList
	err = k.Pages(ctx, &page, "that follow "+pool, func() error {
		all = append(all, page.Items...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	limits := divide(sharesOf(all, pool, max(chipsPerSlice, 1)), left)
	for i := range all {
		var changed []Lowered
		err := change(ctx, k, &all[i], "lowering the quota of", func(cq *kueue.ClusterQueue) bool {
			changed = lower(cq, limits, max(chipsPerSlice, 1))
			return len(changed) > 0
		})
		if err != nil {
			return lowered, err
		}
		lowered = append(lowered, changed...)
	}
	return lowered, nil
}

// Raise puts back what was lowered, where nobody has changed it since.
func Raise(ctx context.Context, k *kube.Client, lowered []Lowered) error {
	for _, l := range lowered {
		cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: l.Queue}}
		if found, err := k.Fetch(ctx, cq); err != nil {
			return err
		} else if !found {
			continue
		}
		err := change(ctx, k, cq, "raising the quota of", func(cq *kueue.ClusterQueue) (changed bool) {
			for _, g := range cq.Spec.ResourceGroups {
				for _, f := range g.Flavors {
					r := resourceOf(f, accelerator.ResourceName)
					if string(f.Name) == l.Flavor && r != nil && equality.Semantic.DeepEqual(*r, l.to) {
						*r, changed = l.from, true
					}
				}
			}
			return changed
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// change edits a ClusterQueue, as it is then where somebody else changes it at
// the same time. edit tells whether there was something to change.
func change(ctx context.Context, k *kube.Client, cq *kueue.ClusterQueue, verb string, edit func(*kueue.ClusterQueue) bool) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := cq.DeepCopy()
		if !edit(cq) {
			return nil
		}
		err := k.Patch(ctx, cq, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(kube.FieldManager))
		if apierrors.IsConflict(err) {
			if found, ferr := k.Fetch(ctx, cq); ferr != nil || !found {
				return ferr
			}
		}
		return err
	})
	if err != nil {
		return &kube.Error{Verb: verb, Kind: "ClusterQueue", Key: cq.Name, Cluster: k.Name, Err: err}
	}
	return nil
}

// share is a quota that follows a pool, in slices, and how much of it jobs hold.
type share struct{ quota, held int64 }

// place is where a share is.
type place struct{ queue, flavor string }

func sharesOf(all []kueue.ClusterQueue, pool string, chipsPerSlice int64) map[place]share {
	shares := map[place]share{}
	for i := range all {
		cq := &all[i]
		pools := SlicePools(cq)
		for _, g := range cq.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				r := resourceOf(f, accelerator.ResourceName)
				if r == nil || pools[string(f.Name)] != pool {
					continue
				}
				u := usage(cq.Status.FlavorsReservation, f.Name, *r)
				own := u.Total.Value() - u.Borrowed.Value()
				s := share{quota: r.NominalQuota.Value() / chipsPerSlice}
				s.held = min(s.quota, (own+chipsPerSlice-1)/chipsPerSlice)
				shares[place{cq.Name, string(f.Name)}] = s
			}
		}
	}
	return shares
}

// divide says how much of each share is left when all have only left slices
// together: what is held comes first, the rest in proportion to what was asked
// for.
func divide(shares map[place]share, left int64) map[place]int64 {
	var asked, held int64
	for _, s := range shares {
		asked, held = asked+s.quota, held+s.held
	}
	limits := map[place]int64{}
	if asked <= left {
		for at, s := range shares {
			limits[at] = s.quota
		}
		return limits
	}
	// First what is held, as far as there is enough; then the idle part.
	first := min(held, left)
	apportion(limits, shares, first, func(s share) int64 { return s.held })
	apportion(limits, shares, left-first, func(s share) int64 { return s.quota - s.held })
	return limits
}

// apportion adds n slices to limits in proportion to part, in whole slices; what
// is left over goes to the largest remainders.
func apportion(limits map[place]int64, shares map[place]share, n int64, part func(share) int64) {
	type rest struct {
		at        place
		remainder float64
	}
	var all float64
	var rests []rest
	for _, s := range shares {
		all += float64(part(s))
	}
	given := int64(0)
	for at, s := range shares {
		exact := 0.0
		if all > 0 {
			exact = float64(n) * float64(part(s)) / all
		}
		whole := min(int64(exact), part(s))
		limits[at] += whole
		given += whole
		rests = append(rests, rest{at, exact - float64(whole)})
	}
	slices.SortFunc(rests, func(a, b rest) int {
		return cmp.Or(cmp.Compare(b.remainder, a.remainder), cmp.Compare(a.at.queue, b.at.queue), cmp.Compare(a.at.flavor, b.at.flavor))
	})
	for i := 0; i < len(rests) && given < n && rests[i].remainder > 0; i++ {
		limits[rests[i].at]++
		given++
	}
}

// lower changes the quotas of cq that have a limit, in slices, and returns those
// that were above it.
func lower(cq *kueue.ClusterQueue, limits map[place]int64, chipsPerSlice int64) (lowered []Lowered) {
	for g := range cq.Spec.ResourceGroups {
		flavors := cq.Spec.ResourceGroups[g].Flavors
		for f := range flavors {
			most, follows := limits[place{cq.Name, string(flavors[f].Name)}]
			r := resourceOf(flavors[f], accelerator.ResourceName)
			if !follows || r == nil || r.NominalQuota.Value()/chipsPerSlice <= most {
				continue
			}
			l := Lowered{Queue: cq.Name, Flavor: string(flavors[f].Name), from: *r.DeepCopy()}
			r.NominalQuota = *resource.NewQuantity(most*chipsPerSlice, resource.DecimalSI)
			if r.LendingLimit != nil && r.LendingLimit.Cmp(r.NominalQuota) > 0 {
				r.LendingLimit = ptr.To(r.NominalQuota) // Kueue refuses to lend more than there is
			}
			l.to = *r.DeepCopy()
			lowered = append(lowered, l)
		}
	}
	return lowered
}
