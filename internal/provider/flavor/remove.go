package flavor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// remove deletes the flavor and waits until it is gone, or returns the queues
// that hold it back.
func remove(ctx context.Context, k *kube.Client, name string) (holders []string, err error) {
	live := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := k.Remove(ctx, live, false); err != nil {
		return nil, err
	}
	found, err := k.Fetch(ctx, live)
	if err != nil || !found || live.DeletionTimestamp == nil {
		return nil, err
	}
	if holders, err = queuesOf(ctx, k, name); err != nil || len(holders) > 0 {
		return holders, err
	}
	return nil, k.Until(ctx, live, func(found bool) (bool, error) {
		return !found || live.DeletionTimestamp == nil, nil
	})
}

// queuesOf are the ClusterQueues that name the flavor and are not being deleted
// themselves.
func queuesOf(ctx context.Context, k *kube.Client, flavor string) ([]string, error) {
	var all kueue.ClusterQueueList
	if err := k.List(ctx, &all); err != nil {
		return nil, &kube.Error{Verb: "listing", Kind: "ClusterQueues", Key: "with flavor " + flavor, Cluster: k.Name, Err: err}
	}
	var names []string
	for i := range all.Items {
		q := &all.Items[i]
		uses := slices.ContainsFunc(q.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
			return slices.ContainsFunc(g.Flavors, func(f kueue.FlavorQuotas) bool { return string(f.Name) == flavor })
		})
		if uses && q.DeletionTimestamp == nil {
			names = append(names, q.Name)
		}
	}
	return names, nil
}

// heldBy adds to a wait for an older flavor of this name that timed out which
// queues keep it.
func heldBy(ctx context.Context, k *kube.Client, flavor string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	holders, listErr := queuesOf(ctx, k, flavor)
	if listErr != nil || len(holders) == 0 {
		return err
	}
	return fmt.Errorf("%w\nKueue keeps it as long as a queue names it: %s", err, strings.Join(holders, ", "))
}
