package training

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// host is a TPU host of pool, ready unless changed.
func host(name, pool string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		accelerator.LabelNodePool: pool, accelerator.LabelAccelerator: "tpu-v5-lite-podslice", accelerator.LabelTopology: "2x4",
	}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(n)
	}
	return n
}

// runs is a pod of a JobSet on a node.
func runs(name, job, index, node string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}}
	if job != "" {
		p.Labels = map[string]string{jobset.JobSetNameKey: job, jobset.JobIndexKey: index}
	}
	p.Spec.NodeName, p.Status.Phase = node, phase
	return p
}

// calls counts List calls by kind, with the field selectors of pods obeyed:
// the fake client has none.
type calls map[string]int

func (n calls) client(objs ...client.Object) *kube.Client {
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(opts)
		selector := o.FieldSelector
		o.FieldSelector = nil
		if err := c.List(ctx, into, o); err != nil {
			return err
		}
		switch l := into.(type) {
		case *corev1.NodeList:
			n["nodes"]++
		case *corev1.PodList:
			n["pods"]++
			var kept []corev1.Pod
			for _, p := range l.Items {
				if selector.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)}) {
					kept = append(kept, p)
				}
			}
			n["pods answered"] += len(kept)
			l.Items = kept
		}
		return nil
	}}
	return &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(funcs).WithObjects(objs...).Build()}
}

// A slice that somebody uses must never pass for a free one, nor the reverse.
func TestOccupancy(t *testing.T) {
	notReady := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	spot := func(n *corev1.Node) { n.Labels[accelerator.LabelSpot] = "true" }
	slice, ok := queue.SliceOf(map[string]string{accelerator.LabelAccelerator: "tpu-v5-lite-podslice", accelerator.LabelTopology: "2x4"})
	if !ok {
		t.Fatal("the catalogue has no such slice")
	}
	use := func(hosts, ready int, jobs ...Occupant) PoolUse {
		return PoolUse{Hosts: hosts, HostsReady: ready, Accelerator: "tpu-v5-lite-podslice", Topology: "2x4", Slice: slice, Jobs: jobs}
	}
	spotUse := use(1, 1)
	spotUse.Spot = true
	cpu := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cpu-0", Labels: map[string]string{accelerator.LabelNodePool: "system"}}}
	for _, test := range []struct {
		name  string
		objs  []client.Object
		want  map[string]PoolUse
		calls calls
	}{
		{
			name: "a cluster without TPU hosts: its pods are not read", objs: []client.Object{cpu, runs("p", "train", "0", "cpu-0", corev1.PodRunning)},
			want: map[string]PoolUse{}, calls: calls{"nodes": 1},
		},
		{
			name: "free slices", objs: []client.Object{host("a-0", "a"), host("a-1", "a"), host("b-0", "b", spot)},
			want: map[string]PoolUse{"a": use(2, 2), "b": spotUse}, calls: calls{"nodes": 1, "pods": 1},
		},
		{
			name: "hosts that take no pod are not ready", objs: []client.Object{host("a-0", "a"), host("a-1", "a", notReady), host("a-2", "a", cordoned)},
			want: map[string]PoolUse{"a": use(3, 1)}, calls: calls{"nodes": 1, "pods": 1},
		},
		{
			name: "two slices of a job, one pod still pulling its image",
			objs: []client.Object{
				host("a-0", "a"), host("a-1", "a"), host("b-0", "b"), cpu,
				runs("p0", "train", "0", "b-0", corev1.PodRunning),
				runs("p1", "train", "1", "a-0", corev1.PodRunning), runs("p2", "train", "1", "a-1", corev1.PodPending),
				runs("head", "train", "0", "cpu-0", corev1.PodRunning),
			},
			want: map[string]PoolUse{
				"a": use(2, 2, Occupant{Namespace: "research", Name: "train", Slice: 1, Hosts: 2}),
				"b": use(1, 1, Occupant{Namespace: "research", Name: "train", Slice: 0, Hosts: 1}),
			},
			calls: calls{"nodes": 1, "pods": 1, "pods answered": 4},
		},
		{
			name: "finished, unplaced and foreign pods do not occupy a slice",
			objs: []client.Object{
				host("a-0", "a"),
				runs("p0", "done", "0", "a-0", corev1.PodSucceeded), runs("p1", "done", "0", "a-0", corev1.PodFailed),
				runs("p2", "waits", "0", "", corev1.PodPending), runs("agent", "", "", "a-0", corev1.PodRunning),
			},
			want: map[string]PoolUse{"a": use(1, 1)}, calls: calls{"nodes": 1, "pods": 1},
		},
		{
			name: "jobs that share hosts are all named, in order",
			objs: []client.Object{
				host("a-0", "a"), runs("p0", "zeta", "0", "a-0", corev1.PodRunning), runs("p1", "alpha", "3", "a-0", corev1.PodRunning),
			},
			want: map[string]PoolUse{"a": use(1, 1,
				Occupant{Namespace: "research", Name: "alpha", Slice: 3, Hosts: 1}, Occupant{Namespace: "research", Name: "zeta", Hosts: 1})},
			calls: calls{"nodes": 1, "pods": 1, "pods answered": 2},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := calls{}
			got, err := Occupancy(t.Context(), seen.client(test.objs...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.calls["pods answered"] == 0 {
				delete(seen, "pods answered")
			}
			if diff := cmp.Diff(test.calls, seen); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// A refused or cut off call must not read as "nobody uses these slices".
func TestOccupancyThatCannotBeRead(t *testing.T) {
	for _, kind := range []string{"nodes", "pods"} {
		funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			if _, pods := into.(*corev1.PodList); pods == (kind == "pods") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no role"))
			}
			return c.List(ctx, into, opts...)
		}}
		cl := &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(funcs).WithObjects(host("a-0", "a")).Build()}
		_, err := Occupancy(t.Context(), cl)
		if err == nil || !strings.Contains(err.Error(), kind+" is forbidden") || !strings.Contains(err.Error(), "on cluster c") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// A large cluster answers in pages; each counts.
func TestOccupancyReadsEveryPage(t *testing.T) {
	var asked []string
	funcs := interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(opts)
		switch l := into.(type) {
		case *corev1.NodeList:
			asked = append(asked, "nodes"+o.Continue)
			*l = corev1.NodeList{}
			switch o.Continue {
			case "":
				l.Items, l.Continue = []corev1.Node{*host("a-0", "a")}, "+1"
			case "+1":
				l.Items = []corev1.Node{*host("a-1", "a")}
			}
		case *corev1.PodList:
			asked = append(asked, "pods"+o.Continue)
			*l = corev1.PodList{}
			switch o.Continue {
			case "":
				l.Items, l.Continue = []corev1.Pod{*runs("p0", "train", "2", "a-0", corev1.PodRunning)}, "+1"
			case "+1":
				l.Items = []corev1.Pod{*runs("p1", "train", "2", "a-1", corev1.PodRunning)}
			}
		}
		return nil
	}}
	cl := &kube.Client{Name: "c", WithWatch: fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(funcs).Build()}
	got, err := Occupancy(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	want := []Occupant{{Namespace: "research", Name: "train", Slice: 2, Hosts: 2}}
	if diff := cmp.Diff(want, got["a"].Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"nodes", "nodes+1", "pods", "pods+1"}, asked); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
