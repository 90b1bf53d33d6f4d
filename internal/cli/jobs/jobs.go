// Package jobs is tpuctl's view of training jobs: list and status. It shows
// what internal/training read off the cluster and decides nothing about it.
package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tpu-training/terraform-provider-tpu/internal/cli/target"
	"github.com/tpu-training/terraform-provider-tpu/internal/cli/term"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// Source reads runs of one cluster.
type Source interface {
	List(ctx context.Context, namespace string) ([]training.Run, error)
	Get(ctx context.Context, namespace, name string) (training.Run, error)
	// Installed is nil when the cluster can run jobs at all; without the
	// controller it is a *training.NotInstalledError.
	Installed(ctx context.Context) error
}

// Deps are what the commands need from outside; tests replace them.
type Deps struct {
	Streams *term.Streams
	// Open reaches the cluster that the flags, the environment and the account
	// point at.
	Open func(context.Context, target.Options) (Source, error)
	Now  func() time.Time
}

// Commands are the job commands over real clusters.
func Commands(s *term.Streams) []*cobra.Command {
	d := Deps{Streams: s, Open: open, Now: time.Now}
	return []*cobra.Command{newList(d), newStatus(d)}
}

// cluster is the Source that a kube.Client makes.
type cluster struct{ client *kube.Client }

func open(ctx context.Context, o target.Options) (Source, error) {
	c, err := target.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return cluster{c}, nil
}

func (c cluster) List(ctx context.Context, namespace string) ([]training.Run, error) {
	return training.List(ctx, c.client, namespace)
}

func (c cluster) Get(ctx context.Context, namespace, name string) (training.Run, error) {
	return training.Get(ctx, c.client, namespace, name)
}

func (c cluster) Installed(ctx context.Context) error { return training.Installed(ctx, c.client) }

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
