package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// owns is what a manager owns of an object: one field.
func owns(manager string, op metav1.ManagedFieldsOperationType, subresource, field string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: op, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:` + field + `":{}}}`)},
	}
}

// What tools that install wrote becomes ours; what controllers write into the
// same object stays theirs.
func TestOwnershipAfterAdoption(t *testing.T) {
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	for name, tt := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   map[string]string // manager -> its fields; nil for no patch
	}{
		"kubectl apply":               {[]metav1.ManagedFieldsEntry{owns("kubectl-client-side-apply", update, "", "paused")}, map[string]string{kube.FieldManager: "paused"}},
		"kubectl apply --server-side": {[]metav1.ManagedFieldsEntry{owns("kubectl", apply, "", "paused")}, map[string]string{kube.FieldManager: "paused"}},
		"Helm, changed by hand since": {
			[]metav1.ManagedFieldsEntry{owns("Helm", update, "", "paused"), owns("kubectl-edit", update, "", "replicas")},
			map[string]string{kube.FieldManager: "paused replicas"},
		},
		// Helm writes as "helm", the name of its program; Helm 4 by server-side
		// apply; who runs it inside something else writes under that name.
		"helm":                     {[]metav1.ManagedFieldsEntry{owns("helm", update, "", "paused")}, map[string]string{kube.FieldManager: "paused"}},
		"helm --server-side":       {[]metav1.ManagedFieldsEntry{owns("helm", apply, "", "paused")}, map[string]string{kube.FieldManager: "paused"}},
		"Flux's helm-controller":   {[]metav1.ManagedFieldsEntry{owns("helm-controller", apply, "", "paused")}, map[string]string{kube.FieldManager: "paused"}},
		"Terraform's helm_release": {[]metav1.ManagedFieldsEntry{owns("terraform-provider-helm_v3.0.2_x5", update, "", "paused")}, map[string]string{kube.FieldManager: "paused"}},
		"beside controllers": {
			[]metav1.ManagedFieldsEntry{owns("kubectl", apply, "", "paused"), owns("kueue", update, "", "caBundle"), owns("kube-controller-manager", update, "status", "x")},
			map[string]string{kube.FieldManager: "paused", "kueue": "caBundle", "kube-controller-manager": "x"},
		},
		"ours already": {[]metav1.ManagedFieldsEntry{owns(kube.FieldManager, apply, "", "paused"), owns("kueue", update, "", "caBundle")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.PartialObjectMetadata{}
			obj.Name, obj.ResourceVersion, obj.ManagedFields = "d", "1", tt.fields
			patch, err := ownership(obj)
			if err != nil {
				t.Fatal(err)
			}
			var ops []struct {
				Path  string
				Value json.RawMessage
			}
			if patch != nil {
				if err := json.Unmarshal(patch, &ops); err != nil {
					t.Fatal(err)
				}
			}
			var got map[string]string
			for _, op := range ops {
				if op.Path != "/metadata/managedFields" {
					continue
				}
				var fields []metav1.ManagedFieldsEntry
				if err := json.Unmarshal(op.Value, &fields); err != nil {
					t.Fatal(err)
				}
				got = map[string]string{}
				for _, m := range fields {
					var set map[string]map[string]any
					if err := json.Unmarshal(m.FieldsV1.Raw, &set); err != nil {
						t.Fatal(err)
					}
					var names []string
					for _, f := range []string{"caBundle", "paused", "replicas", "x"} {
						if _, ok := set["f:spec"]["f:"+f]; ok {
							names = append(names, f)
						}
					}
					got[m.Manager] = strings.Join(names, " ")
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Somebody else's install is refused before anything is written, by name; our
// own and an adopted one are not.
func TestInstallsOfOthers(t *testing.T) {
	deployment := func(fields ...metav1.ManagedFieldsEntry) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager", ManagedFields: fields}}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, container("registry.k8s.io/kueue/kueue:v0.16.2"))
		return d
	}
	theirs := owns("Helm", metav1.ManagedFieldsOperationUpdate, "", "paused")
	ours := owns(kube.FieldManager, metav1.ManagedFieldsOperationApply, "", "paused")
	for name, tt := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		c      Config
		o      Options
		want   string
	}{
		"theirs":          {[]metav1.ManagedFieldsEntry{theirs}, Config{}, Options{}, "Deployment kueue-system/kueue-controller-manager was written by Helm"},
		"adopted":         {[]metav1.ManagedFieldsEntry{theirs}, Config{}, Options{Adopt: true}, ""},
		"left alone":      {[]metav1.ManagedFieldsEntry{theirs}, Config{Kueue: KueueConfig{Disabled: true}}, Options{}, ""},
		"ours":            {[]metav1.ManagedFieldsEntry{ours}, Config{}, Options{}, ""},
		"ours, also seen": {[]metav1.ManagedFieldsEntry{theirs, ours}, Config{}, Options{}, ""},
		"newer":           {[]metav1.ManagedFieldsEntry{theirs}, olderPair(), Options{Adopt: true}, "Kueue v0.16.2 cannot be replaced by the older v0.15.2"},
	} {
		t.Run(name, func(t *testing.T) {
			// The fake client keeps no managed fields.
			cl := fakeClient(interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, k client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
				if d := deployment(tt.fields...); k == client.ObjectKeyFromObject(d) {
					d.DeepCopyInto(obj.(*appsv1.Deployment))
					return nil
				}
				return apierrors.NewNotFound(appsv1.Resource("deployments"), k.Name)
			}})
			_, err := inspect(t.Context(), cl, tt.c, tt.o)
			says(t, err, tt.want)
			var foreign *ForeignError
			if name == "theirs" && (!errors.As(err, &foreign) || foreign.Version != "v0.16.2") {
				t.Errorf("got %#v, want a ForeignError with the version", err)
			}
		})
	}
}

// A release under other names than the manifests' is refused, adopted or not:
// two would work on the same objects. What only looks like one is not.
func TestInstallsUnderOtherNames(t *testing.T) {
	deployment := func(name, image, command string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: name}}
		d.Annotations = map[string]string{"meta.helm.sh/release-name": "sets"}
		c := container(image)
		c.Command = []string{command}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, c)
		return d
	}
	for name, tt := range map[string]struct {
		d    *appsv1.Deployment
		c    Config
		want string
	}{
		"Helm's JobSet":        {deployment("jobset-controller", "registry.k8s.io/jobset/jobset:v0.12.0", "/manager"), Config{}, "JobSet v0.12.0 already: Deployment jobset-system/jobset-controller was written by somebody else (Helm release sets)"},
		"from a mirror":        {deployment("a", "example.com:5000/mirror/kueue:v0.18.0", "/manager"), Config{}, "Kueue v0.18.0 already"},
		"left alone":           {deployment("jobset-controller", "registry.k8s.io/jobset/jobset:v0.12.0", "/manager"), Config{JobSet: JobSetConfig{Disabled: true}}, ""},
		"a dashboard":          {deployment("viz", "registry.k8s.io/kueue/kueueviz-backend:v0.19.0", "/manager"), Config{}, ""},
		"a job of that name":   {deployment("kueue", "example.com/kueue:1", "/bin/sh"), Config{}, ""},
		"ours, by their names": {deployment("jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.12.0", "/manager"), Config{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inspect(t.Context(), fakeClient(interceptor.Funcs{}, tt.d), tt.c, Options{Adopt: true})
			says(t, err, tt.want)
		})
	}
}

// What an install leaves behind that it does not make itself is known: the roles
// and APIs left out, never a definition or namespace.
func TestObsoleteObjects(t *testing.T) {
	for name, tt := range map[string]struct {
		c    Config
		want map[string]int
	}{
		"defaults":           {Config{}, map[string]int{"ClusterRole": 24}},
		"without visibility": {Config{Kueue: KueueConfig{NoVisibility: true}}, map[string]int{"APIService": 2, "ClusterRole": 24}},
		"JobSet alone":       {Config{Kueue: KueueConfig{Disabled: true}}, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			objs, err := Objects(tt.c)
			if err != nil {
				t.Fatal(err)
			}
			left, err := obsolete(tt.c, objs)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, obj := range left {
				got[obj.GetKind()]++
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
