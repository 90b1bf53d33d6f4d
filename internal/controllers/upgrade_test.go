package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetapi "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// cuts are where an upgrade is ended as by a kill, in the order in which it
// gets there: at a write, before it is sent or after it took effect. What runs
// beside it ends too.
var cuts = []struct {
	name  string
	at    func(call) bool
	after bool
}{
	{"while it adopts", func(c call) bool { return c.is("patch", "Deployment", "kueue-controller-manager") }, true},
	{"after the first new definition", func(c call) bool { return c.is("apply", "CustomResourceDefinition", "workloads.kueue.x-k8s.io") }, true},
	{"when the old JobSet is gone", func(c call) bool { return c.is("delete", "Deployment", "jobset-controller-manager") }, true},
	{"between the two controllers", func(c call) bool { return c.is("apply", "Deployment", "kueue-controller-manager") }, false},
	{"after one object is stored anew", func(c call) bool { return c.is("patch", "Workload", "") }, true},
	{"when all are stored and nothing says so", func(c call) bool { return c.is("status", "CustomResourceDefinition", "workloads.kueue.x-k8s.io") }, false},
	{"before the record", func(c call) bool {
		return c.is("apply", "Namespace", "kueue-system") && strings.Contains(c.body, "terraform-provider-tpu/job-controllers")
	}, false},
}

var errCut = errors.New("cut")

// cutting returns a client that ends ctx at a write.
func cutting(ctx context.Context, cl *kube.Client, at func(call) bool, after bool) (context.Context, *kube.Client) {
	ctx, cancel := context.WithCancelCause(ctx)
	through := func(c call, write func() error) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !at(c) {
			return write()
		}
		if after {
			if err := write(); err != nil {
				return err // not there yet: such as a webhook that is starting
			}
		}
		cancel(errCut)
		return errCut
	}
	cut := *cl
	cut.WithWatch = interceptor.NewClient(cl.WithWatch, interceptor.Funcs{
		Apply: func(ctx context.Context, w client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return through(callOf("apply", obj, nil), func() error { return w.Apply(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return through(callOf("patch", obj, p), func() error { return w.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return through(callOf("delete", obj, nil), func() error { return w.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return through(callOf(sub, obj, p), func() error { return w.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	})
	return ctx, &cut
}

// survey is what must survive: the identity of everything that users made or
// wait for, and which job runs.
func survey(ctx context.Context, t *testing.T, cl *kube.Client) (got map[string]string) {
	t.Helper()
	// A list in another version than the stored one needs Kueue, which may be
	// starting.
	eventually(ctx, t, "the cluster can be surveyed", func() error {
		got = map[string]string{}
		for _, list := range []client.ObjectList{
			&jobsetapi.JobSetList{}, &kueueapi.WorkloadList{}, &kueueapi.ClusterQueueList{}, &kueueapi.LocalQueueList{}, &kueueapi.ResourceFlavorList{}, &corev1.PodList{},
		} {
			if err := cl.List(ctx, list); err != nil {
				return err
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			for _, item := range items {
				o := item.(client.Object)
				state := "uid " + string(o.GetUID())
				switch o := item.(type) {
				case *kueueapi.Workload:
					state += fmt.Sprintf(", admitted %t", meta.IsStatusConditionTrue(o.Status.Conditions, kueueapi.WorkloadAdmitted))
				case *corev1.Pod:
					if o.Namespace != "default" {
						continue // the controllers' own
					}
					state += ", " + string(o.Status.Phase)
				}
				got[fmt.Sprintf("%T %s/%s", item, o.GetNamespace(), o.GetName())] = state
			}
		}
		return nil
	})
	return got
}

// storedVersions is in which versions objects of Kueue may be stored.
func storedVersions(ctx context.Context, t *testing.T, cl *kube.Client) []string {
	t.Helper()
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := cl.List(ctx, &crds); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, crd := range crds.Items {
		if crd.Spec.Group == "kueue.x-k8s.io" {
			for _, v := range crd.Status.StoredVersions {
				all[v] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// The pair that stores v1beta1, installed as xpk does (kubectl apply
// --server-side, then kubectl patch), is adopted and upgraded while one job
// runs and another waits. It is cut again and again: nobody loses anything, the
// next install goes on, and the last one ends it.
func TestUpgradeCutAnywhere(t *testing.T) {
	cl := realCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	byOthers(ctx, t, cl, "jobset-v0.10.1", serverSide)
	byOthers(ctx, t, cl, "kueue-v0.15.2", serverSide)
	patch(ctx, t, cl, "kueue-system", "kueue-controller-manager", `{"spec":{"template":{"spec":{"tolerations":[{"key":"components.gke.io/gke-managed-components","operator":"Exists"}]}}}}`)
	patch(ctx, t, cl, "kueue-system", "kueue-controller-manager", `{"spec":{"template":{"spec":{"containers":[{"name":"manager","resources":{"limits":{"memory":"4096Mi"}}}]}}}}`)
	answers(ctx, t, cl, theirs("spare"))
	for _, obj := range queueObjects() {
		switch o := obj.(type) {
		case *kueueapi.ClusterQueue:
			o.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Set(4)
		case *kueueapi.ResourceFlavor:
			o.Spec.NodeLabels = sliceLabels()
		}
		answers(ctx, t, cl, obj)
	}
	running, waiting := jobs()
	answers(ctx, t, cl, running)
	runs := func(job string) {
		t.Helper()
		eventually(ctx, t, job+" runs", func() error {
			var pods corev1.PodList
			if err := cl.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{jobsetapi.JobSetNameKey: job}); err != nil {
				return err
			}
			if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
				return fmt.Errorf("its pods: %v", pods.Items)
			}
			return nil
		})
	}
	runs("running")
	answers(ctx, t, cl, waiting)
	eventually(ctx, t, "both jobs have a workload", func() error {
		var all kueueapi.WorkloadList
		if err := cl.List(ctx, &all); err != nil || len(all.Items) != 2 {
			return errors.Join(fmt.Errorf("%d workloads", len(all.Items)), err)
		}
		return nil
	})
	before := survey(ctx, t, cl)
	if got := storedVersions(ctx, t, cl); !slices.Equal(got, []string{"v1beta1"}) {
		t.Fatalf("the older pair stores %v, want v1beta1: this would not be the upgrade it is meant to be", got)
	}

	var foreign *controllers.ForeignError
	if _, err := controllers.Install(ctx, cl, controllers.Config{}, controllers.Options{}); !errors.As(err, &foreign) || foreign.Version != "v0.10.1" || !slices.Equal(foreign.Managers, []string{"kubectl"}) {
		t.Fatalf("got %v, want a ForeignError with JobSet's version that names kubectl", err)
	}
	progress := timed(t)
	o := controllers.Options{Adopt: true, Progress: progress}
	for _, cut := range cuts {
		progress("-- cut %s", cut.name)
		cutCtx, cutClient := cutting(ctx, cl, cut.at, cut.after)
		_, err := controllers.Install(cutCtx, cutClient, controllers.Config{}, o)
		if err == nil || !errors.Is(context.Cause(cutCtx), errCut) {
			t.Fatalf("cut %s: %v, want an install that is cut there", cut.name, err)
		}
		if diff := cmp.Diff(before, survey(ctx, t, cl)); diff != "" {
			t.Fatalf("cut %s (-before +after):\n%s", cut.name, diff)
		}
		if status, err := controllers.Observe(ctx, cl, controllers.Config{}); err != nil || status.State != controllers.Incomplete {
			t.Errorf("cut %s: the cluster is %q (%v), want INCOMPLETE", cut.name, status.State, err)
		}
	}
	progress("-- to the end")
	status, err := controllers.Install(ctx, cl, controllers.Config{}, o)
	if err != nil || status.State != controllers.Ready || status.JobSet.Version != controllers.JobSetVersion || status.Kueue.Version != controllers.KueueVersion {
		t.Fatalf("the install after all cuts: %+v, %v", status, err)
	}
	if diff := cmp.Diff(before, survey(ctx, t, cl)); diff != "" {
		t.Errorf("after the upgrade (-before +after):\n%s", diff)
	}
	if got := storedVersions(ctx, t, cl); !slices.Equal(got, []string{"v1beta2"}) {
		t.Errorf("objects may be stored as %v, want v1beta2 only", got)
	}
	if got := podHooks(ctx, t, cl); len(got) > 0 {
		t.Errorf("webhooks for pods are left: %v", got)
	}
	// The new controllers know who runs and who waits.
	if err := cl.Remove(ctx, running, true); err != nil {
		t.Fatal(err)
	}
	runs("waiting")
}
