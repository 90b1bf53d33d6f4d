package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// UninstallOptions change how Uninstall works.
type UninstallOptions struct {
	// Force deletes JobSets, running ones too, and workloads.
	Force    bool
	Progress func(format string, args ...any)
}

// graceForFinalizers is how long a running Kueue gets to release its own
// objects before their finalizers are removed for it. One that is down gets no
// time.
const graceForFinalizers = 20 * time.Second

// Uninstall removes what Install with c wrote, and with the definitions every
// queue, flavor and priority. It refuses, with a *BusyError, while jobs exist,
// unless forced. It returns when everything is gone; running it again after an
// interruption continues.
func Uninstall(ctx context.Context, cl *kube.Client, c Config, o UninstallOptions) error {
	say := Options{Progress: o.Progress}.say
	c = c.WithDefaults()
	objs, err := Objects(c)
	if err != nil {
		return err
	}
	if err := reach(ctx, cl); err != nil {
		return err
	}
	if !o.Force {
		if err := refuseWhileBusy(ctx, cl, c); err != nil {
			return err
		}
	}
	// Webhooks and the aggregated API first: they fail closed, and everything
	// below would have to pass them. Kueue still runs, and releases its objects
	// as they are deleted; once it is gone nobody would remove the finalizer
	// kueue.x-k8s.io/resource-in-use.
	for _, step := range []struct {
		title string
		run   func() error
	}{
		{"webhooks", func() error {
			return removeAll(ctx, cl, kinds(objs, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"))
		}},
		{"custom resources", func() error { return removeCustomResources(ctx, cl, objs) }},
		{"controllers", func() error { return removeAll(ctx, cl, kinds(objs, "Deployment")) }},
		{"definitions", func() error { return removeAll(ctx, cl, kinds(objs, "CustomResourceDefinition")) }},
		{"roles", func() error {
			// The control plane composes aggregated roles out of others, by an
			// apply: it would make one anew after a change of its parts.
			aggregated, others := split(kinds(objs, "ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role"), isAggregated)
			if err := removeAll(ctx, cl, aggregated); err != nil {
				return err
			}
			return removeAll(ctx, cl, others)
		}},
		{"namespaces", func() error { return removeAll(ctx, cl, kinds(objs, "Namespace")) }},
	} {
		say("Removing %s", step.title)
		if err := step.run(); err != nil {
			return err
		}
	}
	return nil
}

// stored returns the kind that a definition stores, which needs no conversion
// (and so no running controller) to be read.
func stored(crd *unstructured.Unstructured) schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["storage"] == true {
			version, _ := v["name"].(string)
			return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
		}
	}
	return schema.GroupVersionKind{}
}

// removalOrder puts who uses an object before the object: JobSets, then the
// workloads of Jobs, then queues, then what queues refer to.
var removalOrder = [][]string{
	{"JobSet"}, {"Workload"}, {"LocalQueue"}, {"ClusterQueue"},
	{"Cohort", "ResourceFlavor", "AdmissionCheck", "WorkloadPriorityClass"},
	{"Topology", "ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster"},
}

func removeCustomResources(ctx context.Context, cl *kube.Client, objs []*unstructured.Unstructured) error {
	var grace time.Duration
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = kueue.namespace(), kueue.deployment()
	if found, err := cl.Fetch(ctx, d); err != nil {
		return err
	} else if found && d.Status.AvailableReplicas > 0 {
		grace = graceForFinalizers
	}
	byKind := map[string]schema.GroupVersionKind{}
	for _, crd := range kinds(objs, "CustomResourceDefinition") {
		gvk := stored(crd)
		byKind[gvk.Kind] = gvk
	}
	for _, names := range removalOrder {
		g, gctx := errgroup.WithContext(ctx)
		for _, name := range names {
			if gvk, ok := byKind[name]; ok {
				g.Go(func() error { return removeKind(gctx, cl, gvk, grace) })
			}
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// removeKind deletes every object of a kind and waits until none is left. What
// is still there after grace loses its finalizers.
func removeKind(ctx context.Context, cl *kube.Client, gvk schema.GroupVersionKind, grace time.Duration) error {
	began := time.Now()
	pause := 50 * time.Millisecond
	for {
		left, err := list(ctx, cl, gvk)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		release := time.Since(began) > grace
		for i := range left {
			obj := &left[i]
			if obj.DeletionTimestamp == nil {
				if err := cl.Remove(ctx, obj, false); err != nil && !kube.Transient(err) {
					return err
				}
			} else if release && len(obj.Finalizers) > 0 {
				// A merge patch by metadata: the object need not be valid.
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
				if err := cl.Patch(ctx, obj, patch); err != nil && !apierrors.IsNotFound(err) && !kube.Transient(err) {
					return fmt.Errorf("removing the finalizers %v of %s %s on cluster %s: %w", obj.Finalizers, gvk.Kind, obj.Name, cl.Name, err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d objects of kind %s on cluster %s to be deleted (first: %s): %w", len(left), gvk.Kind, cl.Name, key(&left[0]), context.Cause(ctx))
		case <-time.After(pause):
			pause = min(pause*2, time.Second)
		}
	}
}

// list returns the metadata of every object of a kind; none when the kind
// itself is gone.
func list(ctx context.Context, cl *kube.Client, gvk schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := retry(ctx, cl, func() error { return cl.List(ctx, &all) })
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s on cluster %s: %w", gvk.Kind, cl.Name, err)
	}
	for i := range all.Items {
		all.Items[i].SetGroupVersionKind(gvk)
	}
	return all.Items, nil
}

func key(obj client.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}

// BusyError is a refusal to uninstall while jobs exist.
type BusyError struct {
	Cluster string
	Objects []string // "JobSet research/train", ...
}

func (e *BusyError) Error() string {
	shown := e.Objects
	more := ""
	if len(shown) > 5 {
		more = fmt.Sprintf(" and %d more", len(shown)-5)
		shown = shown[:5]
	}
	msg := fmt.Sprintf("removing the job controllers of cluster %s: it still has %d of the jobs that they run:", e.Cluster, len(e.Objects))
	for _, o := range shown {
		msg += "\n  " + o
	}
	if more != "" {
		msg += "\n " + more
	}
	return msg + "\nDelete them first, finished ones too, or set force_uninstall = true and apply that, which lets the removal delete them."
}

// graceForOwned is how long a workload may outlive its deleted job, while the
// cluster collects it.
const graceForOwned = 30 * time.Second

// refuseWhileBusy fails while JobSets or workloads exist that nobody is
// deleting. A job removed a moment before leaves its workload for a second.
func refuseWhileBusy(ctx context.Context, cl *kube.Client, c Config) error {
	began := time.Now()
	for {
		jobs, waiting, err := busy(ctx, cl, c)
		if err != nil {
			return err
		}
		if len(jobs) > 0 && (!waiting || time.Since(began) > graceForOwned) {
			return &BusyError{Cluster: cl.Name, Objects: jobs}
		}
		if len(jobs) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(&BusyError{Cluster: cl.Name, Objects: jobs}, context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// busy lists the jobs that exist and are not being deleted. onlyOwned tells
// that all of them are workloads of some owner, which may be gone already.
func busy(ctx context.Context, cl *kube.Client, c Config) (jobs []string, onlyOwned bool, err error) {
	onlyOwned = true
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
		{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"},
	} {
		if (gvk.Kind == "JobSet" && c.JobSet.Disabled) || (gvk.Kind == "Workload" && c.Kueue.Disabled) {
			continue
		}
		objs, err := list(ctx, cl, gvk)
		if err != nil {
			return nil, false, err
		}
		for i := range objs {
			if objs[i].DeletionTimestamp != nil {
				continue
			}
			jobs = append(jobs, gvk.Kind+" "+key(&objs[i]))
			if gvk.Kind == "JobSet" || len(objs[i].OwnerReferences) == 0 {
				onlyOwned = false
			}
		}
	}
	return jobs, onlyOwned, nil
}
