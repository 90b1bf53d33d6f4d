package jobactions_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

func TestMain(m *testing.M) { acctest.Main(m) }

type object = map[string]any

func world(t *testing.T) (g *acctest.GKE, k *kube.Client, p *acctest.Protocol, cluster string) {
	t.Helper()
	g = acctest.NewGKE(t)
	in := metav1.ObjectMeta{Namespace: "any"}
	g.Cluster.Keep(t, &batchv1.Job{ObjectMeta: in}, &jobset.JobSet{ObjectMeta: in}, &kueue.Workload{ObjectMeta: in}, &appsv1.DaemonSet{ObjectMeta: in})
	return g, g.Cluster.Client(t), g.Protocol(t, "team"), g.MakeCluster(t, "main")
}

func says(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("said %q, want %q", got, w)
		}
	}
}

// Suspend and resume go through the Workload, and a job that was made suspended
// joins the queue it is for.
func TestSuspendAndResume(t *testing.T) {
	_, k, p, cluster := world(t)
	slice, err := accelerator.Resolve("v5litepod-16")
	if err != nil {
		t.Fatal(err)
	}
	s := training.Spec{Namespace: "research", Name: "train", Queue: "research", Slice: slice, Slices: 1, Image: "i", Held: true}
	js := s.JobSet()
	if err := k.Create(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	job := object{"job": cluster + "/namespaces/research/jobsets/train"}
	says(t, p.Invoke("tpu_suspend_job", job), "is Suspended now")
	says(t, p.Invoke("tpu_resume_job", job), "is Pending now")
	if found, err := k.Fetch(t.Context(), js); err != nil || !found || js.Labels[queue.LabelQueueName] != "research" {
		t.Errorf("resumed: %v %v", js.Labels, err)
	}
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "wl", Labels: map[string]string{queue.LabelJobUID: string(js.UID)}}}
	if err := k.Create(t.Context(), wl); err != nil {
		t.Fatal(err)
	}
	says(t, p.Invoke("tpu_suspend_job", job), "is Suspended now")
	if found, err := k.Fetch(t.Context(), wl); err != nil || !found || wl.Spec.Active == nil || *wl.Spec.Active {
		t.Errorf("suspended: %v %v", wl.Spec.Active, err)
	}
	says(t, p.Invoke("tpu_suspend_job", job), "is Suspended now")

	done := `{"status":{"conditions":[{"type":"Completed","status":"True","reason":"AllJobsCompleted","message":"done","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
	if err := k.Patch(t.Context(), js, client.RawPatch("application/merge-patch+json", []byte(done))); err != nil {
		t.Fatal(err)
	}
	says(t, p.Invoke("tpu_resume_job", job), "ERROR", "has ended (Succeeded)")
	says(t, p.Invoke("tpu_resume_job", object{"job": cluster + "/namespaces/research/jobsets/nobody"}), "ERROR", "no job nobody")
	says(t, p.Invoke("tpu_resume_job", object{"job": "train"}), "ERROR", "jobsets/NAME")
}

func TestPreload(t *testing.T) {
	g, k, p, cluster := world(t)
	config := object{"cluster": cluster, "image": "train:1", "accelerator": "v5litepod-16", "timeout": "20s"}
	// What the DaemonSet controller would say.
	counted := make(chan error, 1)
	count := func(status string) {
		for {
			var all appsv1.DaemonSetList
			if err := k.List(t.Context(), &all); err != nil {
				counted <- err
				return
			}
			if len(all.Items) > 0 {
				counted <- k.Patch(t.Context(), &all.Items[0], client.RawPatch("application/merge-patch+json", []byte(status)))
				return
			}
		}
	}
	go count(`{"status":{"observedGeneration":1,"desiredNumberScheduled":0}}`)
	says(t, p.Invoke("tpu_preload_image", config), "ERROR", "no host of v5litepod-16")
	if err := <-counted; err != nil {
		t.Fatal(err)
	}
	var left appsv1.DaemonSetList
	if err := k.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d DaemonSets are left (%v)", len(left.Items), err)
	}
	// One host, whose pod has the image.
	g.Cluster.Keep(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "any"}})
	go func() {
		for {
			var all appsv1.DaemonSetList
			if err := k.List(t.Context(), &all); err != nil {
				counted <- err
				return
			}
			if len(all.Items) == 0 {
				continue
			}
			pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: all.Items[0].Spec.Template.Labels}}
			patch := func(o client.Object, text string) error {
				return k.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text)))
			}
			counted <- errors.Join(k.Apply(t.Context(), pod, kube.ApplyOptions{}),
				patch(pod, `{"status":{"containerStatuses":[{"name":"image","imageID":"sha256:1"}]}}`),
				patch(&all.Items[0], `{"status":{"observedGeneration":1,"desiredNumberScheduled":1}}`))
			return
		}
	}()
	if said := p.Invoke("tpu_preload_image", config); !strings.Contains(said, "1 of 1 hosts have train:1") || strings.Contains(said, "ERROR") {
		t.Errorf("said %q", said)
	}
	if err := <-counted; err != nil {
		t.Fatal(err)
	}
	config["accelerator"] = "h100"
	says(t, p.Invoke("tpu_preload_image", config), "ERROR", "h100")
}

// A slice that runs a job is not touched unless it is forced.
func TestRecreateSlice(t *testing.T) {
	g, _, p, cluster := world(t)
	pool, text := p.Apply("tpu_slice_pool", nil, object{"cluster": cluster, "name": "v5e", "accelerator": "v5litepod-16", "slice_count": 1})
	if pool == nil || strings.Contains(text, "ERROR") {
		t.Fatalf("%v %s", pool, text)
	}
	const slice = "v5e-0"
	config := object{"cluster": cluster, "slice": slice}
	g.Cluster.Run("train", slice)
	says(t, p.Invoke("tpu_recreate_slice", config), "ERROR", "train", "force = true")
	config["force"] = true
	says(t, p.Invoke("tpu_recreate_slice", config), "ends ", "deleting", "making it again", ": ready")
	g.Cluster.Run("")
	delete(config, "force")
	says(t, p.Invoke("tpu_recreate_slice", config), ": ready")
	config["slice"] = "nobody"
	says(t, p.Invoke("tpu_recreate_slice", config), "ERROR", "nobody")
}
