// Package logs reads what the programs of a training job print: on all of its
// hosts, merged, through the cluster's API server, across broken connections
// and new attempts. It reads only; whoever stops reading harms no job.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// All, as Options.Tail, is every line there is.
const All = -1

// Options say which lines are wanted.
type Options struct {
	Hosts     []Host // none means every one
	Pod       string // only this pod; "" = every one
	Container string // only this one; "" = all but init containers

	Since time.Time // zero: from the beginning
	Tail  int       // at most so many of the newest lines of each program; All

	// Previous asks for what ran before: pods of a host that a later pod
	// replaced, and a container's run before its present one.
	Previous bool

	// Note is told what cannot be read for now or at all; nil: nobody is.
	Note func(string)
}

func (o Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// Line is one line that a program printed.
type Line struct {
	Job         string // the replicated job: training.SliceJob, or a further job
	Slice, Host int    // of a further job: its index, and the pod
	Attempt     int    // restarts of the run before this pod was made
	Pod         string
	Container   string
	Several     bool // the pod has more than one container
	Time        time.Time
	Text        string // without the newline

	chips bool // its pod asks for some
}

// Source is the part of a cluster that logs take.
type Source interface {
	// Pods are those of the job that there are now.
	Pods(ctx context.Context) ([]corev1.Pod, error)
	// Pod reads one of them again; nil when it is gone.
	Pod(ctx context.Context, name string) (*corev1.Pod, error)
	// Watch calls changed for each pod that is new or has changed, until the
	// watch ends for whatever reason.
	Watch(ctx context.Context, changed func(corev1.Pod))
	// Open reads a container's log, each line with its time before it.
	Open(ctx context.Context, pod string, o corev1.PodLogOptions) (io.ReadCloser, error)
}

// NoPodsError is a job none of whose pods is there (it has not started yet, or
// they were removed), or has what was looked for.
type NoPodsError struct {
	Run    training.Run
	Wanted string // what was looked for, beyond the job; ""
	Why    string // pods are there, but not what was looked for in them
}

func (e *NoPodsError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("job %s/%s (%s): %s", e.Run.Namespace, e.Run.Name, e.Run.State, e.Why)
	}
	what := "pod"
	if e.Wanted != "" {
		what = "pod of " + e.Wanted
	}
	why := ""
	switch {
	case e.Run.State.Finished():
		why = ": the pods of a finished job go with it, or with its restart"
	case e.Run.State == training.Pending || e.Run.State == training.Admitted:
		why = ": it has not started"
	case e.Run.State == training.Suspended:
		why = ": the pods of a suspended job are removed"
	}
	return fmt.Sprintf("job %s/%s (%s) has no %s whose log can be read%s", e.Run.Namespace, e.Run.Name, e.Run.State, what, why)
}

// Read hands over the lines that there are, of all hosts in the order of their
// times. It returns how many there were programs to read from.
func Read(ctx context.Context, s Source, o Options, emit func(Line) error) (programs int, err error) {
	return newReader(s, o, emit).read(ctx)
}

// Follow hands over the lines that there are, and then each new one as it
// comes, also of pods that are made later, until done is closed and everything
// has been read, or ctx ends.
func Follow(ctx context.Context, s Source, o Options, done <-chan struct{}, emit func(Line) error) error {
	return newReader(s, o, emit).follow(ctx, done)
}

// FirstFailure is the program that a run failed by, or that failed first among
// its pods that are there; nil when none has.
func FirstFailure(ctx context.Context, s Source, run training.Run) (*training.Failure, error) {
	if run.Failure != nil {
		return run.Failure, nil
	}
	pods, err := s.Pods(ctx)
	return training.FirstFailure(pods), err
}

// FollowJob follows a job until it has ended, and returns it as it is then.
// progress (which may be nil) is told each new reading, as by training.Wait.
// When ctx ends, so does the reading; the job goes on.
func FollowJob(ctx context.Context, c *kube.Client, key types.NamespacedName, o Options, emit func(Line) error, progress func(training.Run)) (training.Run, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type end struct {
		run training.Run
		err error
	}
	ended, done := make(chan end, 1), make(chan struct{})
	go func() {
		run, err := training.Wait(ctx, c, key, training.LevelCompleted, progress)
		ended <- end{run, err}
		var missing *training.NotFoundError
		if err != nil && !errors.As(err, &missing) {
			cancel(err)
		}
		close(done)
	}()
	err := Follow(ctx, Of(c, key), o, done, emit)
	if err != nil {
		cancel(err)
	}
	e := <-ended
	if e.err != nil && (err == nil || !errors.Is(e.err, err)) {
		return e.run, e.err
	}
	return e.run, err
}
