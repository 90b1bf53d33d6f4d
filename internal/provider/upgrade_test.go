package provider_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
)

// hosts of a v5litepod-8 slice, with 4 chips each.
const hosts = 2

// oneSlice is a job that takes the whole slice and runs until it is deleted.
func oneSlice(name string) *jobset.JobSet {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "research", Name: name, Labels: map[string]string{"kueue.x-k8s.io/queue-name": "research"},
	}}
	js.Spec.Suspend = new(true)
	main := jobset.ReplicatedJob{Name: "main", Replicas: 1}
	main.Template.Spec.Parallelism, main.Template.Spec.Completions = new(int32(hosts)), new(int32(hosts))
	pod := &main.Template.Spec.Template
	pod.Annotations = map[string]string{
		"pod-complete.stage.kwok.x-k8s.io/delay": "1h", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "1h",
	}
	chips := corev1.ResourceList{"google.com/tpu": resource.MustParse("4")}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Tolerations:   []corev1.Toleration{{Key: "google.com/tpu", Operator: corev1.TolerationOpExists}},
		Containers:    []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: chips, Limits: chips}}},
	}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{main}
	return js
}

// look is what must survive an upgrade: the identity of everything that users
// made or wait for, and which job runs.
func look(t *testing.T, cl *kube.Client) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, list := range []client.ObjectList{
		&jobset.JobSetList{}, &kueue.WorkloadList{}, &kueue.ClusterQueueList{}, &kueue.LocalQueueList{},
		&kueue.ResourceFlavorList{}, &kueue.WorkloadPriorityClassList{},
	} {
		if err := cl.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			o := item.(client.Object)
			state := "uid " + string(o.GetUID())
			if wl, ok := item.(*kueue.Workload); ok {
				state += fmt.Sprintf(", admitted %t", meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted))
			}
			got[fmt.Sprintf("%T %s/%s", item, o.GetNamespace(), o.GetName())] = state
		}
	}
	var pods corev1.PodList
	if err := cl.List(t.Context(), &pods, client.InNamespace("research")); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		got["pod "+p.Name] = fmt.Sprintf("uid %s, %s", p.UID, p.Status.Phase)
	}
	return got
}

// runs waits until all pods of a job run.
func runs(t *testing.T, cl *kube.Client, job string) {
	t.Helper()
	settles(t, "job "+job+" runs", func() error {
		var pods corev1.PodList
		if err := cl.List(t.Context(), &pods, client.InNamespace("research"), client.MatchingLabels{jobset.JobSetNameKey: job}); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s on node %q: %v", p.Name, p.Status.Phase, p.Spec.NodeName, p.Status.Conditions)
			}
		}
		if len(pods.Items) != hosts {
			return fmt.Errorf("it has %d pods, want %d", len(pods.Items), hosts)
		}
		return nil
	})
}

// storedAs is the version of an object as it is stored; writing it anew, in
// another version of its definition too, changes it.
func storedAs(t *testing.T, cl *kube.Client, obj client.Object) string {
	t.Helper()
	settles(t, "Kueue has seen "+obj.GetName(), func() error {
		if _, err := cl.Fetch(t.Context(), obj); err != nil {
			return err
		}
		if len(obj.GetFinalizers()) == 0 {
			return errors.New("it has no finalizer")
		}
		return nil
	})
	return obj.GetResourceVersion()
}

// settles asks again until there is no error, within a bound.
func settles(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: never: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// storedVersions is in which versions the objects of Kueue's definitions may be
// stored, by definition.
func storedVersions(t *testing.T, cl *kube.Client) map[string]string {
	t.Helper()
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := cl.List(t.Context(), &crds); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, crd := range crds.Items {
		if crd.Spec.Group == "kueue.x-k8s.io" {
			got[crd.Name] = strings.Join(crd.Status.StoredVersions, " ")
		}
	}
	return got
}

// The upgrade from the pair that stores v1beta1, while one job runs and another
// waits, with the provider killed in the middle: nobody loses anything, and
// everything ends up stored as v1beta2.
func TestAccUpgradeOfTheControllers(t *testing.T) {
	const project = "acc-upgrade"
	if _, err := binaries.OlderControllers(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	d := acctest.Workspace(t, "testdata/upgrade", project)
	old := "-var=controllers={jobset=\"" + binaries.OlderImages["jobset"] + "\",kueue=\"" + binaries.OlderImages["kueue"] + "\"}"
	if out, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color", old); err != nil {
		t.Fatalf("installing the older pair: %v\n%s", err, out)
	}
	cl := acctest.Connect(t, "projects/"+project+"/locations/us-west4-a/clusters/training")
	if got := slices.Compact(slices.Sorted(maps.Values(storedVersions(t, cl)))); !slices.Equal(got, []string{"v1beta1"}) {
		t.Fatalf("the older pair stores %v, want v1beta1: this would not be the upgrade it is meant to be", got)
	}
	for _, name := range []string{"running", "waiting"} {
		if err := cl.Create(t.Context(), oneSlice(name)); err != nil {
			t.Fatal(err)
		}
		if name == "running" {
			runs(t, cl, name)
		}
	}
	settles(t, "both jobs have a workload", func() error {
		var all kueue.WorkloadList
		if err := cl.List(t.Context(), &all); err != nil {
			return err
		}
		if len(all.Items) != 2 {
			return fmt.Errorf("there are %d workloads", len(all.Items))
		}
		return nil
	})
	// Nobody but the upgrade writes to a flavor that no queue uses.
	spare := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "spare"}}
	if err := cl.Create(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	before := look(t, cl)
	written := storedAs(t, cl, spare)

	first := start(t, d, "apply", "-auto-approve", "-no-color")
	first.until(t, "the first new definition", func() bool {
		return slices.Contains(slices.Collect(maps.Values(storedVersions(t, cl))), "v1beta1 v1beta2")
	})
	if err := syscall.Kill(first.provider(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := first.ends(t, time.Minute); err == nil {
		t.Fatalf("the apply passed although its provider was killed:\n%s", first.out)
	}
	if diff := cmp.Diff(before, look(t, cl)); diff != "" {
		t.Errorf("after the kill (-before +after):\n%s", diff)
	}

	if out, err := d.Output(t.Context(), "apply", "-auto-approve", "-no-color"); err != nil {
		t.Fatalf("the apply after the kill: %v\n%s", err, out)
	}
	if diff := cmp.Diff(before, look(t, cl)); diff != "" {
		t.Errorf("after the upgrade (-before +after):\n%s", diff)
	}
	for name, got := range storedVersions(t, cl) {
		if got != "v1beta2" {
			t.Errorf("%s may still be stored as %s", name, got)
		}
	}
	if now := storedAs(t, cl, spare); now == written {
		t.Error("the unused flavor was not stored anew")
	} else if err := cl.Patch(t.Context(), spare, client.RawPatch(types.MergePatchType, []byte("{}"))); err != nil || spare.ResourceVersion != now {
		t.Errorf("the unused flavor was still to be stored anew (%v)", err)
	}
	status, err := controllers.Observe(t.Context(), cl, controllers.Config{})
	if err != nil || status.State != controllers.Ready || status.JobSet.Version != controllers.JobSetVersion || status.Kueue.Version != controllers.KueueVersion {
		t.Errorf("after the upgrade: %+v, %v", status, err)
	}
	planIsEmpty(t, d)

	// The new Kueue knows who waited.
	if err := cl.Remove(t.Context(), oneSlice("running"), true); err != nil {
		t.Fatal(err)
	}
	runs(t, cl, "waiting")

	out, err := d.Output(t.Context(), "plan", "-no-color", old)
	if err == nil || !strings.Contains(err.Error()+out, "cannot be replaced by the older") {
		t.Errorf("going back to the older pair planned: %v\n%s", err, out)
	}
	for _, obj := range []client.Object{oneSlice("waiting"), spare} {
		if err := cl.Remove(t.Context(), obj, true); err != nil {
			t.Fatal(err)
		}
	}
	destroy(t, d, project)
}
