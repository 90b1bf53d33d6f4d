package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// parallel bounds the writes in flight: enough to hide a round trip to a
// distant region, few enough not to be throttled.
const parallel = 8

// Options change how Install works.
type Options struct {
	// Adopt makes an install ours that another tool made (kubectl apply of the
	// official manifests, Helm), and fields that somebody changed by hand,
	// instead of failing with an error that names that tool.
	Adopt bool
	// Progress, when not nil, hears what is being done.
	Progress func(format string, args ...any)
}

func (o Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(format, args...)
	}
}

// Install writes everything c asks for, waits until both controllers answer
// through their webhooks, adds the default priorities, and records c on the
// cluster. Running it again repairs what is missing; running it with another
// configuration changes what differs. It never deletes a custom resource.
func Install(ctx context.Context, cl *kube.Client, c Config, o Options) (Status, error) {
	c = c.WithDefaults()
	objs, err := Objects(c)
	if err != nil {
		return Status{}, err
	}
	if err := reach(ctx, cl); err != nil {
		return Status{}, err
	}
	before, err := inspect(ctx, cl, c, o)
	if err != nil {
		return Status{}, err
	}
	if o.Adopt {
		if err := adoptAll(ctx, cl, objs); err != nil {
			return Status{}, err
		}
	}
	for _, s := range stages(objs) {
		o.say("Applying %s", s.title)
		if err := applyAll(ctx, cl, s.objects, o); err != nil {
			return Status{}, err
		}
		if s.wait != nil {
			if err := s.wait(ctx, cl, s.objects, o); err != nil {
				return Status{}, err
			}
		}
	}
	o.say("Waiting for the controllers")
	if err := waitReady(ctx, cl, c); err != nil {
		return Status{}, err
	}
	if err := remake(ctx, cl, objs, o); err != nil {
		return Status{}, err
	}
	if before {
		if err := tidy(ctx, cl, c, objs, o); err != nil {
			return Status{}, err
		}
	}
	if !c.NoPriorities && !c.Kueue.Disabled {
		if err := applyAll(ctx, cl, Priorities(), o); err != nil {
			return Status{}, err
		}
	}
	if err := record(ctx, cl, c, objs, o); err != nil {
		return Status{}, err
	}
	return Observe(ctx, cl, c)
}

// tidy ends an install that replaced another one: objects are stored as the new
// release wants them, and what only the old one had is gone. It comes after the
// new controllers answer and before the record, so that an interrupted one is
// done again.
func tidy(ctx context.Context, cl *kube.Client, c Config, objs []*unstructured.Unstructured, o Options) error {
	if err := migrateStorage(ctx, cl, objs, o); err != nil {
		return err
	}
	left, err := obsolete(c, objs)
	if err != nil {
		return err
	}
	return removeAll(ctx, cl, left)
}

// stage is a set of objects that may be written in any order.
type stage struct {
	title   string
	kinds   []string
	objects []*unstructured.Unstructured
	wait    func(context.Context, *kube.Client, []*unstructured.Unstructured, Options) error
}

// stages sorts objects by what must be there before what. Webhooks come last:
// they fail closed, so they must not exist on a cluster whose controllers were
// refused.
func stages(objs []*unstructured.Unstructured) []stage {
	all := []stage{
		{title: "namespaces and definitions", kinds: []string{"Namespace", "CustomResourceDefinition"}, wait: waitEstablished},
		{title: "roles, services and configuration", kinds: []string{
			"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Secret", "Service",
		}},
		{title: "controllers", kinds: []string{"Deployment"}},
		{title: "webhooks", kinds: []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"}},
	}
	for i := range all {
		for _, obj := range objs {
			if slices.Contains(all[i].kinds, obj.GetKind()) {
				all[i].objects = append(all[i].objects, obj)
			}
		}
	}
	return all
}

// applyAll writes objects side by side. It works on copies, so that the
// objects stay what we own, not what the server stored.
func applyAll(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured, o Options) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, obj := range objs {
		g.Go(func() error {
			return apply(ctx, cl, obj, o)
		})
	}
	return g.Wait()
}

// apply writes one object, again when the API server or a webhook is not up
// yet.
func apply(ctx context.Context, cl *kube.Client, obj *unstructured.Unstructured, o Options) error {
	write := func() error {
		return retry(ctx, cl, func() error {
			return cl.Apply(ctx, obj.DeepCopy(), kube.ApplyOptions{Force: o.Adopt})
		})
	}
	err := write()
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w\nOr adopt them: what was asked for here then replaces what is there", err)
	case err == nil || !remakable(obj, err):
		return err
	}
	o.say("Making %s %s anew: %v", obj.GetKind(), key(obj), err)
	if err := cl.Remove(ctx, bare(obj), true); err != nil {
		return err
	}
	return write()
}

// remakable tells whether an object was refused because a field of it cannot
// change, and may be deleted and made again: it holds nothing of the users'.
// Between two JobSet releases the Deployment's selector is such a field. Its
// pods are gone for seconds; jobs run on.
func remakable(obj *unstructured.Unstructured, err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	switch obj.GetKind() {
	case "Deployment":
		return strings.Contains(err.Error(), "spec.selector") && strings.Contains(err.Error(), "immutable")
	case "ClusterRoleBinding", "RoleBinding":
		return strings.Contains(err.Error(), "roleRef")
	}
	return false
}

// errDeleted: what was written is gone, because it was being deleted already.
var errDeleted = errors.New("somebody deleted it")

// waitEstablished waits until the API server serves every definition. One whose
// deletion ended meanwhile is written again.
func waitEstablished(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured, o Options) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, obj := range objs {
		if obj.GetKind() != "CustomResourceDefinition" {
			continue
		}
		g.Go(func() error {
			for {
				err := established(ctx, cl, obj.GetName())
				if !errors.Is(err, errDeleted) {
					return err
				}
				if err := apply(ctx, cl, obj, o); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// established waits until the API server serves a definition.
func established(ctx context.Context, cl *kube.Client, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = name
	return cl.Until(ctx, crd, func(found bool) (bool, error) {
		if !found {
			return false, errDeleted
		}
		for _, cond := range crd.Status.Conditions {
			if cond.Type == apiextensionsv1.NamesAccepted && cond.Status == apiextensionsv1.ConditionFalse {
				return false, fmt.Errorf("definition %s on cluster %s is refused: %s", crd.Name, cl.Name, cond.Message)
			}
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

// The record on each release's namespace. It is written last and removed by
// the first step of the next install (which applies the namespace without it),
// so a record means that an install with it ran to its end.
const (
	annotationRecord = "terraform-provider-tpu/job-controllers"
	annotationHash   = "terraform-provider-tpu/job-controllers-hash"
)

func record(ctx context.Context, cl *kube.Client, c Config, objs []*unstructured.Unstructured, o Options) error {
	hash, err := c.Hash()
	if err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding the controllers' configuration: %w", err)
	}
	for _, obj := range objs {
		if obj.GetKind() != "Namespace" {
			continue
		}
		ns := obj.DeepCopy()
		ns.SetAnnotations(map[string]string{annotationRecord: string(text), annotationHash: hash})
		if err := apply(ctx, cl, ns, o); err != nil {
			return err
		}
	}
	return nil
}
