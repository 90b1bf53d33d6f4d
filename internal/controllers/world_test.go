package controllers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

// world is the one real control plane of this package's tests: a CPU node, and
// a node of one TPU host.
var world struct {
	once sync.Once
	dir  string
	cp   *controlplane.ControlPlane
	cl   *kube.Client
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if world.cp != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := world.cp.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
			code = max(code, 1)
		}
	}
	_ = os.RemoveAll(world.dir)
	os.Exit(code)
}

// realCluster is the world, without what the test before left there.
func realCluster(t *testing.T) *kube.Client {
	t.Helper()
	world.once.Do(func() { world.err = startWorld(context.Background()) })
	if world.err != nil {
		t.Fatal(world.err)
	}
	status, err := controllers.Observe(t.Context(), world.cl, controllers.Config{})
	if err == nil && status.State != controllers.Absent {
		err = controllers.Uninstall(t.Context(), world.cl, controllers.Config{}, controllers.UninstallOptions{Force: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return world.cl
}

func startWorld(ctx context.Context) (err error) {
	programs, err := binaries.ControlPlane(ctx, nil)
	if err != nil {
		return err
	}
	older := func(ctx context.Context, name, tag string) (string, error) {
		if binaries.OlderImages[name] != tag {
			return "", nil
		}
		paths, err := binaries.OlderControllers(ctx, nil)
		return paths[name], err
	}
	if world.dir, err = os.MkdirTemp("", "controllers-"); err != nil {
		return err
	}
	world.cp, err = controlplane.Start(ctx, controlplane.Config{
		Name: "controllers", Dir: filepath.Join(world.dir, "cp"), Binaries: programs, Older: older, Token: "controllers-test", JobDuration: time.Hour,
	})
	if err != nil {
		return err
	}
	for name, chips := range map[string]string{"system": "0", "tpu": "4"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name + "-0"}}
		if name == "tpu" {
			node.Labels = sliceLabels()
		}
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
			"google.com/tpu": resource.MustParse(chips),
		}
		node.Status.Allocatable = node.Status.Capacity
		if err := world.cp.Nodes(ctx, name, []*corev1.Node{node}); err != nil {
			return err
		}
	}
	world.cl, err = kube.Connect(kube.Access{
		Name: "controllers", Server: "https://" + world.cp.Endpoint(), CA: world.cp.CA(),
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "controllers-test"}),
	})
	return err
}

// sliceLabels are those of the TPU host.
func sliceLabels() map[string]string {
	s, err := accelerator.Resolve("v5litepod-4")
	if err != nil {
		panic(err)
	}
	return s.NodeLabels()
}

// installer writes one object of the official manifests as some tool does.
type installer func(ctx context.Context, cl *kube.Client, obj *unstructured.Unstructured) error

// serverSide is kubectl apply --server-side --force-conflicts.
func serverSide(ctx context.Context, cl *kube.Client, obj *unstructured.Unstructured) error {
	return cl.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("kubectl"), client.ForceOwnership)
}

// clientSide is kubectl apply.
func clientSide(ctx context.Context, cl *kube.Client, obj *unstructured.Unstructured) error {
	annotate(obj, map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
	return cl.Create(ctx, obj, client.FieldOwner("kubectl-client-side-apply"))
}

// helm is a release of Kueue's chart by the name kueue, whose labels and
// selectors are not those of the manifests.
func helm(ctx context.Context, cl *kube.Client, obj *unstructured.Unstructured) error {
	annotate(obj, map[string]string{"meta.helm.sh/release-name": "kueue", "meta.helm.sh/release-namespace": "kueue-system"})
	labels := map[string]any{"app.kubernetes.io/name": "kueue", "app.kubernetes.io/instance": "kueue", "control-plane": "controller-manager"}
	for _, at := range map[string][][]string{
		"Deployment": {{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}},
		"Service":    {{"spec", "selector"}},
	}[obj.GetKind()] {
		if err := unstructured.SetNestedMap(obj.Object, labels, at...); err != nil {
			return err
		}
	}
	obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": "kueue", "helm.sh/chart": "kueue-0.19.0"})
	return cl.Create(ctx, obj, client.FieldOwner("helm"))
}

func annotate(obj *unstructured.Unstructured, with map[string]string) {
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for k, v := range with {
		all[k] = v
	}
	obj.SetAnnotations(all)
}

// byOthers writes the official manifests of a release, everything in them
// included.
func byOthers(ctx context.Context, t *testing.T, cl *kube.Client, file string, write installer) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("manifests", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var objs []*unstructured.Unstructured
	docs := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := docs.Decode(obj); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if obj.GetKind() == "Namespace" {
			objs = append([]*unstructured.Unstructured{obj}, objs...)
		} else {
			objs = append(objs, obj)
		}
	}
	for _, obj := range objs {
		if err := write(ctx, cl, obj); err != nil {
			t.Fatal(err)
		}
	}
}

// answers waits until the webhooks of Kueue take obj.
func answers(ctx context.Context, t *testing.T, cl *kube.Client, obj client.Object) {
	t.Helper()
	eventually(ctx, t, "Kueue answers", func() error { return cl.Create(ctx, obj) })
}

// eventually asks again until there is no error, within a bound.
func eventually(ctx context.Context, t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: never: %v", what, err)
		case <-tick.C:
		}
	}
}

// call is one write, as a test that cuts there knows it.
type call struct{ verb, kind, name, body string }

func (c call) is(verb, kind, name string) bool {
	return c.verb == verb && c.kind == kind && (name == "" || c.name == name)
}

func callOf(verb string, obj any, patch client.Patch) call {
	var head struct {
		Kind     string
		Metadata struct{ Name string }
	}
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	if err != nil {
		panic(err)
	}
	c := call{verb: verb, kind: head.Kind, name: head.Metadata.Name, body: string(text)}
	if o, ok := obj.(client.Object); ok && c.kind == "" {
		c.kind = strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")
	}
	if patch != nil {
		if data, err := patch.Data(nil); err == nil {
			c.body = string(data)
		}
	}
	return c
}

// jobs are two that take all chips each, and the queue that they go to.
func jobs() (running, waiting *unstructured.Unstructured) {
	job := func(name string) *unstructured.Unstructured {
		js := jobSet(name)
		js.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "research"})
		replicated, _, _ := unstructured.NestedSlice(js.Object, "spec", "replicatedJobs")
		chips := map[string]any{"google.com/tpu": "4"}
		err := unstructured.SetNestedSlice(replicated[0].(map[string]any), []any{map[string]any{
			"name": "main", "image": "main", "resources": map[string]any{"requests": chips, "limits": chips},
		}}, "template", "spec", "template", "spec", "containers")
		if err == nil {
			err = unstructured.SetNestedSlice(js.Object, replicated, "spec", "replicatedJobs")
		}
		if err != nil {
			panic(err)
		}
		return js
	}
	return job("running"), job("waiting")
}

// patch is a kubectl patch.
func patch(ctx context.Context, t *testing.T, cl *kube.Client, namespace, name, merge string) {
	t.Helper()
	d := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	d.Namespace, d.Name = namespace, name
	if err := cl.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(merge)), client.FieldOwner("kubectl-patch")); err != nil {
		t.Fatal(err)
	}
}

func theirs(name string) *kueueapi.ResourceFlavor {
	return &kueueapi.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
