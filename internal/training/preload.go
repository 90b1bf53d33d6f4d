package training

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Preload is an image that the hosts of one kind of slice are to have before a
// job needs it.
type Preload struct {
	Namespace      string
	ServiceAccount string // whose pull secrets are used; "" = the namespace's default
	Image          string
	Slice          accelerator.Slice
}

// PreloadStatus is how far the hosts are.
type PreloadStatus struct {
	Hosts, Done int
	Trouble     string // what keeps one of them, or ""
}

const labelPreload = domain + "preload"

// name is the same for the same image and hosts: a run that was killed is gone
// on with by the next.
func (p Preload) name() string {
	sum := sha256.Sum256([]byte(p.Image + "\n" + p.Slice.AcceleratorLabel + "\n" + p.Slice.Topology.String()))
	return "tpu-preload-" + hex.EncodeToString(sum[:])[:10]
}

// object is a DaemonSet whose pods need nothing but the image. What they run
// does not matter, nor whether the image has it: it is pulled before.
func (p Preload) object() *appsv1.DaemonSet {
	labels := map[string]string{labelPreload: p.name()}
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.name(), Labels: map[string]string{queue.LabelManagedBy: queue.ManagedBy, labelPreload: p.name()}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName:            p.ServiceAccount,
					AutomountServiceAccountToken:  ptr.To(false),
					NodeSelector:                  p.Slice.NodeLabels(),
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					TerminationGracePeriodSeconds: ptr.To[int64](0),
					Containers:                    []corev1.Container{{Name: "image", Image: p.Image, Command: []string{"/bin/sleep", "infinity"}}},
				},
			},
		},
	}
}

// Run pulls the image to every host of the kind, and returns when all have it.
// progress is told what changes. Whatever happens, nothing is left behind but
// the image; when ctx ends, the error says how far it came.
func (p Preload) Run(ctx context.Context, c *kube.Client, progress func(PreloadStatus)) (PreloadStatus, error) {
	ds := p.object()
	if err := c.Apply(ctx, ds, kube.ApplyOptions{Force: true}); err != nil {
		return PreloadStatus{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.Delete(ctx, p.object(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	}()
	var last PreloadStatus
	for first := true; ; first = false {
		now, seen, err := p.status(ctx, c)
		switch {
		case err != nil && !kube.Transient(err) && ctx.Err() == nil:
			return last, err
		case err == nil && seen:
			if first || now != last {
				last = now
				progress(now)
			}
			if now.Hosts == 0 {
				return now, fmt.Errorf("cluster %s has no host of %s now, and nothing was pulled", c.Name, p.Slice.Name)
			}
			if now.Done == now.Hosts {
				return now, nil
			}
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("pulling %s to the hosts of %s in cluster %s: %d of %d have it%s: %w", p.Image, p.Slice.Name, c.Name, last.Done, last.Hosts,
				map[bool]string{true: "; " + last.Trouble}[last.Trouble != ""], context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// status reads how far the hosts are; seen is false until the DaemonSet's
// controller has counted them.
func (p Preload) status(ctx context.Context, c *kube.Client) (s PreloadStatus, seen bool, err error) {
	ds := p.object()
	found, err := c.Fetch(ctx, ds)
	if err != nil || !found || ds.Status.ObservedGeneration == 0 {
		return s, false, err
	}
	var pods corev1.PodList
	if err := list(ctx, c, &pods, client.InNamespace(p.Namespace), client.MatchingLabels{labelPreload: p.name()}); err != nil {
		return s, false, err
	}
	s.Hosts = int(ds.Status.DesiredNumberScheduled)
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	for i := range pods.Items {
		has, trouble := pulled(&pods.Items[i])
		if has {
			s.Done++
		} else if s.Trouble == "" && trouble != "" {
			s.Trouble = cmp.Or(pods.Items[i].Spec.NodeName, "a host") + ": " + trouble
		}
	}
	s.Done = min(s.Done, s.Hosts)
	return s, true, nil
}

// pulled tells whether a pod's image is there: its container runs, has run, or
// failed to for want of the program.
func pulled(pod *corev1.Pod) (yes bool, trouble string) {
	for _, s := range pod.Status.ContainerStatuses {
		w := s.State.Waiting
		switch {
		case s.State.Running != nil, s.State.Terminated != nil, s.RestartCount > 0, s.ImageID != "":
			return true, ""
		case w == nil:
		case w.Reason == "CreateContainerError" || w.Reason == "RunContainerError" || w.Reason == "CrashLoopBackOff":
			return true, ""
		case w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
			return false, strings.TrimSpace(w.Reason + " " + w.Message)
		}
	}
	return false, ""
}
