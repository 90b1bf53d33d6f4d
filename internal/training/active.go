package training

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// FinishedError says that a run has ended, and cannot be suspended or resumed.
type FinishedError struct{ Run Run }

func (e *FinishedError) Error() string {
	return fmt.Sprintf("job %s/%s has ended (%s): it cannot be suspended or resumed", e.Run.Namespace, e.Run.Name, e.Run.State)
}

// SetActive suspends a run or lets it run again. A queued run is suspended by
// its Workload, because spec.suspend of its JobSet is Kueue's, which would set
// it back. One that is not queued is suspended by spec.suspend, and one that
// was submitted Held joins queue ("" = it has none). What is so already is left
// as it is.
func SetActive(ctx context.Context, c *kube.Client, key types.NamespacedName, active bool, toQueue string) error {
	for attempt := 0; ; attempt++ {
		done, err := setActive(ctx, c, key, active, toQueue)
		if done || err != nil && !kube.Transient(err) && !apierrors.IsConflict(err) {
			return err
		}
		if err == nil {
			err = errors.New("there is no Workload of it; is Kueue running?")
		}
		if pauseErr := pause(ctx, attempt); pauseErr != nil {
			return &kube.Error{Verb: map[bool]string{true: "resuming", false: "suspending"}[active], Kind: "JobSet", Key: key.String(), Cluster: c.Name, Err: err}
		}
	}
}

// setActive is one try. Neither done nor an error is: there is no Workload yet.
func setActive(ctx context.Context, c *kube.Client, key types.NamespacedName, active bool, toQueue string) (done bool, err error) {
	js, wl, err := fetch(ctx, c, key.Namespace, key.Name)
	if err != nil {
		return false, err
	}
	if r := Read(js, wl); r.State.Finished() {
		return true, &FinishedError{Run: r}
	}
	patch := func(obj client.Object, text string) (bool, error) {
		err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner(kube.FieldManager))
		return err == nil, err
	}
	suspended := ptr.Deref(js.Spec.Suspend, false)
	switch {
	case js.Labels[queue.LabelQueueName] != "" && wl == nil:
		return false, nil
	case js.Labels[queue.LabelQueueName] != "":
		if ptr.Deref(wl.Spec.Active, true) == active {
			return true, nil
		}
		return patch(wl, fmt.Sprintf(`{"spec":{"active":%t}}`, active))
	case suspended != active:
		return true, nil
	case toQueue != "" && active:
		return patch(js, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, queue.LabelQueueName, toQueue))
	}
	return patch(js, fmt.Sprintf(`{"spec":{"suspend":%t}}`, !active))
}

// Active tells whether a run is meant to run, and whether that is known: a
// queued one by its Workload, which Kueue may not have made yet.
func Active(ctx context.Context, c *kube.Client, js *jobset.JobSet) (active, known bool, err error) {
	if js.Labels[queue.LabelQueueName] == "" {
		return !ptr.Deref(js.Spec.Suspend, false), true, nil
	}
	wl, err := workloadOf(ctx, c, js)
	if err != nil || wl == nil {
		return true, false, err
	}
	return ptr.Deref(wl.Spec.Active, true), true, nil
}

// QueueOf is the queue that a job is in, or is meant for while it is held back.
func QueueOf(ctx context.Context, c *kube.Client, key types.NamespacedName) (string, error) {
	js, _, err := fetch(ctx, c, key.Namespace, key.Name)
	if err != nil {
		return "", err
	}
	return FromJobSet(js).Queue, nil
}
