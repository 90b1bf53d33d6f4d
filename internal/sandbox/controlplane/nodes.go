package controlplane

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// poolLabel is GKE's label of the node pool that a node belongs to.
	poolLabel = "cloud.google.com/gke-nodepool"
	// simulated marks nodes whose kubelet KWOK plays.
	simulated = "kwok.x-k8s.io/node"
	// kubeletVersion is what nodes report: the version of the control plane.
	kubeletVersion = "v1.36.2"
	// inFlight bounds concurrent writes of nodes; more do not go faster on two
	// cores.
	inFlight = 32
)

// Nodes makes the nodes of a pool be exactly these: missing ones are created,
// changed ones updated, others removed; nil removes them all. It returns when
// all of them are Ready and open for pods.
func (cp *ControlPlane) Nodes(ctx context.Context, pool string, nodes []*corev1.Node) error {
	if err := cp.setNodes(ctx, pool, nodes); err != nil {
		return fmt.Errorf("setting the %d nodes of pool %s on control plane %s: %w", len(nodes), pool, cp.cfg.Name, err)
	}
	return nil
}

func (cp *ControlPlane) setNodes(ctx context.Context, pool string, nodes []*corev1.Node) error {
	api := cp.client.CoreV1().Nodes()
	selector := labels.Set{poolLabel: pool}.String()
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	have := map[string]*corev1.Node{}
	for i := range list.Items {
		have[list.Items[i].Name] = &list.Items[i]
	}
	todo, wanted := errgroup.Group{}, sets.New[string]()
	todo.SetLimit(inFlight)
	for _, n := range nodes {
		n = complete(n, pool)
		wanted.Insert(n.Name)
		old := have[n.Name]
		delete(have, n.Name)
		switch {
		case old == nil:
			todo.Go(func() error {
				_, err := api.Create(ctx, n, metav1.CreateOptions{})
				return err
			})
		case differs(old, n):
			todo.Go(func() error {
				merge(old, n)
				_, err := api.Update(ctx, old, metav1.UpdateOptions{})
				return err
			})
		}
	}
	for name := range have {
		todo.Go(func() error {
			if err := api.Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
	if err := todo.Wait(); err != nil {
		return err
	}
	return cp.nodesReady(ctx, selector, wanted)
}

// complete adds what a kubelet would report and the caller left out.
func complete(n *corev1.Node, pool string) *corev1.Node {
	n = n.DeepCopy()
	n.ResourceVersion, n.UID = "", ""
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for k, v := range map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"} {
		if n.Labels[k] == "" {
			n.Labels[k] = v
		}
	}
	n.Labels[poolLabel] = pool
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[simulated] = "fake"
	if n.Status.Capacity == nil {
		n.Status.Capacity = corev1.ResourceList{}
	}
	for name, q := range map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"} {
		if _, ok := n.Status.Capacity[name]; !ok {
			n.Status.Capacity[name] = resource.MustParse(q)
		}
	}
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = corev1.ResourceList{}
	}
	for name, q := range n.Status.Capacity {
		if _, ok := n.Status.Allocatable[name]; !ok {
			n.Status.Allocatable[name] = q
		}
	}
	if len(n.Status.Addresses) == 0 {
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: addressOf(n.Name)},
			{Type: corev1.NodeHostName, Address: n.Name},
		}
	}
	n.Status.Conditions = nil // KWOK's to tell
	return n
}

// addressOf is a node's address on a network that does not exist.
func addressOf(node string) string {
	h := fnv.New32a()
	h.Write([]byte(node))
	v := h.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", 64+v>>16&31, v>>8&255, v&255)
}

// differs compares what a pool decides about its nodes. Others add labels and
// taints of their own, which stay.
func differs(old, want *corev1.Node) bool {
	after := old.DeepCopy()
	merge(after, want)
	return !equality.Semantic.DeepEqual(old.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(old.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(old.Spec.Taints, after.Spec.Taints)
}

func merge(into, want *corev1.Node) {
	if into.Labels == nil {
		into.Labels = map[string]string{}
	}
	maps.Copy(into.Labels, want.Labels)
	if into.Annotations == nil {
		into.Annotations = map[string]string{}
	}
	maps.Copy(into.Annotations, want.Annotations)
next:
	for _, t := range want.Spec.Taints {
		for i := range into.Spec.Taints {
			if into.Spec.Taints[i].MatchTaint(&t) {
				into.Spec.Taints[i].Value = t.Value
				continue next
			}
		}
		into.Spec.Taints = append(into.Spec.Taints, t)
	}
}

// nodesReady waits for all wanted nodes to be open for pods.
func (cp *ControlPlane) nodesReady(ctx context.Context, selector string, wanted sets.Set[string]) error {
	api := cp.client.CoreV1().Nodes()
	for wanted.Len() > 0 {
		list, err := api.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if open(&list.Items[i]) {
				wanted.Delete(list.Items[i].Name)
			}
		}
		if wanted.Len() == 0 {
			return nil
		}
		w, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.ResourceVersion})
		if err != nil {
			return err
		}
		if err := untilOpen(ctx, w, wanted); err != nil {
			return err
		}
	}
	return nil
}

// untilOpen follows a watch until nothing is wanted any more or it ends.
func untilOpen(ctx context.Context, w watch.Interface, wanted sets.Set[string]) error {
	defer w.Stop()
	for wanted.Len() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d nodes are not Ready yet (%s): %w", wanted.Len(), sets.List(wanted)[0], ctx.Err())
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return nil // list again
			}
			if n, ok := e.Object.(*corev1.Node); ok && open(n) {
				wanted.Delete(n.Name)
			}
		}
	}
	return nil
}

// open tells whether pods can be scheduled: Ready, and the taint of new nodes
// lifted.
func open(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
