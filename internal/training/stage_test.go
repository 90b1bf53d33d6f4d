package training_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/oauth2"
	corev1 "k8s.io/api/core/v1"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

// One real control plane serves every test of the package that needs one. It
// starts with the first of them.
var (
	startStage = sync.OnceValues(newStage)
	stagePlane *controlplane.ControlPlane
	stopStage  func() error
)

func TestMain(m *testing.M) {
	code := m.Run()
	if stopStage != nil {
		if err := stopStage(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// cluster is a real control plane with both controllers, two slices of
// v5litepod-16, and the queue "research" with a quota of both.
func cluster(t *testing.T) *kube.Client {
	t.Helper()
	cl, err := startStage()
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// stage is the control plane of cluster, to let things happen on it.
func stage(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	cluster(t)
	return stagePlane
}

func newStage() (*kube.Client, error) {
	ctx := context.Background()
	programs, err := binaries.ControlPlane(ctx, nil)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "training-stage-")
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Config{
		Name: "training", Dir: filepath.Join(dir, "cp"), Binaries: programs, Token: "training-test",
		Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn}), JobDuration: 2 * time.Second,
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	stagePlane = cp
	stopStage = func() error { return errors.Join(cp.Stop(ctx), os.RemoveAll(dir)) }
	if err := cp.Nodes(ctx, "system", []*corev1.Node{node("system-0", nil, nil)}); err != nil {
		return nil, err
	}
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		return nil, err
	}
	for i := range 2 {
		pool := fmt.Sprintf("v5e-%d", i)
		var hosts []*corev1.Node
		for h := range slice.Hosts {
			labels := slice.NodeLabels()
			labels[accelerator.LabelNodePool] = pool
			hosts = append(hosts, node(fmt.Sprintf("%s-%d", pool, h), labels, &slice))
		}
		if err := cp.Nodes(ctx, pool, hosts); err != nil {
			return nil, err
		}
	}
	cl, err := kube.Connect(kube.Access{
		Name: "training", Server: "https://" + cp.Endpoint(), CA: cp.CA(),
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "training-test"}),
	})
	if err != nil {
		return nil, err
	}
	if _, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{}); err != nil {
		return nil, err
	}
	objects := queue.Namespace{Name: "research"}.Objects()
	objects = append(objects, queue.Flavor{Name: "v5e-4x4", Slice: slice}.Object())
	q := queue.Queue{Name: "research", Namespaces: []string{"research"}, Quotas: []queue.Quota{{Flavor: "v5e-4x4", Slice: slice, Slices: 2}}}
	objects = append(objects, q.ClusterQueue(), q.LocalQueue("research"))
	for _, o := range objects {
		if err := cl.Apply(ctx, o, kube.ApplyOptions{}); err != nil {
			return nil, err
		}
	}
	return cl, nil
}
