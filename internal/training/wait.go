package training

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Level is how far Wait waits.
type Level string

// The levels, each implying the ones before it. A run that ends has reached
// them all.
const (
	LevelCreated   Level = "created"
	LevelAdmitted  Level = "admitted"
	LevelRunning   Level = "running"
	LevelCompleted Level = "completed"
)

// Levels lists them.
var Levels = []string{string(LevelCreated), string(LevelAdmitted), string(LevelRunning), string(LevelCompleted)}

// Reached tells whether a run in state s is as far as l.
func (l Level) Reached(s State) bool {
	if s.Finished() {
		return true
	}
	switch l {
	case LevelCreated:
		return true
	case LevelAdmitted:
		return s == Admitted || s == Starting || s == Running || s == Restarting
	case LevelRunning:
		return s == Running
	}
	return false
}

// recheck bounds what a watch that silently died can cost.
const recheck = 5 * time.Second

// impossible are the reasons for holding a job back that no waiting ends: the
// job, its queue, its priority class or its flavors must change first.
var impossible = []string{
	ReasonNoQueue, ReasonNoPriority,
	kueue.WorkloadQuotaReservedReasonExceedsMaxQuota,
	kueue.WorkloadQuotaReservedReasonNoMatchingFlavor,
	kueue.WorkloadQuotaReservedReasonMisconfigured,
}

// hopelessAfter is how long such a reason must stand before Wait believes it:
// the queue may be changing in the same apply.
const hopelessAfter = 20 * time.Second

// InadmissibleError says that Kueue cannot admit the job as things are.
type InadmissibleError struct{ Run Run }

func (e *InadmissibleError) Error() string {
	return fmt.Sprintf("Kueue cannot admit job %s/%s to queue %s as things are (%s): %s", e.Run.Namespace, e.Run.Name, e.Run.Queue, e.Run.Reason, e.Run.Message)
}

// Wait follows a run by watch until it has reached level, and calls progress
// (which may be nil) with each new reading. When ctx ends it returns the last
// reading and the cause. A run whose object vanishes is returned as Gone, with
// a *NotFoundError; a job that its queue can never admit with an
// *InadmissibleError; a cluster that stays silent ends it with a
// *kube.UnreachableError.
func Wait(ctx context.Context, c *kube.Client, key types.NamespacedName, level Level, progress func(Run)) (Run, error) {
	var last Run
	changes := make(chan struct{}, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var outage kube.Outage
	var hopeless time.Time // since when
	for started := false; ; {
		r, err := Get(ctx, c, key.Namespace, key.Name)
		err = outage.Note(c, err)
		var missing *NotFoundError
		switch {
		case errors.As(err, &missing):
			last.Namespace, last.Name = key.Namespace, key.Name
			last.State, last.Reason, last.Message = Gone, ReasonNotFound, missing.Error()
			return last, err
		case err != nil && ctx.Err() == nil && !kube.Transient(err):
			return last, err
		case err == nil:
			last = r
			if progress != nil {
				progress(r)
			}
			if level.Reached(r.State) || r.Over() {
				return r, nil
			}
			switch {
			case r.State != Pending || !slices.Contains(impossible, r.Reason):
				hopeless = time.Time{}
			case hopeless.IsZero():
				hopeless = time.Now()
			case time.Since(hopeless) >= hopelessAfter:
				return r, &InadmissibleError{Run: r}
			}
			if !started {
				follow(watching, c, r, changes)
				started = true
			}
		}
		timer := time.NewTimer(recheck)
		select {
		case <-ctx.Done():
			timer.Stop()
			return last, fmt.Errorf("waiting for job %s in cluster %s to be %s (now %s): %w", key, c.Name, level, last.State, context.Cause(ctx))
		case <-changes:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// follow signals changes of the run's JobSet and Workload until ctx ends. A
// watch that cannot be opened, or ends, is opened again by and by; meanwhile
// Wait reads on its own every few seconds.
func follow(ctx context.Context, c *kube.Client, r Run, changes chan<- struct{}) {
	one := func(list client.ObjectList, opts ...client.ListOption) {
		for ctx.Err() == nil {
			w, err := c.Watch(ctx, list, append(opts, client.InNamespace(r.Namespace))...)
			if err == nil {
				drain(ctx, w, changes)
				w.Stop()
			}
			select {
			case <-ctx.Done():
			case <-time.After(recheck):
			}
		}
	}
	go one(&jobset.JobSetList{}, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.Name)})
	if r.Queue != "" {
		go one(&kueue.WorkloadList{}, client.MatchingLabels{queue.LabelJobUID: r.UID})
	}
}

// drain turns events into signals; a signal that waits already covers more.
func drain(ctx context.Context, w watch.Interface, changes chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}
}
