package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const flavors = "resourceflavors.kueue.x-k8s.io"

// flavorsStoredAs is the definition of flavors, stored as v1beta2 from now on,
// and in these versions until now.
func flavorsStoredAs(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: flavors}}
	crd.Spec.Group = "kueue.x-k8s.io"
	crd.Spec.Names.Kind = "ResourceFlavor"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1beta2", Served: true, Storage: true}}
	crd.Status.StoredVersions = versions
	return crd
}

// The old version goes off the definition's list after every object was written
// anew, not before and not when one could not be.
func TestMigrationOfStoredObjects(t *testing.T) {
	refused := errors.New("etcd is full")
	for name, tt := range map[string]struct {
		stored  []string
		refuse  string // object that cannot be written
		written []string
		want    []string
	}{
		"after an upgrade":     {[]string{"v1beta1", "v1beta2"}, "", []string{"a", "b"}, []string{"v1beta2"}},
		"nothing to do":        {[]string{"v1beta2"}, "", nil, []string{"v1beta2"}},
		"one cannot be stored": {[]string{"v1beta1", "v1beta2"}, "b", []string{"a"}, []string{"v1beta1", "v1beta2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var written []string
				cl := fakeClient(interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if data, err := patch.Data(obj); err != nil || string(data) != "{}" {
						t.Errorf("%s is changed by %s (%v)", obj.GetName(), data, err)
					}
					if obj.GetName() == tt.refuse {
						return refused
					}
					mu.Lock()
					defer mu.Unlock()
					written = append(written, obj.GetName())
					return nil
				}},
					flavorsStoredAs(tt.stored...),
					&kueueapi.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &kueueapi.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
				err := migrateStorage(t.Context(), cl, definitions(flavors), Options{})
				if (tt.refuse != "") != errors.Is(err, refused) {
					t.Errorf("got %v", err)
				}
				slices.Sort(written)
				if diff := cmp.Diff(tt.written, written); diff != "" {
					t.Errorf("written (-want +got):\n%s", diff)
				}
				crd := flavorsStoredAs()
				if _, err := cl.Fetch(t.Context(), crd); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, crd.Status.StoredVersions); diff != "" {
					t.Errorf("stored versions (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A controller that renews the certificate in a definition at the same time is
// no reason to fail; one that changes what is stored is.
func TestMigrationBesideAnotherWriter(t *testing.T) {
	for name, back := range map[string]bool{"a certificate": false, "another storage version": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				meddled := false
				cl := fakeClient(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, w client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if !meddled {
						meddled = true
						crd := flavorsStoredAs()
						if err := w.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
							return err
						}
						crd.Annotations = map[string]string{"changed": "meanwhile"}
						crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = back, !back
						if err := w.Update(ctx, crd); err != nil {
							return err
						}
					}
					return w.SubResource(sub).Patch(ctx, obj, patch, opts...)
				}}, flavorsStoredAs("v1beta1", "v1beta2"))
				err := migrateStorage(t.Context(), cl, definitions(flavors), Options{})
				if (err != nil) != back {
					t.Fatalf("got %v", err)
				}
				crd := flavorsStoredAs()
				if _, err := cl.Fetch(t.Context(), crd); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(crd.Status.StoredVersions); (got == "[v1beta2]") == back {
					t.Errorf("stored versions are %s", got)
				}
			})
		})
	}
}

func definitions(names ...string) (objs []*unstructured.Unstructured) {
	for _, name := range names {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		u.SetName(name)
		objs = append(objs, u)
	}
	return objs
}
