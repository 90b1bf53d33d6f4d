package training

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

func localQueue(namespace, name string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func called[T client.Object](obj T, namespace, name string) T {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// fielded is a fake cluster that selects by the fields an API server selects by.
func fielded(objs ...client.Object) *kube.Client {
	event := func(field func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{field(o.(*corev1.Event))} }
	}
	return &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objs...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", event(func(e *corev1.Event) string { return string(e.InvolvedObject.UID) })).
		WithIndex(&corev1.Event{}, "type", event(func(e *corev1.Event) string { return e.Type })).
		WithIndex(&corev1.Event{}, "reason", event(func(e *corev1.Event) string { return e.Reason })).
		WithIndex(&corev1.Pod{}, "status.phase", func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }).
		Build()}
}

func warning(name, kind, uid, reason, message string, second int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "research", Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: kind, UID: types.UID(uid)},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: at(second),
	}
}

// A job that Kueue makes no Workload for says what is missing, and what to do.
func TestWhyKueueHasNotSeenAJob(t *testing.T) {
	priority := func(name string, value int32) *kueue.WorkloadPriorityClass {
		return &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}
	there := localQueue("research", "research")
	for name, c := range map[string]struct {
		priority string
		objects  []client.Object
		reason   string
		message  string // a part
	}{
		"nothing is wrong":      {"", []client.Object{there}, ReasonNotQueued, "Kueue has not made a Workload for the job"},
		"no such queue":         {"", []client.Object{ns, localQueue("research", "reserch")}, ReasonNoQueue, "namespace research of cluster c has no queue research: it has reserch (did you mean reserch?)"},
		"no queue at all":       {"", []client.Object{ns}, ReasonNoQueue, "list the namespace in a tpu_kueue_queue"},
		"no such priority":      {"hihg", []client.Object{there, priority("high", 750), priority("low", 250)}, ReasonNoPriority, "cluster c has no priority class hihg; did you mean high? It has low, high"},
		"an odd priority":       {"zzz", []client.Object{there, priority("high", 750), priority("low", 250)}, ReasonNoPriority, "no priority class zzz; it has low, high"},
		"no priorities at all":  {"high", []client.Object{there}, ReasonNoPriority, "it has none"},
		"the priority is there": {"high", []client.Object{there, priority("high", 750)}, ReasonNotQueued, ""},
		"Kueue refuses it": {"", []client.Object{there, warning("old", "JobSet", "uid", "ErrWorkloadCompose", "older", 1), warning("new", "JobSet", "uid", "ErrWorkloadCompose", "too many podsets.", 2),
			warning("other", "JobSet", "other", "Other", "of another job", 3)}, "ErrWorkloadCompose", "no Workload was made for the job: too many podsets"},
	} {
		t.Run(name, func(t *testing.T) {
			run := makeRun(t)
			if c.priority != "" {
				run.js.Labels[queue.LabelPriorityClass] = c.priority
			}
			run.js.CreationTimestamp = metav1.Now()
			r, err := Get(t.Context(), fielded(append(c.objects, run.js)...), run.js.Namespace, run.js.Name)
			if err != nil || r.State != Pending || r.Reason != c.reason || !strings.Contains(r.Message, c.message) {
				t.Errorf("got %s (%s: %s), %v; want %s: %s", r.State, r.Reason, r.Message, err, c.reason, c.message)
			}
		})
	}
	t.Run("for a long time", func(t *testing.T) {
		run := makeRun(t)
		run.js.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
		r, err := Get(t.Context(), fielded(there, run.js), run.js.Namespace, run.js.Name)
		if want := "is it running, and does it look after namespace research?"; err != nil || !strings.Contains(r.Message, want) {
			t.Errorf("got %s, %v; want %q", r.Message, err, want)
		}
	})
}

// What can never be admitted because it names what is not there is not waited
// for without end.
func TestWaitForAQueueThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := makeRun(t)
		began := time.Now()
		_, err := Wait(t.Context(), fielded(run.js, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}),
			types.NamespacedName{Namespace: run.js.Namespace, Name: run.js.Name}, LevelCompleted, nil)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), ReasonNoQueue) || took > time.Minute {
			t.Errorf("after %s: %v", took, err)
		}
		synctest.Wait()
	})
}

// stuckPod is a pod that has not started.
func stuckPod(host, reason, message string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "train-slice-0-" + host, Labels: map[string]string{
			jobset.JobSetNameKey: "train", jobset.ReplicatedJobNameKey: SliceJob, jobset.JobIndexKey: "0", batchv1.JobCompletionIndexAnnotation: host}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if reason == corev1.PodReasonUnschedulable {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
		return p
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, Image: "train:9", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

// A job that holds quota and has no pods, or pods that do not start, says why.
func TestWhyPodsDoNotStart(t *testing.T) {
	child := func(index string, active int32) *batchv1.Job {
		j := childJob(index, 0, 0, 0)
		j.Namespace, j.Name, j.UID = "research", "train-slice-"+index, types.UID("job-"+index)
		j.Labels[jobset.JobSetNameKey] = "train"
		j.Spec.Parallelism, j.Status.Active = ptr.To(int32(4)), active
		return &j
	}
	const refused = `Error creating: pods "train-slice-0-0-" is forbidden: error looking up service account research/nope: serviceaccount "nope" not found`
	bare := []client.Object{child("0", 0), child("1", 0)}
	full := []client.Object{child("0", 4), child("1", 4)}
	for name, c := range map[string]struct {
		objects []client.Object
		reason  string
		message string // a part
	}{
		"on its way":         {full, "", ""},
		"no service account": {append(bare, warning("a", "Job", "job-1", ReasonFailedCreate, refused, 9), warning("b", "Job", "job-0", ReasonFailedCreate, "older", 8)), ReasonFailedCreate, `pods of the job cannot be made: pods "train-slice-0-0-" is forbidden: error looking up service account research/nope: serviceaccount "nope" not found. Make the service account`},
		"a full quota":       {append(bare, warning("a", "Job", "job-1", ReasonFailedCreate, `pods "x" is forbidden: exceeded quota: few, requested: pods=1`, 9)), ReasonFailedCreate, "A ResourceQuota of the namespace allows no more"},
		"a webhook":          {append(bare, warning("a", "Job", "job-1", ReasonFailedCreate, `admission webhook "policy" denied the request: no`, 9)), ReasonFailedCreate, "A webhook of the cluster refuses them"},
		"pods that wait for the first": {append(bare, warning("a", "Job", "job-1", ReasonFailedCreate,
			`admission webhook "x" denied the request: leader pod not yet scheduled, not creating follower pod. this is an expected, transient error`, 9)), "", ""},
		"pods that wait for its node": {append(bare, warning("a", "Job", "job-1", ReasonFailedCreate,
			`admission webhook "vpod.kb.io" denied the request: follower pod node selector for topology domain not found. missing selector: cloud.google.com/gke-nodepool`, 9)), "", ""},
		"made since":           {append(full, warning("a", "Job", "job-1", ReasonFailedCreate, refused, 9)), "", ""},
		"Jobs are refused":     {[]client.Object{warning("a", "JobSet", "uid", "JobCreationFailed", "jobs is forbidden", 9), warning("b", "JobSet", "uid", "Restarting", "again", 10)}, "JobCreationFailed", "the job's parts cannot be made: jobs is forbidden"},
		"no such image":        {append(full, stuckPod("0", "ErrImagePull", "not found"), stuckPod("1", ReasonImagePull, "Back-off pulling"), stuckPod("2", "ContainerCreating", "")), ReasonImagePull, "host 0/0: container train does not start: not found. Push image train:9 or let the nodes pull it, or submit the job again with another --image and --replace (so is 1 more)"},
		"no such Secret":       {append(full, stuckPod("0", "CreateContainerConfigError", `secret "wandb" not found`)), "CreateContainerConfigError", `secret "wandb" not found. Make what it lacks in namespace research`},
		"no node":              {append(full, stuckPod("0", ReasonUnschedulable, "0/9 nodes are available")), ReasonUnschedulable, "host 0/0: no node takes its pod: 0/9 nodes are available"},
		"no node and no image": {append(full, stuckPod("0", ReasonUnschedulable, "0/9 nodes"), stuckPod("1", ReasonImagePull, "x")), ReasonImagePull, "host 0/1"},
	} {
		t.Run(name, func(t *testing.T) {
			run := makeRun(t).admitted()
			called(run.wl, "research", "wl").Labels = map[string]string{queue.LabelJobUID: "uid"}
			r, err := Get(t.Context(), fielded(append(c.objects, run.js, run.wl)...), "research", "train")
			if err != nil || r.State != Admitted || r.Reason != c.reason || !strings.Contains(r.Message, c.message) {
				t.Errorf("got %s (%s: %s), %v; want %s: %s", r.State, r.Reason, r.Message, err, c.reason, c.message)
			}
			if !r.Started.IsZero() {
				t.Errorf("started at %s, without pods", r.Started)
			}
		})
	}
}

// A run that restarts keeps its reason, and says what is in the way as well.
func TestWhyARestartTakesLong(t *testing.T) {
	run := makeRun(t).admitted().jobs(1, 2, 0).wlCond(kueue.WorkloadPodsReady, false, kueue.WorkloadWaitForRecovery, "", 12)
	called(run.wl, "research", "wl").Labels = map[string]string{queue.LabelJobUID: "uid"}
	r, err := Get(t.Context(), fielded(run.js, run.wl, stuckPod("3", ReasonUnschedulable, "0/9 nodes are available")), "research", "train")
	want := "a host failed or was lost; its pod is being replaced. host 0/3: no node takes its pod: 0/9 nodes are available"
	if err != nil || r.State != Restarting || r.Reason != kueue.WorkloadWaitForRecovery || r.Hindrance != ReasonUnschedulable || r.Message != want {
		t.Errorf("got %s (%s, %s: %s), %v", r.State, r.Reason, r.Hindrance, r.Message, err)
	}
}

// Pods run from when all were ready, or not yet.
func TestSinceWhenARunRuns(t *testing.T) {
	waits := func(w *wrapper) *wrapper {
		return w.wlCond(kueue.WorkloadPodsReady, false, kueue.WorkloadWaitForStart, "", 7)
	}
	for name, c := range map[string]struct {
		run  *wrapper
		want int // second; 0 = not yet
	}{
		"admitted":                        {makeRun(t).admitted(), 0},
		"starting":                        {waits(makeRun(t).admitted().jobs(1, 2, 0)), 0},
		"ready":                           {makeRun(t).admitted().jobs(2, 2, 0).wlCond(kueue.WorkloadPodsReady, true, "Started", "", 8), 8},
		"nobody looks after that":         {makeRun(t).admitted().jobs(2, 2, 0), 6},
		"nobody does, and it starts":      {makeRun(t).admitted().jobs(1, 2, 0), 0},
		"a host is being replaced":        {makeRun(t).admitted().jobs(1, 2, 0).wlCond(kueue.WorkloadPodsReady, false, kueue.WorkloadWaitForRecovery, "", 12), 6},
		"over before it was seen ready":   {waits(makeRun(t).admitted().jobs(0, 0, 2)).jsCond(jobset.JobSetCompleted, true, "AllJobsCompleted", "done", 20), 6},
		"failed before it was seen ready": {waits(makeRun(t).admitted()).jsCond(jobset.JobSetFailed, true, "ReachedMaxRestarts", "max", 20), 0},
	} {
		want := time.Time{}
		if c.want > 0 {
			want = at(c.want).Time
		}
		if got := Read(c.run.js, c.run.wl).Started; !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A list that is refused is named in a person's words.
func TestErrorsOfLists(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}, "", errors.New("no"))
	for namespace, want := range map[string]string{"": "listing JobSets in all namespaces on cluster c: ", "research": "listing JobSets in research on cluster c: "} {
		if _, err := Select(t.Context(), refusing(nil, forbidden), Query{Namespace: namespace}); err == nil || !strings.HasPrefix(err.Error(), want) || !apierrors.IsForbidden(err) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
