package training

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/similar"
)

// Reasons that are found around a run, where its own objects do not say why it
// does not get on. The kubelet's and the scheduler's own stand beside them.
const (
	ReasonNoQueue       = "QueueNotFound"
	ReasonNoPriority    = "PriorityClassNotFound"
	ReasonFailedCreate  = "FailedCreate" // of pods, or of the Jobs that make them
	ReasonImagePull     = "ImagePullBackOff"
	ReasonUnschedulable = "Unschedulable"
)

// hindrance is why a run does not get on. The zero value is that nothing is
// known to hold it back.
type hindrance struct{ reason, message string }

// hinder says what holds a run back that Kueue has not seen, or whose pods are
// not all there. What may not be read is not told.
func (r *Run) hinder(ctx context.Context, c *kube.Client, js *jobset.JobSet, jobs []batchv1.Job) {
	var found hindrance
	switch {
	case r.State == Pending && r.Reason == ReasonNotQueued:
		found = unseen(ctx, c, r)
	case r.State == Admitted || r.State == Starting || r.State == Restarting:
		if found = notMade(ctx, c, js, jobs); found.reason == "" {
			found = notStarted(ctx, c, r)
		}
	}
	switch {
	case found.reason == "":
		return
	case r.State == Restarting: // why it does stays the reason
		r.Message = strings.TrimPrefix(strings.TrimRight(r.Message, ". ")+". "+found.message, ". ")
	default:
		r.Reason, r.Message = found.reason, found.message
	}
	r.Hindrance = found.reason
}

// silentAfter is how long Kueue may take to see a job before that is strange.
const silentAfter = 30 * time.Second

// unseen is why Kueue has made no Workload for a job.
func unseen(ctx context.Context, c *kube.Client, r *Run) hindrance {
	var queueless *QueueNotFoundError
	var kueueless *NotInstalledError
	switch err := checkQueue(ctx, c, Spec{Namespace: r.Namespace, Queue: r.Queue}); {
	case errors.As(err, &queueless):
		hint := ""
		if near := similar.Among(r.Queue, queueless.Others); len(near) > 0 {
			hint = fmt.Sprintf(" (did you mean %s?)", near[0])
		}
		return hindrance{ReasonNoQueue, queueless.Error() + hint + ". The job waits until there is; or submit it again to another queue, with --replace"}
	case errors.As(err, &kueueless):
		return hindrance{ReasonNotQueued, fmt.Sprintf("cluster %s has no Kueue controller, which queue %s is a matter of: install it (tpu_job_controllers)", c.Name, r.Queue)}
	}
	if h := noPriority(ctx, c, r); h.reason != "" {
		return h
	}
	if e := newest(events(ctx, c, r.Namespace, client.MatchingFields{"involvedObject.uid": r.UID, "type": corev1.EventTypeWarning})); e != nil {
		return hindrance{cmp.Or(e.Reason, ReasonNotQueued), "no Workload was made for the job: " + oneLine(e.Message)}
	}
	if since := time.Since(r.Created); !r.Created.IsZero() && since > silentAfter {
		return hindrance{ReasonNotQueued, fmt.Sprintf("Kueue has not made a Workload for the job in %s: is it running, and does it look after namespace %s? See kubectl get pods -n kueue-system",
			since.Round(time.Second), r.Namespace)}
	}
	return hindrance{}
}

// noPriority says that the job's priority class is not there.
func noPriority(ctx context.Context, c *kube.Client, r *Run) hindrance {
	if r.Priority == "" || !apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: r.Priority}, &kueue.WorkloadPriorityClass{})) {
		return hindrance{}
	}
	names, _ := Priorities(ctx, c) // what cannot be read is not named
	has := "it has none (tpu_kueue_priority makes one)"
	if near := similar.Among(r.Priority, names); len(near) > 0 {
		has = fmt.Sprintf("did you mean %s? It has %s", near[0], strings.Join(names, ", "))
	} else if len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	return hindrance{ReasonNoPriority, fmt.Sprintf("cluster %s has no priority class %s; %s. The job waits until there is; or submit it again with another --priority and --replace", c.Name, r.Priority, has)}
}

// Priorities names the priority classes that jobs can have, the lowest first.
func Priorities(ctx context.Context, c *kube.Client) ([]string, error) {
	var all kueue.WorkloadPriorityClassList
	if err := list(ctx, c, &all); err != nil {
		return nil, err
	}
	slices.SortFunc(all.Items, func(a, b kueue.WorkloadPriorityClass) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Name, b.Name))
	})
	names := make([]string, len(all.Items))
	for i := range all.Items {
		names[i] = all.Items[i].Name
	}
	return names, nil
}

// passing are what JobSet's webhook says of pods that wait for the first one of
// their slice to have a node, as every job's do for a moment.
var passing = []string{"this is an expected, transient error", "follower pod node selector"}

// notMade is why pods, or the Jobs that make them, cannot be created.
func notMade(ctx context.Context, c *kube.Client, js *jobset.JobSet, jobs []batchv1.Job) hindrance {
	lack, wanted := map[types.UID]bool{}, 0
	for i := range js.Spec.ReplicatedJobs {
		wanted += int(js.Spec.ReplicatedJobs[i].Replicas)
	}
	for i := range jobs {
		st := &jobs[i].Status
		if st.Active+st.Succeeded < ptr.Deref(jobs[i].Spec.Parallelism, 1) {
			lack[jobs[i].UID] = true
		}
	}
	var all []corev1.Event
	if len(lack) > 0 {
		all = events(ctx, c, js.Namespace, client.MatchingFields{"reason": ReasonFailedCreate, "type": corev1.EventTypeWarning})
		all = slices.DeleteFunc(all, func(e corev1.Event) bool { return !lack[e.InvolvedObject.UID] })
	}
	if len(jobs) < wanted {
		own := events(ctx, c, js.Namespace, client.MatchingFields{"involvedObject.uid": string(js.UID), "type": corev1.EventTypeWarning})
		all = append(all, slices.DeleteFunc(own, func(e corev1.Event) bool { return !strings.HasSuffix(e.Reason, "CreationFailed") })...)
	}
	e := newest(slices.DeleteFunc(all, func(e corev1.Event) bool {
		return slices.ContainsFunc(passing, func(text string) bool { return strings.Contains(e.Message, text) })
	}))
	if e == nil {
		return hindrance{}
	}
	what := "pods of the job cannot be made"
	if e.InvolvedObject.Kind != "Job" {
		what = "the job's parts cannot be made"
	}
	message := oneLine(strings.TrimPrefix(e.Message, "Error creating: "))
	return hindrance{e.Reason, what + ": " + message + remedy(message)}
}

// remedy is what to do about a refusal.
func remedy(message string) string {
	switch {
	case strings.Contains(message, "error looking up service account"):
		return ". Make the service account, or submit the job again with another --service-account and --replace"
	case strings.Contains(message, "exceeded quota"):
		return ". A ResourceQuota of the namespace allows no more: the pods are made when it does"
	case strings.Contains(message, "denied the request"), strings.Contains(message, "failed calling webhook"):
		return ". A webhook of the cluster refuses them: mend what it says, or ask whoever runs it"
	}
	return ""
}

// beginning are the kubelet's reasons of a container that is about to start.
var beginning = []string{"", "ContainerCreating", "PodInitializing"}

// mostWaiting bounds how many pods that have not started are read: what is in
// the way of one is mostly in the way of all.
const mostWaiting = 100

// notStarted is why pods that are there do not start. A container that cannot
// goes before a pod that finds no node, which may be on its way.
func notStarted(ctx context.Context, c *kube.Client, r *Run) hindrance {
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{jobset.JobSetNameKey: r.Name},
		client.MatchingFields{"status.phase": string(corev1.PodPending)}, client.Limit(mostWaiting))
	if err != nil {
		return hindrance{}
	}
	var first hindrance
	hosts := 0
	for i := range pods.Items {
		p := &pods.Items[i]
		h := waiting(p)
		switch {
		case h.reason == "" || p.DeletionTimestamp != nil:
		case first.reason == "" || first.reason == ReasonUnschedulable && h.reason != ReasonUnschedulable:
			first, hosts = hindrance{h.reason, hostOf(p) + ": " + h.message}, 1
		case first.reason == h.reason:
			hosts++
		}
	}
	switch {
	case hosts == 2:
		first.message += " (so is 1 more)"
	case hosts > 2:
		first.message += fmt.Sprintf(" (so are %d more)", hosts-1)
	}
	return first
}

// hostOf is a pod as logs call it: SLICE/HOST, or JOB/POD.
func hostOf(p *corev1.Pod) string {
	job, host := p.Labels[jobset.ReplicatedJobNameKey], number(p.Labels[batchv1.JobCompletionIndexAnnotation])
	if job == SliceJob {
		return fmt.Sprintf("host %d/%d", number(p.Labels[jobset.JobIndexKey]), host)
	}
	return fmt.Sprintf("%s/%d", job, host)
}

// waiting is what a pod waits for that does not come by itself.
func waiting(p *corev1.Pod) hindrance {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		if w == nil || slices.Contains(beginning, w.Reason) {
			continue
		}
		message := fmt.Sprintf("container %s does not start", s.Name)
		if w.Message != "" {
			message += ": " + oneLine(w.Message)
		}
		switch w.Reason {
		case "ErrImagePull", ReasonImagePull, "ErrImageNeverPull", "InvalidImageName":
			// The kubelet goes to and fro between the first two.
			return hindrance{ReasonImagePull, fmt.Sprintf("%s. Push image %s or let the nodes pull it, or submit the job again with another --image and --replace", message, s.Image)}
		case "CreateContainerConfigError":
			return hindrance{w.Reason, message + ". Make what it lacks in namespace " + p.Namespace + ": the container then starts by itself"}
		}
		return hindrance{w.Reason, message}
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && cond.Reason == corev1.PodReasonUnschedulable {
			return hindrance{ReasonUnschedulable, "no node takes its pod: " + oneLine(cond.Message)}
		}
	}
	return hindrance{}
}

// oneLine is what a controller said, as part of a sentence.
func oneLine(message string) string {
	return strings.TrimRight(strings.Join(strings.Fields(message), " "), ".")
}

// events are those that fields select; none when they cannot be read.
func events(ctx context.Context, c *kube.Client, namespace string, fields client.MatchingFields) []corev1.Event {
	var found corev1.EventList
	if err := c.List(ctx, &found, client.InNamespace(namespace), fields, client.Limit(500)); err != nil {
		return nil
	}
	return found.Items
}

// newest is the event that happened last, or nil.
func newest(all []corev1.Event) *corev1.Event {
	if len(all) == 0 {
		return nil
	}
	last := slices.MaxFunc(all, func(a, b corev1.Event) int { return seen(a).Compare(seen(b)) })
	return &last
}

// seen is when an event happened last, in whichever of the two ways events are
// written.
func seen(e corev1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if t.After(at) {
			at = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}
