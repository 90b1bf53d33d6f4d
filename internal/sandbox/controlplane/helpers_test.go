package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
)

const testToken = "a-token-for-tests"

// parentEnv makes the test binary play a sandbox that is about to be killed: it
// starts a control plane in the folder that the variable names, and waits.
const parentEnv = "CONTROLPLANE_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		programs, err := binaries.ControlPlane(context.Background(), nil)
		if err == nil {
			_, err = Start(context.Background(), Config{Name: "parent", Dir: dir, Binaries: programs, Token: testToken})
		}
		fmt.Println("started", err)
		select {}
	}
	os.Exit(m.Run())
}

// testConfig is a cluster of the real programs: those in TPU_SANDBOX_BIN, or
// else built on the first use.
func testConfig(t *testing.T, dir string) Config {
	t.Helper()
	programs, err := binaries.ControlPlane(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Name: t.Name(), Dir: dir, Binaries: maps.Clone(programs), Token: testToken,
		Logger:      hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: t.Output()}),
		JobDuration: time.Second,
	}
}

func start(t *testing.T, dir string) *ControlPlane {
	t.Helper()
	began := time.Now()
	cp, err := Start(t.Context(), testConfig(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := cp.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// systemNode is a CPU node for the controllers.
func systemNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi")}},
	}
}

// tpuHosts are the four hosts of one v5litepod-16 slice.
func tpuHosts(pool string) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range 4 {
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", pool, i),
				Labels: map[string]string{
					"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
					"cloud.google.com/gke-tpu-topology":    "4x4",
				},
			},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "google.com/tpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"google.com/tpu": resource.MustParse("4")}},
		})
	}
	return nodes
}

// eventually repeats a check until it passes or the test's patience ends.
func eventually(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	began, deadline := time.Now(), time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			t.Logf("%s: after %s", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

var errNotYet = errors.New("not yet")

func mustQuantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }

// probeConfig makes a call that only an authenticated caller may make.
func probeConfig(ctx context.Context, cfg *rest.Config) error {
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	return err
}
