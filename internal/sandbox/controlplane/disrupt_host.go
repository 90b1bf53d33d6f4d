package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// tpuResource is what a TPU host has chips of.
const tpuResource corev1.ResourceName = "google.com/tpu"

// awayFolder keeps the nodes whose machines are gone, one file each.
const awayFolder = "away"

func labelsOf(n *corev1.Node) string {
	return labels.Set{corev1.LabelHostname: n.Labels[corev1.LabelHostname]}.String()
}

func hostSet(host string) sets.Set[string] { return sets.New(host) }

func (cp *ControlPlane) awayFile(host string) string {
	return filepath.Join(cp.cfg.Dir, awayFolder, host+".json")
}

// keepNode notes what a node was, to make it again.
func (cp *ControlPlane) keepNode(node *corev1.Node) error {
	node = complete(node, node.Labels[poolLabel])
	node.ManagedFields, node.CreationTimestamp = nil, metav1.Time{}
	node.Spec.PodCIDR, node.Spec.PodCIDRs = "", nil
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return isDisruption(t) || strings.HasPrefix(t.Key, "node.kubernetes.io/")
	})
	delete(node.Annotations, lostAnnotation)
	b, err := json.Marshal(node)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(cp.awayFile(node.Name)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(cp.awayFile(node.Name), b, 0o600)
}

// restoreNode makes a node again whose machine was gone, unless GKE did.
func (cp *ControlPlane) restoreNode(ctx context.Context, host string) error {
	b, err := os.ReadFile(cp.awayFile(host))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := json.Unmarshal(b, &node); err != nil {
		return fmt.Errorf("reading %s: %w", cp.awayFile(host), err)
	}
	if _, err := cp.client.CoreV1().Nodes().Create(ctx, &node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return os.Remove(cp.awayFile(host))
}

// Disrupted is a host that something happened to which still lasts.
type Disrupted struct {
	Host string     `json:"host"`
	Kind Disruption `json:"kind"`
}

// Disrupted lists the hosts that Mend would bring back, by name.
func (cp *ControlPlane) Disrupted(ctx context.Context) ([]Disrupted, error) {
	out := []Disrupted{}
	away, err := os.ReadDir(filepath.Join(cp.cfg.Dir, awayFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range away {
		out = append(out, Disrupted{strings.TrimSuffix(f.Name(), ".json"), Delete})
	}
	nodes, err := cp.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		switch {
		case n.Annotations[lostAnnotation] != "":
			kind := Lose
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse {
					kind = Shutdown
				}
			}
			out = append(out, Disrupted{n.Name, kind})
		case slices.ContainsFunc(n.Spec.Taints, isDisruption):
			out = append(out, Disrupted{n.Name, Taint})
		}
	}
	pods, err := cp.client.CoreV1().Pods(preemptorNamespace).List(ctx, metav1.ListOptions{LabelSelector: preemptorLabel})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		out = append(out, Disrupted{pods.Items[i].Labels[preemptorLabel], Preempt})
	}
	slices.SortFunc(out, func(a, b Disrupted) int { return strings.Compare(a.Host, b.Host) })
	return out, nil
}

const (
	preemptorNamespace = metav1.NamespaceDefault
	preemptorClass     = "sandbox-preemptor"
)

// takeChips puts a pod on a host that wants all its chips, of a priority above
// that of any job.
func (cp *ControlPlane) takeChips(ctx context.Context, node *corev1.Node) error {
	chips, ok := node.Status.Allocatable[tpuResource]
	if !ok {
		return &HostError{"it has no chips that could be taken"}
	}
	class := &schedulingv1.PriorityClass{
		ObjectMeta:  metav1.ObjectMeta{Name: preemptorClass},
		Value:       1_000_000_000,
		Description: "Of pods by which the sandbox lets the scheduler preempt others.",
	}
	if _, err := cp.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	selector := map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}
	for _, l := range []string{"cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"} {
		if v := node.Labels[l]; v != "" {
			selector[l] = v // GKE wants them of every pod that asks for chips
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	want := corev1.ResourceList{tpuResource: chips}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "preempts-" + node.Name, Namespace: preemptorNamespace, Labels: map[string]string{preemptorLabel: node.Name}},
		Spec: corev1.PodSpec{
			PriorityClassName: preemptorClass,
			NodeSelector:      selector,
			Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:        []corev1.Container{{Name: "main", Image: "sandbox/preemptor", Resources: corev1.ResourceRequirements{Limits: want, Requests: want}}},
		},
	}
	for {
		_, err := cp.client.CoreV1().Pods(preemptorNamespace).Create(ctx, pod, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			return nil
		case !apierrors.IsForbidden(err) || ctx.Err() != nil:
			return err
		}
		// The API server's admission has not seen the new class yet.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (cp *ControlPlane) giveChipsBack(ctx context.Context, host string) error {
	var zero int64
	return cp.client.CoreV1().Pods(preemptorNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero},
		metav1.ListOptions{LabelSelector: labels.Set{preemptorLabel: host}.String()})
}
