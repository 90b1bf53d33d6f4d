package training

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Many jobs that Kueue has not seen are told from those that were deactivated
// without reading any of them whole.
func TestManyJobsWithoutWorkloads(t *testing.T) {
	visibility := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PendingWorkloadsSummary","apiVersion":"visibility.kueue.x-k8s.io/v1beta2","items":[]}`)
	}))
	defer visibility.Close()
	const jobs, deactivated = mostWhole + 50, 3
	b := &briefing{columns: map[client.ObjectKey]columns{}, holds: map[string]bool{}, unseen: map[string]bool{}, workloads: map[string]*kueue.Workload{}}
	var objs []client.Object
	for i := range jobs {
		name := fmt.Sprintf("job-%03d", i)
		meta := metav1.ObjectMeta{Namespace: "research", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{queue.LabelQueueName: "research"}}
		b.metas = append(b.metas, metav1.PartialObjectMetadata{ObjectMeta: meta})
		b.columns[client.ObjectKey{Namespace: "research", Name: name}] = columns{suspended: true}
		if i < deactivated {
			wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "wl-" + name, Labels: map[string]string{queue.LabelJobUID: string(meta.UID)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: name, UID: meta.UID, Controller: ptr.To(true)}}}}
			wl.Spec.Active = ptr.To(false)
			objs = append(objs, wl)
		}
	}
	whole := 0
	count := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, into, opts...)
		if l, ok := into.(*kueue.WorkloadList); ok {
			whole += len(l.Items)
		}
		return err
	}}
	b.c = &kube.Client{Name: "c", Config: &rest.Config{Host: visibility.URL}, HTTP: visibility.Client(),
		WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(count).WithObjects(objs...).Build()}
	if ok, err := b.deactivated(t.Context()); !ok || err != nil {
		t.Fatalf("everything is to be read: %t, %v", ok, err)
	}
	if whole != deactivated {
		t.Errorf("%d Workloads were read whole, want %d", whole, deactivated)
	}
	got := map[string]int{}
	for i := range b.metas {
		r := b.run(&b.metas[i])
		got[string(r.State)+" "+r.Reason]++
	}
	if got["Suspended "+ReasonUserSuspended] != deactivated || got["Pending "+ReasonNotQueued] != jobs-deactivated {
		t.Errorf("got %v", got)
	}
}

// A job that was cancelled is told from those that wait, and from those that
// were suspended, also while its queue still counts it.
func TestManyJobsOfWhichOneIsCancelled(t *testing.T) {
	const jobs = 5
	b := &briefing{columns: map[client.ObjectKey]columns{}, holds: map[string]bool{}, unseen: map[string]bool{}, workloads: map[string]*kueue.Workload{}}
	var objs []client.Object
	var pending []string
	for i := range jobs {
		name := fmt.Sprintf("job-%d", i)
		uid := types.UID("uid-" + name)
		cells := map[string]string{"Name": name, "Namespace": "research", "UID": string(uid), "Queue": "research"}
		if i < 2 { // the second is cancelled, and Kueue's count may know of neither
			cells["Cancelled"] = map[int]string{1: "2026-01-02T03:04:05Z"}[i]
			wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "wl-" + name, Labels: map[string]string{queue.LabelJobUID: string(uid)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: name, UID: uid, Controller: ptr.To(true)}}}}
			wl.Spec.Active = ptr.To(false)
			objs = append(objs, wl)
		} else {
			pending = append(pending, fmt.Sprintf(`{"metadata":{"name":"wl","ownerReferences":[{"uid":%q}]}}`, uid))
		}
		m := metaOf(func(column string) string { return cells[column] })
		b.metas = append(b.metas, *m)
		b.columns[client.ObjectKeyFromObject(m)] = columns{name: name, suspended: true, meta: m}
	}
	asked := 0
	visibility := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PendingWorkloadsSummary","apiVersion":"visibility.kueue.x-k8s.io/v1beta2","items":[`+strings.Join(pending, ",")+`]}`)
	}))
	defer visibility.Close()
	b.c = &kube.Client{Name: "c", Config: &rest.Config{Host: visibility.URL}, HTTP: visibility.Client(),
		WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objs...).Build()}
	for counted, want := range map[int32]int{
		jobs - 2: 1, // it has seen both end: the others are asked for, as one is none that waits
		jobs:     1, // it has seen neither
	} {
		asked, b.workloads = 0, map[string]*kueue.Workload{}
		lq := kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "research"}}
		lq.Status.PendingWorkloads = counted
		b.queues.Items = []kueue.LocalQueue{lq}
		if ok, err := b.deactivated(t.Context()); !ok || err != nil {
			t.Fatalf("everything is to be read: %t, %v", ok, err)
		}
		got := map[string]int{}
		for i := range b.metas {
			r := b.run(&b.metas[i])
			got[string(r.State)+" "+r.Reason]++
		}
		if diff := cmp.Diff(map[string]int{"Pending ": jobs - 2, "Suspended " + ReasonUserSuspended: 1, "Suspended " + ReasonCancelled: 1}, got); diff != "" || asked != want {
			t.Errorf("of %d counted: %sKueue was asked %d times, want %d", counted, diff, asked, want)
		}
	}
}
