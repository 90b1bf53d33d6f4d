package training

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// A job that its queue can never admit is not waited for; one that waits its
// turn is.
func TestWaitForWhatCannotBe(t *testing.T) {
	for reason, never := range map[string]bool{
		kueue.WorkloadQuotaReservedReasonExceedsMaxQuota:  true,
		kueue.WorkloadQuotaReservedReasonNoMatchingFlavor: true,
		kueue.WorkloadQuotaReservedReasonWaitingForQuota:  false,
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := makeRun(t).wlCond(kueue.WorkloadQuotaReserved, false, reason, "as it is", 3)
				run.wl.Namespace, run.wl.Name = run.js.Namespace, "wl"
				run.wl.Labels = map[string]string{queue.LabelJobUID: string(run.js.UID)}
				c := &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(run.js, run.wl).Build()}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				began := time.Now()
				_, err := Wait(ctx, c, types.NamespacedName{Namespace: run.js.Namespace, Name: run.js.Name}, LevelAdmitted, nil)
				var told *InadmissibleError
				switch took := time.Since(began); {
				case never && (!errors.As(err, &told) || told.Run.Reason != reason || took > time.Minute):
					t.Errorf("after %s: %v", took, err)
				case !never && took != time.Hour:
					t.Errorf("given up after %s: %v", took, err)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
