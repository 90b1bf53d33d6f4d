// Package jobs is tpuctl's commands for training jobs. It shows what
// internal/training read off the cluster, turns flags into what internal/training
// does there, and decides nothing about either.
package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/preflight"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
	"github.com/tpu-training/terraform-provider-tpu/internal/training/logs"
)

// Source reads runs of one cluster.
type Source interface {
	List(ctx context.Context, namespace string) ([]training.Run, error)
	// Select is that of internal/training: the server chooses.
	Select(ctx context.Context, q training.Query) (training.Listing, error)
	Get(ctx context.Context, namespace, name string) (training.Run, error)
	// Queues names the LocalQueues of a namespace, or of all where it is "".
	Queues(ctx context.Context, namespace string) ([]string, error)
	// Namespaces names those of the cluster.
	Namespaces(ctx context.Context) ([]string, error)
	// Installed is nil when the cluster can run jobs at all; without the
	// controller it is a *training.NotInstalledError.
	Installed(ctx context.Context) error
}

// Cluster is a Source that can be acted on.
type Cluster interface {
	Source
	Maker
	// Console is where Google's console shows the logs of a job; "" where the
	// cluster is not one of Google's.
	Console(namespace, name string) string
	// Submit creates the job; as training.Submit. With rehearse the API server
	// checks it and keeps nothing.
	Submit(ctx context.Context, s training.Spec, rehearse bool) (*jobset.JobSet, error)
	// Wait, SetActive and Delete are those of internal/training.
	Wait(ctx context.Context, key types.NamespacedName, level training.Level, progress func(training.Run)) (training.Run, error)
	SetActive(ctx context.Context, key types.NamespacedName, active bool) error
	Delete(ctx context.Context, namespace, name, uid string) error
	// Logs, FollowLogs and FirstFailure are those of internal/training/logs.
	Logs(ctx context.Context, run training.Run, o logs.Options, emit func(logs.Line) error) (programs int, err error)
	FollowLogs(ctx context.Context, run training.Run, o logs.Options, emit func(logs.Line) error, progress func(training.Run)) (training.Run, error)
	FirstFailure(ctx context.Context, run training.Run) (*training.Failure, error)
}

// Deps are what the commands need from outside; tests replace them.
type Deps struct {
	Streams *term.Streams
	// Open reaches the cluster that the flags, the environment and the account
	// point at.
	Open func(context.Context, target.Options) (Cluster, error)
	// Account is whom we work as, where that is known without asking; else "".
	Account func(target.Options) string
	// Namespace is that of the context that is meant, or "".
	Namespace func(target.Options) (string, error)
	// Aliases are those of the context that is meant, for --set.
	Aliases func(target.Options) (map[string]string, error)
	Now     func() time.Time
}

// inContext fills an empty namespace with the context's.
func (d Deps) inContext(t target.Options, namespace *string) (err error) {
	if *namespace == "" && d.Namespace != nil {
		*namespace, err = d.Namespace(t)
	}
	return err
}

// Commands are the job commands over real clusters.
func Commands(s *term.Streams) []*cobra.Command {
	d := Deps{Streams: s, Open: open, Account: target.Account, Namespace: target.Namespace, Aliases: target.Aliases, Now: time.Now}
	return []*cobra.Command{newSubmit(d), newRun(d), newRerun(d), newContinue(d), newCancel(d), newAnnotate(d), newList(d), newStatus(d), newWait(d), newLogs(d), newSuspend(d), newResume(d), newDelete(d)}
}

// cluster is the Cluster that a kube.Client makes.
type cluster struct {
	client  *kube.Client
	checks  preflight.Checks
	console func(namespace, name string) string
}

func open(ctx context.Context, o target.Options) (Cluster, error) {
	c, err := target.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return cluster{c, target.Checks(ctx, o, c), target.JobConsole(c)}, nil
}

func (c cluster) Select(ctx context.Context, q training.Query) (training.Listing, error) {
	return training.Select(ctx, c.client, q)
}

func (c cluster) List(ctx context.Context, namespace string) ([]training.Run, error) {
	return training.List(ctx, c.client, namespace)
}

func (c cluster) Get(ctx context.Context, namespace, name string) (training.Run, error) {
	return training.Get(ctx, c.client, namespace, name)
}

func (c cluster) Namespaces(ctx context.Context) ([]string, error) {
	return target.Namespaces(ctx, c.client)
}

func (c cluster) Console(namespace, name string) string { return c.console(namespace, name) }

func (c cluster) Installed(ctx context.Context) error { return training.Installed(ctx, c.client) }

func (c cluster) Queues(ctx context.Context, namespace string) ([]string, error) {
	return training.Queues(ctx, c.client, namespace)
}

func (c cluster) Submit(ctx context.Context, s training.Spec, rehearse bool) (*jobset.JobSet, error) {
	if rehearse {
		return training.Rehearse(ctx, c.client, s)
	}
	return training.Submit(ctx, c.client, s)
}

func (c cluster) Wait(ctx context.Context, key types.NamespacedName, level training.Level, progress func(training.Run)) (training.Run, error) {
	return training.Wait(ctx, c.client, key, level, progress)
}

func (c cluster) SetActive(ctx context.Context, key types.NamespacedName, active bool) error {
	return training.SetActive(ctx, c.client, key, active, "")
}

func (c cluster) Delete(ctx context.Context, namespace, name, uid string) error {
	return training.Delete(ctx, c.client, namespace, name, uid)
}

func (c cluster) Logs(ctx context.Context, run training.Run, o logs.Options, emit func(logs.Line) error) (int, error) {
	return logs.Read(ctx, logs.Of(c.client, keyOf(run)), o, emit)
}

func (c cluster) FollowLogs(ctx context.Context, run training.Run, o logs.Options, emit func(logs.Line) error, progress func(training.Run)) (training.Run, error) {
	return logs.FollowJob(ctx, c.client, keyOf(run), o, emit, progress)
}

func (c cluster) FirstFailure(ctx context.Context, run training.Run) (*training.Failure, error) {
	return logs.FirstFailure(ctx, logs.Of(c.client, keyOf(run)), run)
}

// noController is a NotInstalledError for somebody who looks for jobs.
func noController(e *training.NotInstalledError) string {
	return fmt.Sprintf("Cluster %s has no %s controller, and so no training jobs: tpu_job_controllers installs it.", e.Cluster, e.Controller)
}

// stateStyle colours a state.
func stateStyle(state string) term.Style {
	switch training.State(state) {
	case training.Running, training.Succeeded:
		return term.Good
	case training.Admitted, training.Starting:
		return term.Busy
	case training.Pending, training.Restarting, training.Suspended:
		return term.Wait
	case training.Failed, training.Gone:
		return term.Bad
	}
	return term.Plain
}
