package queue_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/oauth2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/controllers"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/binaries"
	"github.com/tpu-training/terraform-provider-tpu/internal/sandbox/controlplane"
)

// stage is a real control plane with both controllers, fair sharing on, and two
// slices of one host each in node pools of the scene "gang". The other scenes
// need no hosts: what Kueue decides is what they are about.
type stage struct {
	cl    *kube.Client
	slice accelerator.Slice

	mu    sync.Mutex
	first []string // names of jobs, in the order in which they got quota first
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctx := t.Context()
	programs, err := binaries.ControlPlane(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	cp, err := controlplane.Start(ctx, controlplane.Config{
		Name: "stage", Dir: filepath.Join(t.TempDir(), "cp"), Binaries: programs, Token: "stage-test",
		Logger: hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Warn}), JobDuration: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	s := &stage{slice: slice(t, "v5litepod-4")}
	hosts := map[string][]*corev1.Node{"system": {stagedNode("system-0", nil, 0)}}
	for i := range 2 {
		pool := fmt.Sprintf("gang-%d", i)
		labels := s.slice.NodeLabels()
		labels[accelerator.LabelNodePool], labels["scene"] = pool, "gang"
		hosts[pool] = []*corev1.Node{stagedNode(pool+"-0", labels, s.slice.ChipsPerHost)}
	}
	for pool, nodes := range hosts {
		if err := cp.Nodes(ctx, pool, nodes); err != nil {
			t.Fatal(err)
		}
	}
	s.cl, err = kube.Connect(kube.Access{
		Name: "stage", Server: "https://" + cp.Endpoint(), CA: cp.CA(),
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "stage-test"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	config := controllers.Config{Kueue: controllers.KueueConfig{FairSharing: true}}
	if _, err := controllers.Install(ctx, s.cl, config, controllers.Options{}); err != nil {
		t.Fatal(err)
	}
	s.follow(ctx, t)
	return s
}

func stagedNode(name string, labels map[string]string, chips int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("112"), corev1.ResourceMemory: resource.MustParse("192Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if chips > 0 {
		n.Status.Capacity[accelerator.ResourceName] = *resource.NewQuantity(int64(chips), resource.DecimalSI)
		n.Spec.Taints = []corev1.Taint{{Key: accelerator.TaintKey, Value: accelerator.TaintValue, Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Status.Allocatable = n.Status.Capacity
	return n
}

// follow notes in which order jobs get quota.
func (s *stage) follow(ctx context.Context, t *testing.T) {
	t.Helper()
	events, err := s.cl.Watch(ctx, &kueue.WorkloadList{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			wl, ok := event.Object.(*kueue.Workload)
			if !ok || !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) || len(wl.OwnerReferences) == 0 {
				continue
			}
			s.mu.Lock()
			if name := wl.OwnerReferences[0].Name; !slices.Contains(s.first, name) {
				s.first = append(s.first, name)
			}
			s.mu.Unlock()
		}
	}()
}

func (s *stage) order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.first)
}

// before tells whether job a got quota for the first time before job b did.
func (s *stage) before(a, b string) bool {
	first := s.order()
	x, y := slices.Index(first, a), slices.Index(first, b)
	return x >= 0 && (y < 0 || x < y)
}

// scene is one play: a flavor of its own, and queues in namespaces of their
// names.
type scene struct {
	*stage
	t    *testing.T
	name string
}

func (s *stage) scene(t *testing.T, name string) *scene {
	t.Helper()
	sc := &scene{stage: s, t: t, name: name}
	sc.apply(queue.Flavor{Name: name, Slice: s.slice, NodeLabels: map[string]string{"scene": name}}.Object())
	return sc
}

func (s *scene) apply(objs ...client.Object) {
	s.t.Helper()
	for _, o := range objs {
		if err := s.cl.Apply(s.t.Context(), o, kube.ApplyOptions{Force: true}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// quota is so many slices of the scene's flavor.
func (s *scene) quota(n int64, borrow, lend *int64) []queue.Quota {
	return []queue.Quota{{Flavor: s.name, Slice: s.slice, Slices: n, Borrow: borrow, Lend: lend}}
}

// opens applies a queue, which must be valid, with the namespace of its name.
func (s *scene) opens(q queue.Queue) queue.Queue {
	s.t.Helper()
	q.Namespaces = []string{q.Name}
	if err := q.Validate(); err != nil {
		s.t.Fatal(err)
	}
	s.apply(queue.Namespace{Name: q.Name}.Objects()[0], q.ClusterQueue(), q.LocalQueue(q.Name))
	return q
}

// submits makes Jobs of one slice, one after the other as Kueue sees their ages.
func (s *scene) submits(to, priority string, names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.submit(to, priority, name, 1)
	}
}

func (s *scene) submit(to, priority, name string, n int32) {
	s.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: to, Name: name, Labels: map[string]string{queue.LabelQueueName: to}}}
	if priority != "" {
		job.Labels[queue.LabelPriorityClass] = priority
	}
	chips := corev1.ResourceList{accelerator.ResourceName: *resource.NewQuantity(int64(s.slice.ChipsPerHost), resource.DecimalSI)}
	job.Spec = batchv1.JobSpec{Suspend: ptr.To(true), Parallelism: &n, Completions: &n}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: s.slice.NodeLabels(),
		Containers: []corev1.Container{{Name: "train", Image: "train", Resources: corev1.ResourceRequirements{Requests: chips, Limits: chips}}},
	}
	if err := s.cl.Create(s.t.Context(), job); err != nil {
		s.t.Fatal(err)
	}
}

// ends deletes Jobs, and their Workloads as soon as Kueue has let them go: they
// keep their quota until Kubernetes' garbage collector finds them, which knows
// nothing of Workloads for half a minute after the install, or longer on a busy
// machine.
func (s *scene) ends(namespace string, names ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	var all kueue.WorkloadList
	if err := s.cl.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		if err := s.cl.Remove(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, false); err != nil {
			s.t.Fatal(err)
		}
		for i := range all.Items {
			wl := &all.Items[i]
			if len(wl.OwnerReferences) == 0 || wl.OwnerReferences[0].Name != name {
				continue
			}
			err := s.cl.Until(ctx, wl, func(found bool) (bool, error) { return !found || len(wl.Finalizers) == 0, nil })
			if err == nil {
				err = s.cl.Remove(ctx, wl, false)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// sees waits until the queue runs and keeps waiting what it should, both as
// names in order of the alphabet.
func (s *scene) sees(of, runs, waits string) queue.Status {
	s.t.Helper()
	return s.until(of, fmt.Sprintf("runs %q while %q wait", runs, waits), func(st queue.Status) bool {
		return names(st.Admitted) == runs && names(st.Pending) == waits
	})
}

// until waits for a state of a queue. The bound is for machines that are busy
// with other things.
func (s *scene) until(of, what string, ok func(queue.Status) bool) queue.Status {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last queue.Status
	for {
		st, err := queue.ReadStatus(ctx, s.cl, of)
		if err == nil && ok(st) {
			return st
		}
		if err == nil {
			last = st
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("queue %s: want it to be so that it %s; it is\n%+v\n%v\nFirst admissions: %v", of, what, last, err, s.order())
		case <-tick.C:
		}
	}
}

func names(jobs []queue.Job) string {
	var all []string
	for _, j := range jobs {
		all = append(all, j.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
