package queue

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// CheckStanding is whether an admission check's controller answers for it.
type CheckStanding struct {
	Active  bool
	Reason  string // the controller's, when it is not active; "Unknown" before it says anything
	Message string // why, and what to do about it
	// Final: waiting changes nothing. Either its controller has spoken, or it
	// cannot run on this cluster.
	Final bool
}

// provisioningRequest is what Kueue asks the autoscaler by. Without it on the
// cluster, Kueue does not start the controller of such checks.
var provisioningRequest = schema.GroupKind{Group: "autoscaling.x-k8s.io", Kind: "ProvisioningRequest"}

// StandingOfCheck looks at a check as it is on the cluster.
func StandingOfCheck(ctx context.Context, k *kube.Client, live *kueue.AdmissionCheck) (CheckStanding, error) {
	c := meta.FindStatusCondition(live.Status.Conditions, kueue.AdmissionCheckActive)
	switch {
	case c == nil || c.ObservedGeneration > 0 && c.ObservedGeneration < live.Generation:
	case c.Status == metav1.ConditionTrue:
		return CheckStanding{Active: true, Final: true}, nil
	default:
		return CheckStanding{Reason: c.Reason, Final: true,
			Message: fmt.Sprintf("Admission check %s is not active: %s.", live.Name, strings.TrimSuffix(c.Message, "."))}, nil
	}
	s := CheckStanding{Reason: unknown, Message: fmt.Sprintf("Controller %s has not looked at admission check %s yet. If that lasts, it is not running.", live.Spec.ControllerName, live.Name)}
	if live.Spec.ControllerName != ProvisioningController {
		return s, nil
	}
	switch served, err := k.Serves(provisioningRequest); {
	case err != nil:
		return s, err
	case !served:
		s.Final = true
		s.Message = fmt.Sprintf("Nobody answers for admission check %s: the cluster has no ProvisioningRequests (%s), by which Kueue asks the autoscaler for machines. "+
			"GKE has them with its autoscaler; Kueue looks for them when it starts.", live.Name, provisioningRequest.Group)
	}
	return s, nil
}

// StandingOfChecks looks at the checks that a queue names: what keeps them from
// answering, one line each, and whether waiting changes nothing of that.
func StandingOfChecks(ctx context.Context, k *kube.Client, checks []Check) (why []string, final bool, err error) {
	for _, c := range checks {
		live := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}
		found, err := k.Fetch(ctx, live)
		if err != nil {
			return nil, false, err
		}
		if !found {
			continue // the queue's own reason says so
		}
		s, err := StandingOfCheck(ctx, k, live)
		if err != nil {
			return nil, false, err
		}
		if !s.Active {
			why = append(why, s.Message)
			final = final || s.Final
		}
	}
	return why, final, nil
}
