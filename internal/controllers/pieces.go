package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// selectPieces is what every object of both releases is labelled with.
const selectPieces = "app.kubernetes.io/name in (jobset,kueue)"

// pieces are the objects that an install with c makes of a release, by kind; as
// they are in the manifests, for their names.
func (c Config) pieces(p part) (map[schema.GroupVersionKind][]*unstructured.Unstructured, error) {
	all, err := p.originals(c.version(p))
	if err != nil {
		return nil, err
	}
	kinds := map[schema.GroupVersionKind][]*unstructured.Unstructured{}
	for _, obj := range all {
		if !c.unused(obj) && !looked(p, obj) {
			kinds[obj.GroupVersionKind()] = append(kinds[obj.GroupVersionKind()], obj)
		}
	}
	return kinds, nil
}

// looked tells whether an observation reads this object by itself.
func looked(p part, obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "Namespace", "Deployment", "ConfigMap", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return true
	case "CustomResourceDefinition":
		return obj.GetName() == definition[p]
	}
	return false
}

// lost lists the pieces of a release that somebody deleted: definitions, roles,
// services and so on, one request for each kind. What the account may not look
// at is left out.
func lost(ctx context.Context, cl *kube.Client, c Config, p part) ([]string, error) {
	kinds, err := c.pieces(p)
	if err != nil {
		return nil, err
	}
	found := make(chan []string, len(kinds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for kind, objs := range kinds {
		g.Go(func() error {
			lines, err := lostOf(ctx, cl, kind, objs)
			found <- lines
			return err
		})
	}
	err = g.Wait()
	close(found)
	var all []string
	for lines := range found {
		all = append(all, lines...)
	}
	slices.Sort(all)
	return all, err
}

func lostOf(ctx context.Context, cl *kube.Client, kind schema.GroupVersionKind, objs []*unstructured.Unstructured) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	there := map[string]bool{}
	switch err := cl.List(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selectPieces}}); {
	case hidden(err):
		return nil, nil
	case err != nil:
		return nil, &kube.Error{Verb: "listing", Kind: kind.Kind, Key: "of the job controllers", Cluster: cl.Name, Err: err}
	}
	for i := range list.Items {
		there[key(&list.Items[i])] = list.Items[i].DeletionTimestamp == nil
	}
	var lines []string
	for _, obj := range objs {
		if there[key(obj)] {
			continue
		}
		// Somebody may have taken its labels only.
		live := bare(obj)
		switch found, err := cl.Fetch(ctx, live); {
		case err != nil:
			return nil, err
		case !found:
			lines = append(lines, fmt.Sprintf("%s %s does not exist", kind.Kind, key(obj)))
		case live.DeletionTimestamp != nil:
			lines = append(lines, fmt.Sprintf("%s %s is being deleted", kind.Kind, key(obj)))
		}
	}
	return lines, nil
}

// hidden tells whether a kind cannot be looked at, which is not to say that
// something of it is missing.
func hidden(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// changedPriorities lists the default priorities that somebody deleted or gave
// another value.
func changedPriorities(ctx context.Context, cl *kube.Client) ([]string, error) {
	var all kueueapi.WorkloadPriorityClassList
	if err := cl.List(ctx, &all); err != nil {
		if hidden(err) {
			return nil, nil
		}
		return nil, &kube.Error{Verb: "listing", Kind: "WorkloadPriorityClasses", Key: "of the job controllers", Cluster: cl.Name, Err: err}
	}
	values := map[string]int64{}
	for i := range all.Items {
		values[all.Items[i].Name] = int64(all.Items[i].Value)
	}
	var lines []string
	for _, p := range priorities {
		switch value, ok := values[p.name]; {
		case !ok:
			lines = append(lines, "WorkloadPriorityClass "+p.name+" does not exist")
		case value != p.value:
			lines = append(lines, fmt.Sprintf("WorkloadPriorityClass %s has value %d, want %d", p.name, value, p.value))
		}
	}
	return lines, nil
}

// remake makes definitions anew that somebody is deleting: until now they were
// still served, so the controllers could start and let go of what is in them.
func remake(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured, o Options) error {
	var gone []*unstructured.Unstructured
	for _, obj := range objs {
		if obj.GetKind() != "CustomResourceDefinition" {
			continue
		}
		live := bare(obj)
		if found, err := cl.Fetch(ctx, live); err != nil || found && live.DeletionTimestamp == nil {
			if err != nil {
				return err
			}
			continue
		}
		o.say("Waiting until %s is deleted, to make it anew", obj.GetName())
		if err := cl.Until(ctx, live, func(found bool) (bool, error) { return !found || live.DeletionTimestamp == nil, nil }); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w\nSomebody deleted this definition. It goes when the last of its objects is gone: see which are left with kubectl get %s -A", err, strings.SplitN(obj.GetName(), ".", 2)[0])
			}
			return err
		}
		gone = append(gone, obj)
	}
	if err := applyAll(ctx, cl, gone, o); err != nil {
		return err
	}
	return waitEstablished(ctx, cl, gone, o)
}

// freshen deletes pods that ended too often to be started again soon, for a
// reason that this install may have taken away.
func freshen(ctx context.Context, cl *kube.Client, p part) error {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = p.namespace(), p.deployment()
	found, err := cl.Fetch(ctx, d)
	if err != nil || !found || d.Spec.Selector == nil {
		return err
	}
	var pods corev1.PodList
	if err := cl.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return &kube.Error{Verb: "listing", Kind: "pods", Key: "of " + key(d), Cluster: cl.Name, Err: err}
	}
	for i := range pods.Items {
		if !slices.ContainsFunc(pods.Items[i].Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount >= hopeless && !s.Ready }) {
			continue
		}
		if err := cl.Remove(ctx, &pods.Items[i], false); err != nil {
			return err
		}
	}
	return nil
}
