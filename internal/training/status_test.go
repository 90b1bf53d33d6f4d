package training

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
)

var clock = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(clock.Add(time.Duration(seconds) * time.Second))
}

// wrapper builds a JobSet and its Workload as the controllers leave them.
type wrapper struct {
	js *jobset.JobSet
	wl *kueue.Workload
}

// makeRun is a queued job of 2 slices x 4 hosts, suspended by Kueue.
func makeRun(t *testing.T) *wrapper {
	js := spec(t).JobSet()
	js.UID, js.CreationTimestamp, js.Spec.Suspend = "uid", at(0), ptr.To(true)
	return &wrapper{js: js}
}

func (w *wrapper) workload() *wrapper {
	if w.wl == nil {
		w.wl = &kueue.Workload{}
	}
	return w
}

func (w *wrapper) wlCond(typ string, status bool, reason, message string, sec int) *wrapper {
	w.workload()
	w.wl.Status.Conditions = append(w.wl.Status.Conditions, cond(typ, status, reason, message, sec))
	return w
}

func (w *wrapper) jsCond(typ jobset.JobSetConditionType, status bool, reason, message string, sec int) *wrapper {
	w.js.Status.Conditions = append(w.js.Status.Conditions, cond(string(typ), status, reason, message, sec))
	return w
}

func (w *wrapper) admitted() *wrapper {
	w.wlCond(kueue.WorkloadQuotaReserved, true, "QuotaReserved", "", 5).wlCond(kueue.WorkloadAdmitted, true, "Admitted", "", 6)
	w.js.Spec.Suspend = ptr.To(false)
	w.wl.Status.Admission = &kueue.Admission{ClusterQueue: "research-cq", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: SliceJob, Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{accelerator.ResourceName: "v5e-4x4"},
	}}}
	return w
}

func (w *wrapper) jobs(ready, active, succeeded int32) *wrapper {
	w.js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: SliceJob, Ready: ready, Active: active, Succeeded: succeeded}}
	return w
}

func (w *wrapper) inactive() *wrapper { w.workload().wl.Spec.Active = ptr.To(false); return w }

func (w *wrapper) restarts(all, counted int32) *wrapper {
	w.js.Status.Restarts, w.js.Status.RestartsCountTowardsMax = all, counted
	return w
}

func cond(typ string, status bool, reason, message string, sec int) metav1.Condition {
	s := metav1.ConditionFalse
	if status {
		s = metav1.ConditionTrue
	}
	return metav1.Condition{Type: typ, Status: s, Reason: reason, Message: message, LastTransitionTime: at(sec)}
}

func TestState(t *testing.T) {
	type want struct {
		State       State
		Reason      string
		Ready, Done int
	}
	for _, c := range []struct {
		name string
		run  *wrapper
		want want
	}{
		{"just created", makeRun(t), want{Pending, ReasonNotQueued, 0, 0}},
		{"workload not considered yet", makeRun(t).workload(), want{Pending, kueue.WorkloadPending, 0, 0}},
		{"no quota", makeRun(t).wlCond(kueue.WorkloadQuotaReserved, false, kueue.WorkloadQuotaReservedReasonWaitingForQuota, "need 16 more", 3),
			want{Pending, kueue.WorkloadQuotaReservedReasonWaitingForQuota, 0, 0}},
		{"waits for an admission check", makeRun(t).wlCond(kueue.WorkloadQuotaReserved, true, "QuotaReserved", "", 3),
			want{Pending, kueue.WorkloadAdmittedReasonUnsatisfiedAdmissionChecks, 0, 0}},
		{"admitted", makeRun(t).admitted(), want{Admitted, "", 0, 0}},
		{"pods appear", makeRun(t).admitted().jobs(0, 1, 0), want{Starting, "", 0, 0}},
		{"one slice ready", makeRun(t).admitted().jobs(1, 2, 0), want{Starting, "", 4, 0}},
		{"running", makeRun(t).admitted().jobs(2, 2, 0), want{Running, "", 8, 0}},
		{"one slice done", makeRun(t).admitted().jobs(1, 1, 1), want{Running, "", 4, 4}},
		{"a crash restarts it", makeRun(t).admitted().jobs(0, 1, 0).restarts(1, 1).
			jsCond(jobset.JobSetRestarting, true, "DefaultFailurePolicy", "applying RestartJobSet", 9), want{Restarting, ReasonCrash, 0, 0}},
		{"a preemption restarts it", makeRun(t).admitted().jobs(0, 1, 0).restarts(1, 0).
			jsCond(jobset.JobSetRestarting, true, "FailurePolicy_disruption", "applying", 9), want{Restarting, ReasonDisruption, 0, 0}},
		{"running again", makeRun(t).admitted().jobs(2, 2, 0).restarts(1, 0).
			jsCond(jobset.JobSetRestarting, false, "JobsReady", "all jobs are ready", 12), want{Running, "", 8, 0}},
		{"a host is replaced", makeRun(t).admitted().jobs(1, 2, 0).
			wlCond(kueue.WorkloadPodsReady, false, kueue.WorkloadWaitForRecovery, "", 12), want{Restarting, kueue.WorkloadWaitForRecovery, 4, 0}},
		{"preempted by another job", makeRun(t).jobs(0, 0, 0).wlCond(kueue.WorkloadEvicted, true, kueue.WorkloadEvictedByPreemption, "preempted", 9).
			wlCond(kueue.WorkloadQuotaReserved, false, kueue.WorkloadPending, "preempted", 9), want{Pending, kueue.WorkloadEvictedByPreemption, 0, 0}},
		{"suspended by its user", makeRun(t).inactive().wlCond(kueue.WorkloadEvicted, true, kueue.WorkloadDeactivated, "The workload is deactivated", 9),
			want{Suspended, ReasonUserSuspended, 0, 0}},
		{"suspended before it was admitted", makeRun(t).inactive(), want{Suspended, ReasonUserSuspended, 0, 0}},
		{"resumed, and waits for quota", makeRun(t).wlCond(kueue.WorkloadQuotaReserved, false, kueue.WorkloadQuotaReservedReasonWaitingForQuota, "need 16 more", 3).
			wlCond(kueue.WorkloadEvicted, true, kueue.WorkloadDeactivated, "The workload is deactivated", 9).
			wlCond(kueue.WorkloadRequeued, true, kueue.WorkloadReactivated, "The workload was reactivated", 12),
			want{Pending, kueue.WorkloadQuotaReservedReasonWaitingForQuota, 0, 0}},
		{"resumed a moment ago", makeRun(t).wlCond(kueue.WorkloadQuotaReserved, false, kueue.WorkloadPending, "The workload is deactivated", 9).
			wlCond(kueue.WorkloadEvicted, true, kueue.WorkloadDeactivated, "The workload is deactivated", 9),
			want{Pending, kueue.WorkloadPending, 0, 0}},
		{"resumed after Kueue had given it up", makeRun(t).wlCond(kueue.WorkloadQuotaReserved, false, kueue.WorkloadQuotaReservedReasonWaitingForQuota, "need 16 more", 3).
			wlCond(kueue.WorkloadEvicted, true, "DeactivatedDueToRequeuingLimitExceeded", "limit", 9),
			want{Pending, kueue.WorkloadQuotaReservedReasonWaitingForQuota, 0, 0}},
		{"given up by Kueue", makeRun(t).inactive().wlCond(kueue.WorkloadEvicted, true, "DeactivatedDueToRequeuingLimitExceeded", "limit", 9),
			want{Suspended, kueue.WorkloadRequeuingLimitExceeded, 0, 0}},
		{"out of time", makeRun(t).inactive().wlCond(kueue.WorkloadEvicted, true, "DeactivatedDueToMaximumExecutionTimeExceeded", "too long", 9),
			want{Failed, ReasonTimedOut, 0, 0}},
		{"succeeded", makeRun(t).admitted().jobs(0, 0, 2).jsCond(jobset.JobSetCompleted, true, "AllJobsCompleted", "jobset completed", 20), want{Succeeded, "", 0, 8}},
		{"succeeded and deactivated later", makeRun(t).inactive().jobs(0, 0, 2).jsCond(jobset.JobSetCompleted, true, "AllJobsCompleted", "done", 20), want{Succeeded, "", 0, 8}},
		{"fatal exit code", makeRun(t).admitted().jobs(0, 1, 1).jsCond(jobset.JobSetFailed, true, "FailJobSetFailurePolicyAction", "first failed job", 20),
			want{Failed, ReasonFatalExitCode, 0, 4}},
		{"too many crashes", makeRun(t).admitted().restarts(3, 3).jsCond(jobset.JobSetFailed, true, "ReachedMaxRestarts", "max", 20), want{Failed, ReasonTooManyRestarts, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read(c.run.js, c.run.wl)
			got := want{r.State, r.Reason, r.HostsReady, r.HostsDone}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.HostsWanted != 8 || r.Accelerator != "v5litepod-16" || r.Chips() != 32 {
				t.Errorf("shape: %d hosts of %s, %d chips", r.HostsWanted, r.Accelerator, r.Chips())
			}
			if r.Message == "" && r.State != Running {
				t.Error("no message")
			}
		})
	}
}

func TestReadTimesAndNames(t *testing.T) {
	w := makeRun(t).admitted().jobs(0, 0, 2).
		wlCond(kueue.WorkloadPodsReady, true, "Started", "", 8).
		jsCond(jobset.JobSetCompleted, true, "AllJobsCompleted", "done", 20)
	r := Read(w.js, w.wl)
	got := []any{r.Created, r.AdmittedAt, r.Started, r.Finished, r.ClusterQueue, r.Flavor, r.Queue, r.UID}
	want := []any{at(0).Time, at(6).Time, at(8).Time, at(20).Time, "research-cq", "v5e-4x4", "research", "uid"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A job that is not queued has no Workload, and starts by itself.
func TestUnqueued(t *testing.T) {
	w := makeRun(t).jobs(2, 2, 0)
	delete(w.js.Labels, "kueue.x-k8s.io/queue-name")
	w.js.Spec.Suspend = nil
	if r := Read(w.js, nil); r.State != Running {
		t.Errorf("got %s", r.State)
	}
	w.js.Spec.Suspend = ptr.To(true)
	if r := Read(w.js, nil); r.State != Suspended {
		t.Errorf("suspended: got %s", r.State)
	}
}

// JobSets of others, by kubectl or other tools, are shown too.
func TestForeignJobSet(t *testing.T) {
	w := makeRun(t)
	w.js.Annotations, w.js.Labels = nil, nil
	w.js.Spec.ReplicatedJobs[0].Name = "workers"
	if r := Read(w.js, nil); r.Accelerator != "v5litepod-16" || r.Slices != 2 || r.RunID != "train" {
		t.Errorf("got %+v", r)
	}
	w.js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = nil
	if r := Read(w.js, nil); r.Accelerator != "" || r.HostsWanted != 8 {
		t.Errorf("no selector: got %+v", r)
	}
	w.js.Spec.ReplicatedJobs = nil
	if r := Read(w.js, nil); r.HostsWanted != 0 {
		t.Errorf("empty: got %+v", r)
	}
}

func childJob(index string, ready, succeeded, failed int32, conds ...batchv1.JobCondition) batchv1.Job {
	return batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{jobset.JobIndexKey: index, jobset.ReplicatedJobNameKey: SliceJob}},
		Status:     batchv1.JobStatus{Ready: &ready, Active: 4 - succeeded, Succeeded: succeeded, Failed: failed, Conditions: conds},
	}
}

// The child Jobs say more than the JobSet: hosts one by one, and what failed.
func TestRefine(t *testing.T) {
	t.Run("starting", func(t *testing.T) {
		w := makeRun(t).admitted().jobs(1, 2, 0)
		r := Read(w.js, w.wl)
		r.refine(w.js, []batchv1.Job{childJob("0", 4, 0, 0), childJob("1", 3, 0, 1)}, map[int]string{0: "v5e-1", 1: "v5e-0"})
		want := []SliceRun{
			{Index: 0, State: Running, NodePool: "v5e-1", HostsWanted: 4, HostsReady: 4},
			{Index: 1, State: Starting, NodePool: "v5e-0", HostsWanted: 4, HostsReady: 3, HostsFailed: 1},
		}
		if diff := cmp.Diff(want, r.SliceRuns); diff != "" || r.HostsReady != 7 {
			t.Errorf("%d hosts ready, want 7; (-want +got):\n%s", r.HostsReady, diff)
		}
	})
	t.Run("failed", func(t *testing.T) {
		w := makeRun(t).admitted().jsCond(jobset.JobSetFailed, true, "FailJobSetFailurePolicyAction", "first failed job: train-slice-1", 20)
		r := Read(w.js, w.wl)
		r.refine(w.js, []batchv1.Job{childJob("1", 0, 0, 1, batchv1.JobCondition{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "PodFailurePolicy", Message: "Container train for pod x failed with exit code 127",
		})}, nil)
		if want := "first failed job: train-slice-1: Container train for pod x failed with exit code 127"; r.Message != want {
			t.Errorf("got %q, want %q", r.Message, want)
		}
		if r.SliceRuns[1].State != Failed || r.SliceRuns[0].State != Failed {
			t.Errorf("slices: %+v", r.SliceRuns)
		}
	})
}

func TestLevels(t *testing.T) {
	reached := map[Level][]State{
		LevelCreated:   States,
		LevelAdmitted:  {Admitted, Starting, Running, Restarting, Succeeded, Failed, Gone},
		LevelRunning:   {Running, Succeeded, Failed, Gone},
		LevelCompleted: {Succeeded, Failed, Gone},
	}
	for level, want := range reached {
		var got []State
		for _, s := range States {
			if level.Reached(s) {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", level, diff)
		}
	}
}
