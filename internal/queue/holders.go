package queue

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Uses tells whether a ClusterQueue names some object, which Kueue then keeps
// although it is to be deleted.
type Uses func(*kueue.ClusterQueue) bool

// UsesFlavor looks for a flavor.
func UsesFlavor(name string) Uses {
	return func(q *kueue.ClusterQueue) bool {
		return slices.ContainsFunc(q.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
			return slices.ContainsFunc(g.Flavors, func(f kueue.FlavorQuotas) bool { return string(f.Name) == name })
		})
	}
}

// UsesCheck looks for an admission check.
func UsesCheck(name string) Uses {
	return func(q *kueue.ClusterQueue) bool {
		s := q.Spec.AdmissionChecksStrategy
		return s != nil && slices.ContainsFunc(s.AdmissionChecks, func(c kueue.AdmissionCheckStrategyRule) bool { return string(c.Name) == name })
	}
}

// Holders are the ClusterQueues that keep an object and are not being deleted
// themselves. what names the object in an error.
func Holders(ctx context.Context, k *kube.Client, what string, uses Uses) ([]string, error) {
	var all kueue.ClusterQueueList
	if err := k.List(ctx, &all); err != nil {
		return nil, &kube.Error{Verb: "listing", Kind: "ClusterQueues", Key: "with " + what, Cluster: k.Name, Err: err}
	}
	var names []string
	for i := range all.Items {
		if q := &all.Items[i]; q.DeletionTimestamp == nil && uses(q) {
			names = append(names, q.Name)
		}
	}
	return names, nil
}

// Release deletes live and waits until it is gone, or returns the queues that
// hold it back: Kueue deletes it when they let it go. Waiting for them might
// never end, since Terraform turns them to another one only afterwards.
func Release(ctx context.Context, k *kube.Client, live client.Object, what string, uses Uses) (holders []string, err error) {
	if err := k.Remove(ctx, live, false); err != nil {
		return nil, err
	}
	found, err := k.Fetch(ctx, live)
	if err != nil || !found || live.GetDeletionTimestamp() == nil {
		return nil, err
	}
	if holders, err = Holders(ctx, k, what, uses); err != nil || len(holders) > 0 {
		return holders, err
	}
	return nil, k.Until(ctx, live, func(found bool) (bool, error) {
		return !found || live.GetDeletionTimestamp() == nil, nil
	})
}
