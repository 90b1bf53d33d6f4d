package training

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// ReadSpec reads a job back, its files included. A missing one is a
// *NotFoundError.
func ReadSpec(ctx context.Context, c *kube.Client, key types.NamespacedName) (Spec, error) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	found, err := c.Fetch(ctx, js)
	if err != nil {
		return Spec{}, err
	}
	if !found {
		return Spec{}, &NotFoundError{Cluster: c.Name, Namespace: key.Namespace, Name: key.Name}
	}
	s := FromJobSet(js)
	return s, ReadFiles(ctx, c, js, &s)
}

// Past is what there is of a run: the jobs with its id in one namespace.
type Past struct {
	// Next is the ATTEMPT after all of theirs.
	Next int
	// Going is a job that is not over; nil when the run may be gone on with.
	Going *Run
	// Unfinished are all jobs that are not over.
	Unfinished []Run
	Names      []string
}

// ReadPast reads what there is of a run. It counts the attempts of the jobs that
// are still there; the newest knows of those before it.
func ReadPast(ctx context.Context, c *kube.Client, namespace, runID string) (Past, error) {
	var sets jobset.JobSetList
	if err := list(ctx, c, &sets, client.InNamespace(namespace), client.MatchingLabels{LabelRunID: runID}); err != nil {
		return Past{}, err
	}
	var past Past
	for i := range sets.Items {
		js := &sets.Items[i]
		past.Names = append(past.Names, js.Name)
		past.Next = max(past.Next, FromJobSet(js).FirstAttempt+int(js.Status.Restarts)+1)
		_, wl, err := fetch(ctx, c, namespace, js.Name)
		if err != nil {
			return Past{}, err
		}
		if r := Read(js, wl); !r.Over() {
			past.Going = &r
			past.Unfinished = append(past.Unfinished, r)
		}
	}
	return past, nil
}

// GoingError says that a run is not to be gone on with, because a job of it is
// not over: two would write to the same OUTPUT_DIR.
type GoingError struct{ Run Run }

func (e *GoingError) Error() string {
	return fmt.Sprintf("job %s/%s is %s, and goes on with run %s by itself", e.Run.Namespace, e.Run.Name, e.Run.State, e.Run.RunID)
}

// Afresh is the job under another name, as a run of its own.
func (s Spec) Afresh(name string) Spec {
	s.Name, s.RunID, s.FirstAttempt, s.Held = name, "", 0, false
	return s
}

// GoOn is the job under another name, going on with its run at an attempt.
func (s Spec) GoOn(name string, attempt int) Spec {
	s.RunID = s.runID()
	s.Name, s.FirstAttempt, s.Held = name, attempt, false
	return s
}

// Annotate changes labels and annotations of a job: nil takes one away. Its
// *FieldErrors are of what a job cannot have.
func Annotate(ctx context.Context, c *kube.Client, key types.NamespacedName, labels, annotations map[string]*string) error {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	found, err := c.Fetch(ctx, js)
	if err != nil {
		return err
	}
	if !found {
		return &NotFoundError{Cluster: c.Name, Namespace: key.Namespace, Name: key.Name}
	}
	before := FromJobSet(js)
	after := before
	after.Labels, after.Annotations = edited(before.Labels, labels), edited(before.Annotations, annotations)
	var errs []error
	after.validateMetadata(func(field, format string, args ...any) {
		errs = append(errs, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
	})
	if len(errs) > 0 {
		return errs[0]
	}
	return Change(ctx, c, before, after)
}

func edited(had map[string]string, edits map[string]*string) map[string]string {
	out := map[string]string{}
	for key, value := range had {
		out[key] = value
	}
	for key, value := range edits {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = *value
		}
	}
	return out
}
