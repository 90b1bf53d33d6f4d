package training

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// refusing is a cluster that answers lists of pods or JobSets with an error.
func refusing(pods, jobsets error, objs ...client.Object) *kube.Client {
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		if _, ok := into.(*corev1.PodList); ok && pods != nil {
			return pods
		}
		if _, ok := into.(*jobset.JobSetList); ok && jobsets != nil {
			return jobsets
		}
		return c.List(ctx, into, opts...)
	}}
	return &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(funcs).WithObjects(objs...).Build()}
}

// Where a finished run was placed is known while its pods are kept, and a
// viewer who may not see pods still learns how it ended.
func TestNodePoolsOfAFinishedRun(t *testing.T) {
	w := makeRun(t).admitted().jobs(0, 0, 2).jsCond(jobset.JobSetCompleted, true, "AllJobsCompleted", "done", 20)
	objs := []client.Object{w.js, host("n0", "v5e-1"), host("n1", "v5e-0")}
	for index, node := range map[string]string{"0": "n0", "1": "n1"} {
		pod := runs("train-"+index, w.js.Name, index, node, corev1.PodSucceeded)
		pod.Namespace, pod.Labels[batchv1.JobCompletionIndexAnnotation], pod.Labels[jobset.ReplicatedJobNameKey] = w.js.Namespace, "0", SliceJob
		objs = append(objs, pod)
	}
	further := runs("train-uploader-0", w.js.Name, "0", "cpu", corev1.PodSucceeded) // is on no slice
	further.Namespace, further.Labels[batchv1.JobCompletionIndexAnnotation], further.Labels[jobset.ReplicatedJobNameKey] = w.js.Namespace, "0", "uploader"
	objs = append(objs, further, host("cpu", "cpu-pool"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("viewer"))
	for name, tt := range map[string]struct {
		c    *kube.Client
		want []string
	}{
		"pods are kept":        {refusing(nil, nil, objs...), []string{"v5e-1", "v5e-0"}},
		"pods are gone":        {refusing(nil, nil, w.js), []string{"", ""}},
		"pods are not for all": {refusing(forbidden, nil, objs...), []string{"", ""}},
	} {
		r, err := Get(t.Context(), tt.c, w.js.Namespace, w.js.Name)
		if err != nil || r.State != Succeeded {
			t.Errorf("%s: %s, %v", name, r.State, err)
			continue
		}
		var got []string
		for _, s := range r.SliceRuns {
			got = append(got, s.NodePool)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestInstalled(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}}
	var missing *NotInstalledError
	if err := Installed(t.Context(), refusing(nil, noMatch)); !errors.As(err, &missing) || missing.Controller != "JobSet" || missing.Cluster != "c" {
		t.Errorf("without the kind: %v", err)
	}
	for _, answer := range []error{nil, apierrors.NewUnauthorized("who?")} {
		if err := Installed(t.Context(), refusing(nil, answer)); err != nil {
			t.Errorf("a list that answers %v: %v", answer, err)
		}
	}
}
