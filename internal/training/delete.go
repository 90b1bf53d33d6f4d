package training

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// sweep deletes what the JobSet owned. The garbage collector does that too, but
// it learns of new kinds only twice a minute, so on a cluster whose controllers
// are new it can be half a minute late. Who may not delete Jobs just waits.
func sweep(ctx context.Context, c *kube.Client, js *jobset.JobSet) {
	opts := []client.DeleteAllOfOption{
		client.InNamespace(js.Namespace), client.MatchingLabels{jobset.JobSetUIDKey: string(js.UID)},
		client.PropagationPolicy(metav1.DeletePropagationBackground),
	}
	_ = c.DeleteAllOf(ctx, &batchv1.Job{}, opts...)
	if wl, err := workloadOf(ctx, c, js); err == nil && wl != nil {
		_ = c.Delete(ctx, wl)
	}
	// A new job of the same name would find this Service, take it for its own,
	// and lose it, and with it its hosts' names, when the collector comes.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: js.Namespace, Name: js.Name}}
	if js.Spec.Network != nil && js.Spec.Network.Subdomain != "" {
		service.Name = js.Spec.Network.Subdomain
	}
	if found, err := c.Fetch(ctx, service); err == nil && found && metav1.IsControlledBy(service, js) {
		_ = c.Delete(ctx, service)
	}
}

// Delete removes the job with this uid ("" = whichever has the name), and returns when its pods and its Workload are gone as
// well, so that nothing holds its slices or its quota any more. A job that is
// gone already is no error.
func Delete(ctx context.Context, c *kube.Client, namespace, name, uid string) error {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	found, err := c.Fetch(ctx, js)
	if err != nil || !found || uid != "" && string(js.UID) != uid {
		return err
	}
	if err := c.Remove(ctx, js, true); err != nil {
		return err
	}
	sweep(ctx, c, js)
	var outage kube.Outage
	for {
		wl, err := workloadOf(ctx, c, js)
		err = outage.Note(c, err)
		if err != nil && !kube.Transient(err) {
			return err
		}
		var pods corev1.PodList
		podErr := list(ctx, c, &pods, client.InNamespace(namespace), client.MatchingLabels{jobset.JobSetNameKey: name}, client.Limit(1))
		if podErr != nil && !kube.Transient(podErr) {
			return podErr
		}
		if err == nil && podErr == nil && wl == nil && len(pods.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			what := "its pods are still terminating"
			if wl != nil {
				what = "its Workload " + wl.Name + " is still there; is Kueue running?"
			}
			return fmt.Errorf("job %s/%s of cluster %s is deleted, but %s: %w", namespace, name, c.Name, what, context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
