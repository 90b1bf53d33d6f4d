package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
)

// Status is what a queue has, who holds it and who waits, at one moment.
type Status struct {
	Name, Cohort  string
	Active        bool
	Reason        string // Kueue's, while it is not active
	Message       string // why it admits nothing and what to do, or ""
	Share         int64  // its share in fair sharing, of what it took above its quota
	Flavors       []FlavorStatus
	Hosts         []HostStatus
	Pending       []Job // the next first
	Admitted      []Job // the oldest first
	Ordered       bool  // Kueue itself told the order of Pending
	PendingJobs   int   // as Kueue counts them
	AdmittedJobs  int
	ReservingJobs int // hold quota, admitted or not yet
}

// FlavorStatus is the state of one kind of slice in a queue, in chips.
type FlavorStatus struct {
	Name     string
	Slice    accelerator.Slice // zero when the flavor is not known
	Quota    int64
	Used     int64 // by admitted jobs
	Reserved int64 // by them and by those that still wait for an admission check
	Borrowed int64 // of Reserved: what is the cohort's
}

// Slices is a number of chips of the flavor in whole slices, the started one
// included; 0 when the flavor's slice is not known.
func (f FlavorStatus) Slices(chips int64) int64 {
	per := int64(f.Slice.Chips)
	if per == 0 {
		return 0
	}
	return (chips + per - 1) / per
}

// HostStatus is the state of cpu or memory in a queue.
type HostStatus struct {
	Flavor, Resource                string
	Quota, Used, Reserved, Borrowed resource.Quantity
}

// Job is a job in a queue, by its Workload.
type Job struct {
	Namespace, Workload string
	Kind, Name          string // of the job that the Workload was made for
	Position            int    // in the queue, from 1; 0 once it has quota
	Priority            int32
	PriorityClass       string
	Chips, Slices       int64  // Slices is 0 when the job's slice is not known
	Flavor              string // what it got
	Created             time.Time
	Admitted            time.Time // zero while it is not
	Reason, Message     string    // why it waits
}

// ErrNoQueue is a queue that does not exist, or a cluster without Kueue.
type ErrNoQueue struct{ Name, Cluster string }

func (e *ErrNoQueue) Error() string {
	return "cluster " + e.Cluster + " has no queue " + e.Name
}

// ReadStatus reads the state of a queue. The order of what waits is Kueue's,
// where its visibility API answers; elsewhere that of priority and age, which
// Kueue follows too unless fair sharing is on.
func ReadStatus(ctx context.Context, k *kube.Client, name string) (Status, error) {
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found, err := k.Fetch(ctx, cq)
	if err != nil {
		return Status{}, err
	}
	if !found {
		return Status{}, &ErrNoQueue{name, k.Name}
	}
	known, err := slicesOfFlavors(ctx, k, "for queue "+name)
	if err != nil {
		return Status{}, err
	}
	s := status(cq, known)
	if err := s.jobs(ctx, k); err != nil {
		return Status{}, err
	}
	order, told, err := pendingOrder(ctx, k, name)
	if err != nil {
		return Status{}, err
	}
	s.sort(order, told)
	return s, nil
}

// ListStatus reads the state of every queue, by name, without their jobs. A
// cluster without Kueue has none.
func ListStatus(ctx context.Context, k *kube.Client) ([]Status, error) {
	known, err := slicesOfFlavors(ctx, k, "for all queues")
	if err != nil {
		return nil, err
	}
	var all []Status
	var page kueue.ClusterQueueList
	err = k.Pages(ctx, &page, "of the cluster", func() error {
		for i := range page.Items {
			all = append(all, status(&page.Items[i], known))
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// slicesOfFlavors are the shapes that flavors stand for, by name.
func slicesOfFlavors(ctx context.Context, k *kube.Client, what string) (map[string]accelerator.Slice, error) {
	known := map[string]accelerator.Slice{}
	var page kueue.ResourceFlavorList
	err := k.Pages(ctx, &page, what, func() error {
		for i := range page.Items {
			known[page.Items[i].Name], _ = SliceOf(page.Items[i].Spec.NodeLabels)
		}
		return nil
	})
	return known, err
}

// status is what the ClusterQueue itself says.
func status(cq *kueue.ClusterQueue, known map[string]accelerator.Slice) Status {
	s := Status{
		Name: cq.Name, Cohort: string(cq.Spec.CohortName),
		PendingJobs: int(cq.Status.PendingWorkloads), AdmittedJobs: int(cq.Status.AdmittedWorkloads), ReservingJobs: int(cq.Status.ReservingWorkloads),
	}
	s.Active, s.Reason, s.Message = Standing(cq)
	if f := cq.Status.FairSharing; f != nil {
		s.Share = f.WeightedShare
	}
	used, reserved := cq.Status.FlavorsUsage, cq.Status.FlavorsReservation
	for _, group := range cq.Spec.ResourceGroups {
		for _, f := range group.Flavors {
			for _, r := range f.Resources {
				u, res := usage(used, f.Name, r), usage(reserved, f.Name, r)
				if r.Name != accelerator.ResourceName {
					s.Hosts = append(s.Hosts, HostStatus{string(f.Name), string(r.Name), r.NominalQuota, u.Total, res.Total, res.Borrowed})
					continue
				}
				s.Flavors = append(s.Flavors, FlavorStatus{Name: string(f.Name), Slice: known[string(f.Name)], Quota: r.NominalQuota.Value(),
					Used: u.Total.Value(), Reserved: res.Total.Value(), Borrowed: res.Borrowed.Value()})
			}
		}
	}
	return s
}

func usage(all []kueue.FlavorUsage, flavor kueue.ResourceFlavorReference, r kueue.ResourceQuota) kueue.ResourceUsage {
	for _, f := range all {
		for _, u := range f.Resources {
			if f.Name == flavor && u.Name == r.Name {
				return u
			}
		}
	}
	return kueue.ResourceUsage{}
}

// jobs finds the Workloads of the queue that hold quota and those that wait.
// Finished and deactivated ones do neither.
func (s *Status) jobs(ctx context.Context, k *kube.Client) error {
	doors, err := doorsOf(ctx, k, s.Name)
	if err != nil {
		return err
	}
	admitted, pending := map[client.ObjectKey]Job{}, map[client.ObjectKey]Job{}
	err = eachWorkload(ctx, k, s.Name, doors, func(wl *kueue.Workload) {
		key := client.ObjectKeyFromObject(wl)
		waits := (wl.Spec.Active == nil || *wl.Spec.Active) && doors[client.ObjectKey{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}]
		switch {
		case finished(wl):
			delete(pending, key)
		case holds(wl, s.Name):
			admitted[key] = job(wl)
			delete(pending, key)
		case waits && !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved):
			pending[key] = job(wl)
		}
	})
	if err != nil {
		return err
	}
	s.Admitted, s.Pending = slices.Collect(maps.Values(admitted)), slices.Collect(maps.Values(pending))
	slices.SortFunc(s.Admitted, func(a, b Job) int {
		return cmp.Or(a.Admitted.Compare(b.Admitted), a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	return nil
}

func job(wl *kueue.Workload) Job {
	j := Job{Namespace: wl.Namespace, Workload: wl.Name, Created: wl.CreationTimestamp.Time}
	if wl.Spec.Priority != nil {
		j.Priority = *wl.Spec.Priority
	}
	if ref := wl.Spec.PriorityClassRef; ref != nil {
		j.PriorityClass = ref.Name
	}
	for _, ref := range wl.OwnerReferences {
		if ref.Controller != nil && *ref.Controller || j.Name == "" {
			j.Kind, j.Name = ref.Kind, ref.Name
		}
	}
	for i := range wl.Spec.PodSets {
		p := &wl.Spec.PodSets[i]
		var perPod int64
		for c := range p.Template.Spec.Containers {
			r := p.Template.Spec.Containers[c].Resources
			chips, ok := r.Requests[accelerator.ResourceName]
			if !ok {
				chips = r.Limits[accelerator.ResourceName]
			}
			perPod += chips.Value()
		}
		chips := perPod * int64(p.Count)
		j.Chips += chips
		if slice, ok := SliceOf(p.Template.Spec.NodeSelector); ok && slice.Chips > 0 {
			j.Slices += (chips + int64(slice.Chips) - 1) / int64(slice.Chips)
		}
	}
	if a := wl.Status.Admission; a != nil {
		for _, p := range a.PodSetAssignments {
			if f := p.Flavors[accelerator.ResourceName]; f != "" {
				j.Flavor = string(f)
				break
			}
		}
	}
	if c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted); c != nil && c.Status == metav1.ConditionTrue {
		j.Admitted = c.LastTransitionTime.Time
		return j
	}
	if c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
		j.Reason, j.Message = c.Reason, c.Message
	}
	for _, check := range wl.Status.AdmissionChecks {
		if j.Flavor != "" && check.State != kueue.CheckStateReady {
			j.Reason, j.Message = kueue.WorkloadAdmittedReasonUnsatisfiedAdmissionChecks, "waits for admission check "+string(check.Name)+": "+check.Message
		}
	}
	return j
}

// sort gives what waits its positions: by order, as far as it knows them, then
// by priority and age.
func (s *Status) sort(order map[client.ObjectKey]int, told bool) {
	s.Ordered = told
	at := func(j Job) (int, bool) {
		n, ok := order[client.ObjectKey{Namespace: j.Namespace, Name: j.Workload}]
		return n, ok
	}
	slices.SortFunc(s.Pending, func(a, b Job) int {
		x, inX := at(a)
		y, inY := at(b)
		switch {
		case inX && inY:
			return cmp.Compare(x, y)
		case inX:
			return -1
		case inY:
			return 1
		}
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
	})
	for i := range s.Pending {
		s.Pending[i].Position = i + 1
	}
}
