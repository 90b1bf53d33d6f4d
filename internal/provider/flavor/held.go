package flavor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
