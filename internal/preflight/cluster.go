package preflight

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/similar"
	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// namespace looks for the namespace, by which the cluster answers or not.
func (c Checks) namespace(ctx context.Context, s training.Spec) []Item {
	return c.Namespace(ctx, s.Namespace)
}

// Namespace looks for a namespace alone.
func (c Checks) Namespace(ctx context.Context, name string) []Item {
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	m.Name = name
	found, err := c.Cluster.Fetch(ctx, m)
	here := Item{nameCluster, Passed, c.Cluster.Name + " answers"}
	switch {
	case err != nil && (apierrors.IsForbidden(err)):
		return []Item{here, {nameNamespace, Unknown, name + ": this account may not look at namespaces"}}
	case err != nil:
		return failed(nameCluster, plain(err))
	case found && m.DeletionTimestamp != nil:
		return []Item{here, {nameNamespace, Failed, name + " is being deleted, and nothing can be made in it: choose another --namespace, or make it again when it is gone (tpu_training_namespace)"}}
	case found:
		return []Item{here, {nameNamespace, Passed, name}}
	}
	text := name + " does not exist"
	all, _ := c.names(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), "") // what cannot be listed is not named
	if near := similar.Among(name, all); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "? Else make it (tpu_training_namespace)"
	} else {
		text += ": make it (tpu_training_namespace), or choose another --namespace"
	}
	return []Item{here, {nameNamespace, Failed, text}}
}

// plain is an error with what to do, on one line.
func plain(err error) string {
	text := err.Error()
	if hinted, ok := err.(interface{ Hint() string }); ok && hinted.Hint() != "" {
		text += ". " + hinted.Hint()
	}
	return strings.Join(strings.Fields(text), " ")
}

// controller is one of the two that jobs need: the version of its kinds that
// jobs are written in, and where its releases put it.
type controller struct {
	title, namespace, deployment string
	kind                         schema.GroupVersionKind
}

var jobSetController = controller{"JobSet", "jobset-system", "jobset-controller-manager", jobset.SchemeGroupVersion.WithKind("JobSet")}

var kueueController = controller{"Kueue", "kueue-system", "kueue-controller-manager", kueue.SchemeGroupVersion.WithKind("Workload")}

// controllers looks whether JobSet and, for a queued job, Kueue are there, serve
// what jobs are written in, and run.
func (c Checks) controllers(ctx context.Context, s training.Spec) []Item {
	wanted := []controller{jobSetController}
	if s.Queue != "" {
		wanted = append(wanted, kueueController)
	}
	var running, wrong, down []string
	for _, one := range wanted {
		switch err := c.serves(ctx, one); {
		case meta.IsNoMatchError(err) && c.older(one):
			wrong = append(wrong, fmt.Sprintf("%s does not serve %s, which this tpuctl speaks: upgrade it (tpu_job_controllers)", one.title, one.kind.GroupVersion()))
			continue
		case meta.IsNoMatchError(err):
			wrong = append(wrong, one.title+" is not installed (tpu_job_controllers installs it)")
			continue
		case err != nil:
			return unknown(nameControllers, plain(err))
		}
		release, up := c.deployed(ctx, one)
		running = append(running, strings.TrimSpace(one.title+" "+release))
		if !up {
			down = append(down, fmt.Sprintf("%s is down: no pod of it in namespace %s is ready", one.title, one.namespace))
		}
	}
	switch {
	case len(wrong) > 0:
		return failed(nameControllers, strings.Join(wrong, "; "))
	case len(down) > 0: // it may be starting; what it checks is retried
		return unknown(nameControllers, strings.Join(down, "; "))
	}
	return passed(nameControllers, strings.Join(running, ", "))
}

func (c Checks) serves(ctx context.Context, one controller) error {
	_, err := await(ctx, func() (*meta.RESTMapping, error) {
		return c.Cluster.RESTMapper().RESTMapping(one.kind.GroupKind(), one.kind.Version)
	})
	return err
}

// older tells whether the controller is there in versions that are not spoken.
func (c Checks) older(one controller) bool {
	_, err := c.Cluster.RESTMapper().RESTMapping(one.kind.GroupKind())
	return err == nil
}

// deployed is the release where it can be seen; what cannot be seen is up.
func (c Checks) deployed(ctx context.Context, one controller) (release string, up bool) {
	d := &appsv1.Deployment{}
	if err := c.Cluster.Get(ctx, client.ObjectKey{Namespace: one.namespace, Name: one.deployment}, d); err != nil {
		return "", true // elsewhere, or not ours to see
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if i := strings.LastIndexByte(container.Image, ':'); i > strings.LastIndexByte(container.Image, '/') {
			release = container.Image[i+1:]
		}
	}
	return release, d.Status.AvailableReplicas > 0
}

// slices looks for hosts of the job's slices, as the job's pods would.
func (c Checks) slices(ctx context.Context, s training.Spec) []Item {
	var nodes metav1.PartialObjectMetadataList
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	err := c.Cluster.List(ctx, &nodes, client.MatchingLabels(s.NodeSelector()), client.Limit(1))
	switch {
	case err != nil && apierrors.IsForbidden(err):
		return unknown(nameSlices, "this account may not look at nodes")
	case err != nil:
		return unknown(nameSlices, plain(err))
	case len(nodes.Items) > 0:
		return passed(nameSlices, "there are hosts of "+s.PoolSlice().Name)
	case c.Provisions == nil:
		return unknown(nameSlices, "no host of "+s.PoolSlice().Name+" is there now, unless one is made on demand")
	}
	switch grows, err := c.Provisions(ctx, s.PoolSlice()); {
	case err != nil:
		return unknown(nameSlices, fmt.Sprintf("no host of %s is there now, and whether one is made on demand is not known: %s", s.PoolSlice().Name, plain(err)))
	case grows:
		return passed(nameSlices, "no host of "+s.PoolSlice().Name+" is there now; node pools of them are made or grow on demand")
	}
	return failed(nameSlices, fmt.Sprintf("the cluster has no node pool of %s: make one (tpu_slice_pool), or choose another --accelerator", cmp.Or(s.PoolSlice().Name, "such slices")))
}

// queueOf reads the job's queue, and what is wrong with it.
func (c Checks) queueOf(ctx context.Context, s training.Spec) (*kueue.LocalQueue, []Item) {
	lq := &kueue.LocalQueue{}
	err := c.Cluster.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Queue}, lq)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil // controllers says it
	case apierrors.IsNotFound(err):
		text := fmt.Sprintf("namespace %s has no queue %s", s.Namespace, s.Queue)
		if others, err := training.Queues(ctx, c.Cluster, s.Namespace); err == nil && len(others) > 0 {
			text += ": it has " + strings.Join(others, ", ")
		} else {
			text += ": list the namespace in a tpu_kueue_queue"
		}
		return nil, failed(nameQueue, text)
	case apierrors.IsForbidden(err):
		return nil, unknown(nameQueue, s.Queue+": this account may not look at queues")
	case err != nil:
		return nil, unknown(nameQueue, plain(&kube.Error{Verb: "reading", Kind: "LocalQueue", Key: s.Namespace + "/" + s.Queue, Cluster: c.Cluster.Name, Err: err}))
	}
	if active := meta.FindStatusCondition(lq.Status.Conditions, kueue.LocalQueueActive); active != nil && active.Status == metav1.ConditionFalse {
		return lq, unknown(nameQueue, fmt.Sprintf("%s admits nothing now (%s): %s", s.Queue, active.Reason, active.Message))
	}
	return lq, passed(nameQueue, s.Queue)
}
