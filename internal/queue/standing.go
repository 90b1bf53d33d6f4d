package queue

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Standing tells whether Kueue takes jobs for a queue, and if not, its reason
// and what to do about it.
func Standing(cq *kueue.ClusterQueue) (active bool, reason, message string) {
	c := meta.FindStatusCondition(cq.Status.Conditions, kueue.ClusterQueueActive)
	switch {
	case c == nil:
		return false, unknown, "Kueue has not looked at queue " + cq.Name + " yet." + ifItLasts
	case c.ObservedGeneration > 0 && c.ObservedGeneration < cq.Generation:
		return false, unknown, "Kueue has not looked at queue " + cq.Name + " since it was changed." + ifItLasts
	}
	if c.Status == metav1.ConditionTrue {
		return true, "", ""
	}
	message = "Kueue admits no job to queue " + cq.Name + ": " + strings.TrimRight(c.Message, ".") + "."
	if next := advice[c.Reason]; next != "" {
		message += " " + next
	}
	return false, c.Reason, message
}

const (
	unknown   = "Unknown"
	ifItLasts = " If that lasts, its controller is down: see kubectl get pods -n kueue-system."
)

// TakenUp tells whether what Kueue says of a queue is about its present
// specification: it has seen this generation, and counts the flavors that the
// queue has. Kueue may see a generation a moment before it counts by it.
func TakenUp(cq *kueue.ClusterQueue) bool {
	if _, reason, _ := Standing(cq); reason == unknown {
		return false
	}
	var wants, counts []kueue.ResourceFlavorReference
	for _, g := range cq.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			wants = append(wants, f.Name)
		}
	}
	for _, f := range cq.Status.FlavorsReservation {
		counts = append(counts, f.Name)
	}
	slices.Sort(wants)
	slices.Sort(counts)
	return slices.Equal(wants, counts)
}

// advice is what to do by Kueue's reason why a queue is not active.
var advice = map[string]string{
	kueue.ClusterQueueActiveReasonStopped:                "Its stop policy says so; set stop_policy to None to open it.",
	kueue.ClusterQueueActiveReasonTerminating:            "It is being deleted, and goes when the last job that holds its quota ends.",
	kueue.ClusterQueueActiveReasonFlavorNotFound:         "Make the flavor (tpu_kueue_flavor), or take it out of the queue.",
	kueue.ClusterQueueActiveReasonAdmissionCheckNotFound: "Make the admission check (tpu_kueue_admission_check), or take it out of the queue.",
	kueue.ClusterQueueActiveReasonAdmissionCheckInactive: "The admission check's controller is not running, or its parameters are not there.",
	kueue.ClusterQueueActiveReasonTopologyNotFound:       "A flavor names a Topology that does not exist; make it, or take the topology out of the flavor.",
	kueue.ClusterQueueActiveReasonUnknown:                "Its conditions say no more; see the log of kueue-controller-manager in namespace kueue-system.",
}
