package flavor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// heldBy adds to a wait for an older flavor of this name that timed out which
// queues keep it.
func heldBy(ctx context.Context, k *kube.Client, flavor string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	holders, listErr := queue.Holders(ctx, k, "flavor "+flavor, queue.UsesFlavor(flavor))
	if listErr != nil || len(holders) == 0 {
		return err
	}
	return fmt.Errorf("%w\nKueue keeps it as long as a queue names it: %s", err, strings.Join(holders, ", "))
}

// stays refuses to wait for a Topology that somebody deleted: it goes when the
// flavor that names it goes, and that is this one.
func stays(ctx context.Context, k *kube.Client, flavor string) error {
	t := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: flavor}}
	if found, err := k.Fetch(ctx, t); err != nil || !found || t.DeletionTimestamp == nil {
		return err
	}
	f := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}}
	found, err := k.Fetch(ctx, f)
	if err != nil || !found || f.DeletionTimestamp != nil || f.Spec.TopologyName == nil || string(*f.Spec.TopologyName) != flavor {
		return err
	}
	return fmt.Errorf("somebody deleted Topology %[1]s on cluster %[2]s; Kueue keeps it as long as flavor %[1]s names it. "+
		"Make the flavor anew (terraform apply -replace=ADDRESS), or give it another name", flavor, k.Name)
}
