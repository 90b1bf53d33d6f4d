package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

func kinds(objs []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, obj := range objs {
		if slices.Contains(kinds, obj.GetKind()) {
			found = append(found, obj)
		}
	}
	return found
}

func split(objs []*unstructured.Unstructured, is func(*unstructured.Unstructured) bool) (yes, no []*unstructured.Unstructured) {
	for _, obj := range objs {
		if is(obj) {
			yes = append(yes, obj)
		} else {
			no = append(no, obj)
		}
	}
	return yes, no
}

func isAggregated(obj *unstructured.Unstructured) bool {
	_, found := obj.Object["aggregationRule"]
	return found
}

// removeAll deletes objects side by side and waits until they are gone.
func removeAll(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, obj := range objs {
		g.Go(func() error { return removeForGood(ctx, cl, obj) })
	}
	return g.Wait()
}

// remakes is how often an object may come back before somebody must be making
// it on purpose.
const remakes = 5

// removeForGood deletes an object, also when a controller that had not heard
// of its end made it again.
func removeForGood(ctx context.Context, cl *kube.Client, obj *unstructured.Unstructured) error {
	for range remakes {
		target := bare(obj)
		if err := retry(ctx, cl, func() error { return cl.Remove(ctx, target, true) }); err != nil {
			return err
		}
		var found bool
		err := retry(ctx, cl, func() (err error) { found, err = cl.Fetch(ctx, target); return err })
		if err != nil || !found {
			return err
		}
	}
	return fmt.Errorf("removing %s %s on cluster %s: it was made again %d times: stop whoever makes it (kubectl get %s %s --show-managed-fields -o yaml names them), and try again",
		obj.GetKind(), key(obj), cl.Name, remakes, strings.ToLower(obj.GetKind()), obj.GetName())
}

// bare names an object without its content, as a read or delete wants it.
func bare(obj *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(obj.GroupVersionKind())
	m.Namespace, m.Name = obj.GetNamespace(), obj.GetName()
	return m
}
