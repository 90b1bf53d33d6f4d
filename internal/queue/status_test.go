package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// workload is one of slices slices of v5litepod-16, made so many minutes past
// noon, in team-a's LocalQueue.
func workload(t *testing.T, name string, minute, slices int, edit ...func(*kueue.Workload)) *kueue.Workload {
	t.Helper()
	s := slice(t, "v5litepod-16")
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "jobset-" + name, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)),
		OwnerReferences: []metav1.OwnerReference{{Kind: "JobSet", Name: name, Controller: ptr.To(true), UID: types.UID(name)}},
	}}
	wl.Spec.QueueName = "team-a"
	chips := corev1.ResourceList{accelerator.ResourceName: *resource.NewQuantity(int64(s.ChipsPerHost), resource.DecimalSI)}
	set := kueue.PodSet{Name: "slice", Count: int32(slices * s.Hosts)}
	set.Template.Spec.NodeSelector = s.NodeLabels()
	set.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: chips}}}
	wl.Spec.PodSets = []kueue.PodSet{set}
	for _, e := range edit {
		e(wl)
	}
	return wl
}

func admitted(queue string, minute int) func(*kueue.Workload) {
	return func(wl *kueue.Workload) {
		at := metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
		wl.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue),
			PodSetAssignments: []kueue.PodSetAssignment{{Name: "slice", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{accelerator.ResourceName: "v5e"}}}}
		wl.Status.Conditions = []metav1.Condition{
			{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, LastTransitionTime: at},
			{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue, LastTransitionTime: at},
		}
	}
}

func priority(class string, n int32) func(*kueue.Workload) {
	return func(wl *kueue.Workload) {
		wl.Spec.Priority, wl.Spec.PriorityClassRef = &n, &kueue.PriorityClassRef{Name: class}
	}
}

func waiting(reason, message string) func(*kueue.Workload) {
	return func(wl *kueue.Workload) {
		wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
}

// cluster is one with these objects, whose visibility API is answer; nil is a
// cluster without one.
func cluster(t *testing.T, answer http.HandlerFunc, objs ...client.Object) *kube.Client {
	t.Helper()
	if answer == nil {
		answer = http.NotFound
	}
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &kube.Client{Name: "main", Config: &rest.Config{Host: server.URL}, HTTP: server.Client(),
		WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objs...).WithStatusSubresource().
			WithIndex(&kueue.Workload{}, "status.admission.clusterQueue", func(o client.Object) []string {
				if a := o.(*kueue.Workload).Status.Admission; a != nil {
					return []string{string(a.ClusterQueue)}
				}
				return []string{""}
			}).Build()}
}

// world is a queue of 3 slices in a cohort which holds 4, with jobs of its own,
// of another queue, finished and suspended ones.
func world(t *testing.T) []client.Object {
	t.Helper()
	s := slice(t, "v5litepod-16")
	q := queue.Queue{Name: "team-a", Cohort: "all", Namespaces: []string{"team-a"}, Quotas: []queue.Quota{{Flavor: "v5e", Slice: s, Slices: 3}},
		Hosts: []queue.HostFlavor{{Flavor: "cpu", CPU: host("100")}}}
	cq := q.ClusterQueue()
	cq.Status = kueue.ClusterQueueStatus{PendingWorkloads: 3, ReservingWorkloads: 1, AdmittedWorkloads: 1,
		Conditions:  []metav1.Condition{{Type: kueue.ClusterQueueActive, Status: metav1.ConditionTrue}},
		FairSharing: &kueue.FairSharingStatus{WeightedShare: 250},
	}
	usage := func(flavor, name, total, borrowed string) kueue.FlavorUsage {
		return kueue.FlavorUsage{Name: kueue.ResourceFlavorReference(flavor), Resources: []kueue.ResourceUsage{
			{Name: corev1.ResourceName(name), Total: resource.MustParse(total), Borrowed: resource.MustParse(borrowed)},
		}}
	}
	cq.Status.FlavorsUsage = []kueue.FlavorUsage{usage("v5e", "google.com/tpu", "64", "16"), usage("cpu", "cpu", "40", "0")}
	cq.Status.FlavorsReservation = cq.Status.FlavorsUsage
	stranger := workload(t, "stranger", 0, 1, func(wl *kueue.Workload) { wl.Spec.QueueName = "team-b" })
	return []client.Object{
		cq, q.LocalQueue("team-a"), queue.Flavor{Name: "v5e", Slice: s}.Object(), stranger,
		workload(t, "runs", 1, 4, admitted("team-a", 2)),
		workload(t, "elsewhere", 1, 1, admitted("team-b", 2)),
		workload(t, "old", 3, 2, waiting("Pending", "insufficient unused quota")),
		workload(t, "new", 5, 1),
		workload(t, "urgent", 4, 1, priority("high", 750)),
		workload(t, "done", 1, 1, admitted("team-a", 2), func(wl *kueue.Workload) {
			wl.Status.Conditions = append(wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		}),
		workload(t, "suspended", 1, 1, func(wl *kueue.Workload) { wl.Spec.Active = ptr.To(false) }),
	}
}

func order(jobs []queue.Job) string {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	return strings.Join(names, " ")
}

func TestStatusOfAQueue(t *testing.T) {
	got, err := queue.ReadStatus(t.Context(), cluster(t, nil, world(t)...), "team-a")
	if err != nil {
		t.Fatal(err)
	}
	want := queue.Status{
		Name: "team-a", Cohort: "all", Active: true, Share: 250, PendingJobs: 3, AdmittedJobs: 1, ReservingJobs: 1,
		Flavors: []queue.FlavorStatus{{Name: "v5e", Slice: slice(t, "v5litepod-16"), Quota: 48, Used: 64, Reserved: 64, Borrowed: 16}},
		Hosts: []queue.HostStatus{{Flavor: "cpu", Resource: "cpu", Quota: resource.MustParse("100"), Used: resource.MustParse("40"),
			Reserved: resource.MustParse("40"), Borrowed: resource.MustParse("0")}},
		Admitted: []queue.Job{{Namespace: "team-a", Workload: "jobset-runs", Kind: "JobSet", Name: "runs", Chips: 64, Slices: 4, Flavor: "v5e",
			Created: noon.Add(time.Minute), Admitted: noon.Add(2 * time.Minute)}},
		Pending: []queue.Job{
			{Namespace: "team-a", Workload: "jobset-urgent", Kind: "JobSet", Name: "urgent", Position: 1, Priority: 750, PriorityClass: "high", Chips: 16, Slices: 1, Created: noon.Add(4 * time.Minute)},
			{Namespace: "team-a", Workload: "jobset-old", Kind: "JobSet", Name: "old", Position: 2, Chips: 32, Slices: 2, Created: noon.Add(3 * time.Minute),
				Reason: "Pending", Message: "insufficient unused quota"},
			{Namespace: "team-a", Workload: "jobset-new", Kind: "JobSet", Name: "new", Position: 3, Chips: 16, Slices: 1, Created: noon.Add(5 * time.Minute)},
		},
	}
	for i := range got.Hosts { // quantities remember how they were written
		got.Hosts[i].Quota = resource.MustParse(got.Hosts[i].Quota.String())
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
		cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := got.Flavors[0].Slices(got.Flavors[0].Used); n != 4 {
		t.Errorf("64 chips are %d slices", n)
	}
}

// Kueue's own order wins, in whichever version it is told; what it does not
// know yet comes last. Where nobody tells, it is priority and age.
func TestOrderOfWhatWaits(t *testing.T) {
	answer := func(version string, names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/visibility.kueue.x-k8s.io/"+version+"/clusterqueues/team-a/pendingworkloads" {
				http.NotFound(w, r)
				return
			}
			var page visibility.PendingWorkloadsSummary
			for _, n := range names {
				page.Items = append(page.Items, visibility.PendingWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "jobset-" + n}})
			}
			_ = json.NewEncoder(w).Encode(page)
		}
	}
	refuse := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }
	}
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		want    string
		ordered bool
	}{
		"told":                       {answer("v1beta2", "new", "old", "urgent"), "new old urgent", true},
		"told by an older Kueue":     {answer("v1beta1", "new", "old", "urgent"), "new old urgent", true},
		"told of some":               {answer("v1beta2", "new"), "new urgent old", true},
		"not installed":              {nil, "urgent old new", false},
		"not allowed":                {refuse(http.StatusForbidden), "urgent old new", false},
		"down":                       {refuse(http.StatusServiceUnavailable), "urgent old new", false},
		"something that is no order": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }, "urgent old new", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := queue.ReadStatus(t.Context(), cluster(t, c.answer, world(t)...), "team-a")
			if err != nil {
				t.Fatal(err)
			}
			if order(got.Pending) != c.want || got.Ordered != c.ordered {
				t.Errorf("got %s (%t), want %s (%t)", order(got.Pending), got.Ordered, c.want, c.ordered)
			}
		})
	}
}

func TestNoSuchQueue(t *testing.T) {
	_, err := queue.ReadStatus(t.Context(), cluster(t, nil), "team-a")
	var none *queue.ErrNoQueue
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "cluster main has no queue team-a") {
		t.Errorf("got %v", err)
	}
}

// A queue that takes no jobs says why, and what to do.
func TestStandingOfAQueue(t *testing.T) {
	for reason, want := range map[string]string{
		"":                       "has not looked at queue q yet",
		"Stopped":                "set stop_policy to None",
		"FlavorNotFound":         "Make the flavor",
		"AdmissionCheckNotFound": "tpu_kueue_admission_check",
		"SomethingNew":           "Kueue admits no job to queue q: it is so.",
	} {
		cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
		if reason != "" {
			cq.Status.Conditions = []metav1.Condition{{Type: kueue.ClusterQueueActive, Status: metav1.ConditionFalse, Reason: reason, Message: "it is so"}}
		}
		active, got, message := queue.Standing(cq)
		if active || reason != "" && got != reason || !strings.Contains(message, want) {
			t.Errorf("%s: %t, %s, %s", reason, active, got, message)
		}
	}
}

// What Kueue said of a queue before a change is not about the queue as it is.
func TestTakenUp(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*kueue.ClusterQueue)
		takenUp bool
		reason  string
	}{
		"seen":        {func(*kueue.ClusterQueue) {}, true, ""},
		"seen, older": {func(q *kueue.ClusterQueue) { q.Status.Conditions[0].ObservedGeneration = 0 }, true, ""},
		"changed":     {func(q *kueue.ClusterQueue) { q.Generation++ }, false, "Unknown"},
		"not counted": {func(q *kueue.ClusterQueue) { q.Status.FlavorsReservation = q.Status.FlavorsReservation[:1] }, false, ""},
		"not seen":    {func(q *kueue.ClusterQueue) { q.Status.Conditions = nil }, false, "Unknown"},
	} {
		cq := everything(t).ClusterQueue()
		cq.Generation = 3
		cq.Status.Conditions = []metav1.Condition{{Type: kueue.ClusterQueueActive, Status: metav1.ConditionTrue, ObservedGeneration: 3}}
		for _, g := range cq.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				cq.Status.FlavorsReservation = append(cq.Status.FlavorsReservation, kueue.FlavorUsage{Name: f.Name})
			}
		}
		c.edit(cq)
		active, reason, message := queue.Standing(cq)
		if queue.TakenUp(cq) != c.takenUp || reason != c.reason || active != (reason == "") || (message == "") != active {
			t.Errorf("%s: taken up %t, %t, %q, %q", name, queue.TakenUp(cq), active, reason, message)
		}
	}
}

// A server that selects Workloads by no field sends all of them.
func TestStatusFromAnOlderKueue(t *testing.T) {
	k := cluster(t, nil, world(t)...)
	want, err := queue.ReadStatus(t.Context(), k, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	k.WithWatch = interceptor.NewClient(k.WithWatch, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if o := (&client.ListOptions{}).ApplyOptions(opts); o.FieldSelector != nil && !o.FieldSelector.Empty() {
			return apierrors.NewBadRequest("field label not supported: " + o.FieldSelector.String())
		}
		return c.List(ctx, list, opts...)
	}})
	got, err := queue.ReadStatus(t.Context(), k, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); diff != "" {
		t.Errorf("(-selected +all):\n%s", diff)
	}
	jobs, err := queue.Reserving(t.Context(), k, "team-a")
	if err != nil || order(jobs) != "runs" {
		t.Errorf("hold quota: %v, %v", jobs, err)
	}
}
