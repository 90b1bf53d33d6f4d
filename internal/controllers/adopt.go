package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// installers are the names under which tools write manifests: kubectl, Helm, and
// those that deploy for others. What they own becomes ours when an install is
// adopted; what controllers wrote into the same objects (certificates, counts,
// status) stays theirs.
var installers = []string{"kubectl", "helm", "terraform", "hashicorp", "pulumi", "argocd", "kustomize", "flux", "fleet", "python", "openapi-generator"}

func isInstaller(manager string) bool {
	manager = strings.ToLower(manager)
	return slices.ContainsFunc(installers, func(name string) bool { return strings.HasPrefix(manager, name) })
}

// adoptAll makes the fields of other installers ours, object by object, before
// the objects are applied: an apply then removes what we do not list, such as
// the webhooks for pods, instead of leaving it to an owner that is gone.
func adoptAll(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, obj := range objs {
		g.Go(func() error {
			return retry(ctx, cl, func() error { return adopt(ctx, cl, bare(obj)) })
		})
	}
	return g.Wait()
}

// adopt rewrites the managed fields of one object, and nothing else of it.
func adopt(ctx context.Context, cl *kube.Client, obj *metav1.PartialObjectMetadata) error {
	const tries = 5 // its controller may be writing to it at the same time
	for try := 1; ; try++ {
		found, err := cl.Fetch(ctx, obj)
		if err != nil || !found {
			return err
		}
		patch, err := ownership(obj)
		if err != nil {
			return fmt.Errorf("reading who owns the fields of %s %s on cluster %s: %w", obj.Kind, key(obj), cl.Name, err)
		}
		if patch == nil {
			return nil
		}
		err = cl.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch))
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == tries {
			return fmt.Errorf("adopting %s %s on cluster %s: %w", obj.Kind, key(obj), cl.Name, err)
		}
	}
}

// ownership is the patch that gives us what other installers own of obj; nil
// when there is nothing to give.
func ownership(obj *metav1.PartialObjectMetadata) ([]byte, error) {
	others := sets.New[string]()
	fields := slices.Clone(obj.ManagedFields)
	for i := range fields {
		if m := &fields[i]; m.Manager != kube.FieldManager && m.Subresource == "" && isInstaller(m.Manager) {
			others.Insert(m.Manager)
			// The library moves updates only; an apply owns in the same way.
			m.Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	obj = obj.DeepCopy()
	obj.ManagedFields = fields
	return csaupgrade.UpgradeManagedFieldsPatch(obj, others, kube.FieldManager)
}

// obsolete are the objects of any release that c does not install: roles and
// APIs that it leaves out, and what another version had. Never definitions,
// which hold the users' objects, nor namespaces.
func obsolete(c Config, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	wanted := map[string]bool{}
	id := func(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + key(obj) }
	for _, obj := range objs {
		wanted[id(obj)] = true
	}
	var left []*unstructured.Unstructured
	for _, p := range c.parts() {
		for _, pair := range pairs {
			version := pair.kueue
			if p == jobSet {
				version = pair.jobSet
			}
			all, err := p.originals(version)
			if err != nil {
				return nil, err
			}
			for _, obj := range all {
				if kind := obj.GetKind(); kind == "CustomResourceDefinition" || kind == "Namespace" || wanted[id(obj)] {
					continue
				}
				wanted[id(obj)] = true // once
				left = append(left, obj)
			}
		}
	}
	return left, nil
}
