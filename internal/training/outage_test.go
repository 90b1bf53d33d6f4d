package training

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// A cluster that dies under a job that is waited for is told within a minute
// or so, with the job's last state; a shorter outage is ridden out.
func TestWaitOnAClusterThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		away := func(at time.Duration) bool {
			return at > 10*time.Second && at < 50*time.Second || at > 100*time.Second
		}
		dies := func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if away(time.Since(began)) {
				return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return w.Get(ctx, key, obj, opts...)
		}
		c := &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).
			WithInterceptorFuncs(interceptor.Funcs{Get: dies}).WithObjects(makeRun(t).js, localQueue("research", "research")).Build()}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		s := spec(t)
		run, err := Wait(ctx, c, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, LevelCompleted, nil)
		took := time.Since(began)
		var silent *kube.UnreachableError
		if !errors.As(err, &silent) || took < 160*time.Second || took > 170*time.Second {
			t.Errorf("returned after %s with %v, want an UnreachableError a minute after the cluster died for good", took, err)
		}
		if run.State != Pending && run.State != Suspended {
			t.Errorf("the last reading is lost: %+v", run)
		}
		cancel()
		synctest.Wait()
	})
}
