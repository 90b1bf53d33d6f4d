package training

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Read reads the status of a run off its JobSet and Workload. wl is nil when
// Kueue has made none (yet), or the job is not queued.
func Read(js *jobset.JobSet, wl *kueue.Workload) Run {
	r := Run{
		Namespace:       js.Namespace,
		Name:            js.Name,
		UID:             string(js.UID),
		Owner:           js.Labels[LabelOwner],
		Experiment:      js.Labels[LabelExperiment],
		RunID:           cmp.Or(js.Labels[LabelRunID], js.Name),
		Queue:           js.Labels[queue.LabelQueueName],
		Priority:        js.Labels[queue.LabelPriorityClass],
		Created:         js.CreationTimestamp.Time,
		Restarts:        int(js.Status.Restarts),
		CountedRestarts: int(js.Status.RestartsCountTowardsMax),
		Deleting:        js.DeletionTimestamp != nil,
		Labels:          js.Labels,
		Annotations:     js.Annotations,
	}
	if js.Spec.FailurePolicy != nil {
		r.MaxRestarts = int(js.Spec.FailurePolicy.MaxRestarts)
	}
	if t := js.Spec.TTLSecondsAfterFinished; t != nil {
		r.TTL = ptr.To(time.Duration(*t) * time.Second)
	}
	r.shape(js)
	if wl != nil {
		r.workload(wl)
	}
	r.Conditions = append(r.Conditions, conditions("JobSet", js.Status.Conditions)...)
	r.State, r.Reason, r.Message = state(js, wl)
	r.started(wl)
	if at := js.Annotations[AnnotationCancelled]; at != "" && r.State == Suspended && r.Reason == ReasonUserSuspended {
		r.Reason, r.Message = ReasonCancelled, "the job was cancelled at "+at
	}
	r.count(js)
	return r
}

// main is the replicated job that trains: ours by name, else the first that
// asks for chips, else the first.
func main(js *jobset.JobSet) *jobset.ReplicatedJob {
	for i := range js.Spec.ReplicatedJobs {
		if js.Spec.ReplicatedJobs[i].Name == SliceJob {
			return &js.Spec.ReplicatedJobs[i]
		}
	}
	for i := range js.Spec.ReplicatedJobs {
		if js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.NodeSelector[accelerator.LabelAccelerator] != "" {
			return &js.Spec.ReplicatedJobs[i]
		}
	}
	if len(js.Spec.ReplicatedJobs) > 0 {
		return &js.Spec.ReplicatedJobs[0]
	}
	return nil
}

// program is the replicated job that the user's program runs in, and that
// decides how the run ends: the head of a Pathways job, else the main one.
func program(js *jobset.JobSet) *jobset.ReplicatedJob {
	if h := head(js); h != nil {
		return h
	}
	return main(js)
}

// head is the head of a Pathways job, or nil.
func head(js *jobset.JobSet) *jobset.ReplicatedJob {
	p := js.Spec.SuccessPolicy
	if p == nil || !slices.Equal(p.TargetReplicatedJobs, []string{HeadJob}) {
		return nil
	}
	for i := range js.Spec.ReplicatedJobs {
		if js.Spec.ReplicatedJobs[i].Name == HeadJob {
			return &js.Spec.ReplicatedJobs[i]
		}
	}
	return nil
}

// replaceable tells whether hosts of a replicated job are replaced while the
// run goes on: its Job does not fail by their disruption.
func replaceable(rj *jobset.ReplicatedJob) bool {
	p := rj.Template.Spec.PodFailurePolicy
	return p != nil && slices.ContainsFunc(p.Rules, func(r batchv1.PodFailurePolicyRule) bool {
		return r.Action == batchv1.PodFailurePolicyActionIgnore && len(r.OnPodConditions) > 0
	})
}

// shape finds slices, hosts and accelerator. JobSets that others made (by
// kubectl, say) are read too: what they ask for in their node selector is the
// truth, our annotation only a name.
func (r *Run) shape(js *jobset.JobSet) {
	rj := main(js)
	if rj == nil {
		return
	}
	for i := range js.Spec.ReplicatedJobs {
		part := &js.Spec.ReplicatedJobs[i]
		r.Parts = append(r.Parts, Part{Name: part.Name, Pods: int(ptr.Deref(part.Template.Spec.Parallelism, 1)), Main: part == rj})
	}
	r.Slices = int(rj.Replicas)
	r.HostsPerSlice = int(ptr.Deref(rj.Template.Spec.Parallelism, 1))
	if head(js) != nil {
		r.ProxyAddress = ProxyAddress(js.Name)
	}
	if s, ok := sliceOf(js.Annotations[AnnotationAccelerator], rj); ok {
		r.Slice, r.Accelerator = s, s.Name
	}
}

// sliceOf finds the catalogue's slice for a replicated job: what its node
// selector says is the truth, name only a hint.
func sliceOf(name string, rj *jobset.ReplicatedJob) (accelerator.Slice, bool) {
	selector, topology := rj.Template.Spec.Template.Spec.NodeSelector, topologyOf(&rj.Template.Spec.Template)
	if name != "" {
		s, err := accelerator.Resolve(name)
		if err == nil && s.AcceleratorLabel == selector[accelerator.LabelAccelerator] && s.Topology.String() == topology {
			return s, true
		}
	}
	if topology != selector[accelerator.LabelTopology] {
		selector = maps.Clone(selector)
		selector[accelerator.LabelTopology] = topology
	}
	return queue.SliceOf(selector)
}

func (r *Run) workload(wl *kueue.Workload) {
	r.Conditions = conditions("Workload", wl.Status.Conditions)
	if a := wl.Status.Admission; a != nil {
		r.ClusterQueue = string(a.ClusterQueue)
		for _, p := range a.PodSetAssignments {
			if f := p.Flavors[accelerator.ResourceName]; f != "" {
				r.Flavor = string(f)
				break
			}
		}
	}
	if c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted); c != nil && c.Status == metav1.ConditionTrue {
		r.AdmittedAt = c.LastTransitionTime.Time
	}
}

// started is since when the pods run: when all were ready, as Kueue tells. Of
// one whose Kueue does not look after that, or whose hosts are being replaced,
// the admission is as near as can be told, once the pods have run.
func (r *Run) started(wl *kueue.Workload) {
	if wl == nil {
		return
	}
	ready := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadPodsReady)
	switch {
	case isTrue(ready):
		r.Started = ready.LastTransitionTime.Time
	case ready != nil && ready.Reason != kueue.WorkloadWaitForRecovery && r.State != Succeeded: // never yet
	case r.State == Running || r.State == Restarting || r.State.Finished():
		r.Started = r.AdmittedAt
	}
}

// count fills in the hosts, in whole slices: a JobSet's status counts Jobs.
// Get refines them by the Jobs' own counts.
func (r *Run) count(js *jobset.JobSet) {
	r.HostsWanted = r.Slices * r.HostsPerSlice
	rj := main(js)
	if rj == nil {
		return
	}
	for _, st := range js.Status.ReplicatedJobsStatus {
		if st.Name == rj.Name {
			r.HostsReady = int(st.Ready) * r.HostsPerSlice
			r.HostsDone = int(st.Succeeded) * r.HostsPerSlice
		}
	}
	for _, name := range []jobset.JobSetConditionType{jobset.JobSetCompleted, jobset.JobSetFailed} {
		if c := meta.FindStatusCondition(js.Status.Conditions, string(name)); c != nil && c.Status == metav1.ConditionTrue {
			r.Finished = c.LastTransitionTime.Time
		}
	}
	if r.Finished.IsZero() && r.State == Failed { // timed out: the Workload alone knows
		for _, c := range r.Conditions {
			if c.Type == kueue.WorkloadEvicted {
				r.Finished = c.Since
			}
		}
	}
	switch r.State {
	case Pending, Suspended:
		r.HostsReady = 0
	case Succeeded:
		r.HostsReady, r.HostsDone = 0, r.HostsWanted
	case Failed:
		r.HostsReady = 0
	}
}

func conditions(of string, cs []metav1.Condition) []Condition {
	var out []Condition
	for _, c := range cs {
		out = append(out, Condition{
			Of: of, Type: c.Type, Status: c.Status == metav1.ConditionTrue,
			Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time,
		})
	}
	slices.SortStableFunc(out, func(a, b Condition) int { return a.Since.Compare(b.Since) })
	return out
}

// state is the one place that says where a run stands. The JobSet's end wins
// over everything; then what Kueue decided; then how far the pods are.
func state(js *jobset.JobSet, wl *kueue.Workload) (State, string, string) {
	if c := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetCompleted)); isTrue(c) {
		return Succeeded, "", c.Message
	}
	if c := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetFailed)); isTrue(c) {
		return Failed, failReason(js, c), c.Message
	}
	if s, reason, message := kueueState(js, wl); s != "" {
		return s, reason, message
	}
	return podState(js, wl)
}

// kueueState is the state of a run that Kueue holds back, or "".
func kueueState(js *jobset.JobSet, wl *kueue.Workload) (State, string, string) {
	if wl == nil {
		suspended := ptr.Deref(js.Spec.Suspend, false)
		switch {
		case suspended && js.Labels[queue.LabelQueueName] != "":
			return Pending, ReasonNotQueued, "Kueue has not made a Workload for the job yet"
		case suspended:
			return Suspended, ReasonUserSuspended, "spec.suspend is true and the job is not queued"
		}
		return "", "", ""
	}
	evicted := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	if !ptr.Deref(wl.Spec.Active, true) {
		if isTrue(evicted) {
			// DeactivatedDueTo<reason>, or plain Deactivated by a user.
			reason := strings.TrimPrefix(evicted.Reason, "DeactivatedDueTo")
			switch reason {
			case kueue.WorkloadMaximumExecutionTimeExceeded:
				return Failed, ReasonTimedOut, evicted.Message
			case kueue.WorkloadDeactivated:
			default:
				return Suspended, reason, evicted.Message
			}
		}
		return Suspended, ReasonUserSuspended, "the job was suspended; resume it to put it back in its queue"
	}
	if admitted := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted); isTrue(admitted) {
		return "", "", ""
	}
	reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if isTrue(evicted) && strings.HasPrefix(evicted.Reason, kueue.WorkloadDeactivated) {
		// It is active again: that it was not holds it back no longer, though
		// Kueue leaves the condition until it has quota.
		if reserved != nil && reserved.Message == evicted.Message {
			reserved = nil // said when it was deactivated
		}
		evicted = nil
	}
	switch {
	case isTrue(reserved):
		message := "quota is reserved; admission checks are not done"
		for _, check := range wl.Status.AdmissionChecks {
			if check.State != kueue.CheckStateReady {
				message = "waits for admission check " + string(check.Name) + ": " + check.Message
			}
		}
		return Pending, kueue.WorkloadAdmittedReasonUnsatisfiedAdmissionChecks, message
	case isTrue(evicted) && (reserved == nil || !reserved.LastTransitionTime.After(evicted.LastTransitionTime.Time)):
		return Pending, evicted.Reason, evicted.Message
	case reserved != nil:
		return Pending, reserved.Reason, reserved.Message
	}
	return Pending, kueue.WorkloadPending, "waits for Kueue to consider it"
}

// podState is how far an admitted run's pods are.
func podState(js *jobset.JobSet, wl *kueue.Workload) (State, string, string) {
	// Further jobs come and go beside the main one, which says where the run
	// stands; that one of them is active says that the run has begun.
	var want, ready, active int32
	rj, pathways := main(js), head(js)
	if rj != nil {
		want = rj.Replicas
	}
	headReady := pathways == nil
	for _, st := range js.Status.ReplicatedJobsStatus {
		switch {
		case rj != nil && st.Name == rj.Name:
			ready = st.Ready + st.Succeeded
		case pathways != nil && st.Name == HeadJob:
			headReady = st.Ready+st.Succeeded > 0
		}
		active += st.Active + st.Ready
	}
	restarting := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetRestarting))
	why := func() (string, string) {
		if restarting == nil || restarting.Reason == "" {
			return "", ""
		}
		if restarting.Reason == "FailurePolicy_"+ruleDisruption {
			return ReasonDisruption, restarting.Message
		}
		return ReasonCrash, restarting.Message
	}
	switch {
	case isTrue(restarting):
		reason, message := why()
		return Restarting, reason, message
	case want > 0 && ready >= want && headReady:
		return Running, "", ""
	case lostHosts(wl) && pathways != nil && headReady && replaceable(rj):
		return Running, kueue.WorkloadWaitForRecovery, fmt.Sprintf("%d of %d slices are ready; the others are being replaced while the program goes on", ready, want)
	case lostHosts(wl):
		return Restarting, kueue.WorkloadWaitForRecovery, "a host failed or was lost; its pod is being replaced"
	case (active > 0 || ready > 0) && !headReady:
		return Starting, "", "the head is not ready yet"
	case active > 0 || ready > 0:
		return Starting, "", "not every host is ready yet"
	}
	return Admitted, "", "quota is reserved; pods are about to be created"
}

// lostHosts tells whether the pods were all ready once and are not any more.
func lostHosts(wl *kueue.Workload) bool {
	if wl == nil {
		return false
	}
	c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadPodsReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == kueue.WorkloadWaitForRecovery
}

// failReason puts JobSet's reason in words that name the setting behind it.
func failReason(js *jobset.JobSet, c *metav1.Condition) string {
	switch c.Reason {
	case "FailJobSetFailurePolicyAction":
		for i := range js.Spec.ReplicatedJobs {
			name := js.Spec.ReplicatedJobs[i].Name
			if name != SliceJob && name != program(js).Name && strings.Contains(c.Message, "(first failed job: "+js.Name+"-"+name+"-0)") {
				return ReasonFurtherJob
			}
		}
		return ReasonFatalExitCode
	case "ReachedMaxRestarts", "FailedJobs":
		return ReasonTooManyRestarts
	}
	return c.Reason
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }
