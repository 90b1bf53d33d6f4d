package controllers

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// page is how many objects are listed at once.
const page = 500

// migrateStorage writes every object that may still be stored in an older
// version anew, and then takes that version off the definition's list. Without
// it a later release could not drop the version, and would lose what is stored
// in it. It needs the new controllers, which convert. A definition whose list is
// right costs one read.
func migrateStorage(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured, o Options) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, obj := range kinds(objs, "CustomResourceDefinition") {
		g.Go(func() error { return migrate(ctx, cl, obj.GetName(), o) })
	}
	return g.Wait()
}

func migrate(ctx context.Context, cl *kube.Client, name string, o Options) error {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if found, err := cl.Fetch(ctx, crd); err != nil || !found {
		return err
	}
	gvk := storedKind(crd)
	if !slices.ContainsFunc(crd.Status.StoredVersions, func(v string) bool { return v != gvk.Version }) {
		return nil
	}
	n, err := rewrite(ctx, cl, gvk)
	if err != nil {
		return fmt.Errorf("storing the objects of %s on cluster %s as %s: %w", name, cl.Name, gvk.Version, err)
	}
	o.say("Stored %d objects of %s as %s", n, name, gvk.Version)
	err = retry(ctx, cl, func() error {
		// The version is part of the patch: should the definition have changed
		// since, more objects may be stored in another one.
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"storedVersions":[%q]}}`, crd.ResourceVersion, gvk.Version)
		err := cl.Status().Patch(ctx, crd.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		if !apierrors.IsConflict(err) {
			return err
		}
		if _, err := cl.Fetch(ctx, crd); err != nil {
			return err
		}
		if storedKind(crd) != gvk {
			return fmt.Errorf("somebody else changes the definition: %w", err)
		}
		return apierrors.NewTooManyRequests("the definition changed meanwhile", 1) // once more
	})
	if err != nil {
		return fmt.Errorf("noting on definition %s of cluster %s that all its objects are stored as %s: %w", name, cl.Name, gvk.Version, err)
	}
	return nil
}

func storedKind(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		}
	}
	return schema.GroupVersionKind{}
}

// rewrite has the API server read and store every object of a kind, by a patch
// that changes nothing: it writes only what is stored differently.
func rewrite(ctx context.Context, cl *kube.Client, gvk schema.GroupVersionKind) (n int, err error) {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	next := ""
	for {
		err := retry(ctx, cl, func() error { return cl.List(ctx, &all, client.Limit(page), client.Continue(next)) })
		if apierrors.IsResourceExpired(err) && next != "" {
			next, n = "", 0 // the list took too long: from the start, what is done stays done
			continue
		}
		if err != nil {
			return n, err
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for i := range all.Items {
			obj := &all.Items[i]
			obj.SetGroupVersionKind(gvk)
			g.Go(func() error {
				err := retry(gctx, cl, func() error {
					return cl.Patch(gctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte("{}")))
				})
				if apierrors.IsNotFound(err) {
					return nil // gone since
				}
				if err != nil {
					return fmt.Errorf("%s %s: %w", gvk.Kind, key(obj), err)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return n, err
		}
		n += len(all.Items)
		if next = all.Continue; next == "" {
			return n, nil
		}
	}
}
