package training

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// ExistsError says that the name is taken.
type ExistsError struct {
	Key     types.NamespacedName
	Cluster string
	// Same: the object was made from this very Spec, so it is what an
	// interrupted submission left behind.
	Same bool
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("cluster %s already has a job %s in namespace %s", e.Cluster, e.Key.Name, e.Key.Namespace)
}

// NotInstalledError says that the cluster has no JobSet or no Kueue controller.
type NotInstalledError struct{ Cluster, Controller string }

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("cluster %s has no %s controller: install it (tpu_job_controllers) and make the job depend on it", e.Cluster, e.Controller)
}

// QueueNotFoundError says that the job would wait in a queue that is not
// there: Kueue would hold it back for ever, without a word.
type QueueNotFoundError struct {
	Cluster, Namespace, Queue string
	Others                    []string // queues that the namespace has
	NoNamespace               bool     // there is not even the namespace
}

func (e *QueueNotFoundError) Error() string {
	if e.NoNamespace {
		return fmt.Sprintf("cluster %s has no namespace %s: make it first (tpu_training_namespace, and list it in a tpu_kueue_queue), or correct the name", e.Cluster, e.Namespace)
	}
	has := "it has none; list the namespace in a tpu_kueue_queue"
	if len(e.Others) > 0 {
		has = "it has " + strings.Join(e.Others, ", ")
	}
	return fmt.Sprintf("namespace %s of cluster %s has no queue %s: %s", e.Namespace, e.Cluster, e.Queue, has)
}

// checkQueue makes sure that the job's LocalQueue exists. Somebody who may
// create jobs but not read queues is not held up.
func checkQueue(ctx context.Context, c *kube.Client, s Spec) error {
	if s.Queue == "" {
		return nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Queue}, &kueue.LocalQueue{})
	switch {
	case meta.IsNoMatchError(err):
		return &NotInstalledError{Cluster: c.Name, Controller: "Kueue"}
	case !apierrors.IsNotFound(err):
		return nil // found, or what creating the job will say better
	}
	missing := &QueueNotFoundError{Cluster: c.Name, Namespace: s.Namespace, Queue: s.Queue}
	if err := c.Get(ctx, client.ObjectKey{Name: s.Namespace}, &corev1.Namespace{}); apierrors.IsNotFound(err) {
		missing.NoNamespace = true
		return missing
	}
	missing.Others, _ = Queues(ctx, c, s.Namespace) // what cannot be read is not named
	return missing
}

// Queues names the LocalQueues of a namespace.
func Queues(ctx context.Context, c *kube.Client, namespace string) ([]string, error) {
	var all kueue.LocalQueueList
	if err := list(ctx, c, &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names, nil
}

// Rehearse lets the API server and its webhooks check the job as Submit would
// create it, and returns it with their defaults. Nothing is kept.
func Rehearse(ctx context.Context, c *kube.Client, s Spec) (*jobset.JobSet, error) {
	if err := checkQueue(ctx, c, s); err != nil {
		return nil, err
	}
	js := s.JobSet()
	err := c.Create(ctx, js, client.FieldOwner(kube.FieldManager), client.DryRunAll)
	switch {
	case err == nil:
		return js, nil
	case meta.IsNoMatchError(err):
		return nil, &NotInstalledError{Cluster: c.Name, Controller: "JobSet"}
	case apierrors.IsAlreadyExists(err):
		return nil, &ExistsError{Key: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, Cluster: c.Name}
	}
	return nil, &kube.Error{Verb: "checking", Kind: "JobSet", Key: s.Namespace + "/" + s.Name, Cluster: c.Name, Err: err}
}

// Submit creates the job, and retries while the webhooks are not up yet. A
// taken name is an *ExistsError, a missing queue a *QueueNotFoundError. It creates
// and never applies: a job's spec cannot change, and much of a stored one is
// Kueue's. What a job of this very Spec still lacks it gets.
func Submit(ctx context.Context, c *kube.Client, s Spec) (*jobset.JobSet, error) {
	if err := checkQueue(ctx, c, s); err != nil {
		return nil, err
	}
	want := s.JobSet()
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	for attempt := 0; ; attempt++ {
		js := want.DeepCopy()
		err := c.Create(ctx, js, client.FieldOwner(kube.FieldManager))
		switch {
		case err == nil:
			return js, EnsureFiles(ctx, c, s, js)
		case meta.IsNoMatchError(err):
			return nil, &NotInstalledError{Cluster: c.Name, Controller: "JobSet"}
		case apierrors.IsAlreadyExists(err):
			exists := &ExistsError{Key: key, Cluster: c.Name}
			had := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
			if found, err := c.Fetch(ctx, had); err != nil {
				return nil, err
			} else if found {
				exists.Same = had.Annotations[AnnotationSpecHash] == s.Hash()
			}
			if exists.Same { // whoever made it may have ended before its files
				if err := EnsureFiles(ctx, c, s, had); err != nil {
					return nil, err
				}
			}
			// After an unclear answer the object may be our own first try.
			if exists.Same && attempt > 0 {
				return had, nil
			}
			return nil, exists
		case kube.Transient(err):
			if pauseErr := pause(ctx, attempt); pauseErr == nil {
				continue
			}
		}
		return nil, &kube.Error{Verb: "creating", Kind: "JobSet", Key: key.String(), Cluster: c.Name, Err: err}
	}
}

// maxAttempts of a transiently failing call: with the pauses about 40 s, which
// outlasts a webhook that starts.
const maxAttempts = 12

var errTooOften = errors.New("tried too often")

func pause(ctx context.Context, attempt int) error {
	if attempt >= maxAttempts {
		return errTooOften
	}
	timer := time.NewTimer(min(250*time.Millisecond<<min(attempt, 5), 4*time.Second))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
