package queue

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Lower takes the quotas that follow the slice pool at path down to so many
// chips, where they are higher, and returns the names of their queues. It is for
// whoever is about to shrink the pool: a queue that is lowered afterwards admits
// jobs meanwhile to slices that are going. What runs is not evicted. A cluster
// without Kueue has no queue that follows.
func Lower(ctx context.Context, k *kube.Client, pool string, chips int64) (lowered []string, err error) {
	var all kueue.ClusterQueueList
	if err := k.List(ctx, &all); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, &kube.Error{Verb: "listing", Kind: "ClusterQueues", Key: "that follow " + pool, Cluster: k.Name, Err: err}
	}
	for i := range all.Items {
		cq := &all.Items[i]
		changed := false
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			before := cq.DeepCopy()
			if changed = lower(cq, pool, chips); !changed {
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
			return lowered, &kube.Error{Verb: "lowering the quota of", Kind: "ClusterQueue", Key: cq.Name, Cluster: k.Name, Err: err}
		}
		if changed {
			lowered = append(lowered, cq.Name)
		}
	}
	return lowered, nil
}

// lower changes the quotas of cq that follow the pool, and tells whether there
// was one to change.
func lower(cq *kueue.ClusterQueue, pool string, chips int64) (changed bool) {
	pools := SlicePools(cq)
	limit := *resource.NewQuantity(chips, resource.DecimalSI)
	for g := range cq.Spec.ResourceGroups {
		flavors := cq.Spec.ResourceGroups[g].Flavors
		for f := range flavors {
			if pools[string(flavors[f].Name)] != pool {
				continue
			}
			i := slices.IndexFunc(flavors[f].Resources, func(r kueue.ResourceQuota) bool { return r.Name == accelerator.ResourceName })
			if i < 0 || flavors[f].Resources[i].NominalQuota.Cmp(limit) <= 0 {
				continue
			}
			r := &flavors[f].Resources[i]
			r.NominalQuota, changed = limit, true
			if r.LendingLimit != nil && r.LendingLimit.Cmp(limit) > 0 {
				r.LendingLimit = ptr.To(limit) // Kueue refuses to lend more than there is
			}
		}
	}
	return changed
}
