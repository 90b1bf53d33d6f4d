package training

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// NotFoundError says that a cluster has no such job: in a namespace, or in none
// where that is "".
type NotFoundError struct {
	Cluster, Namespace, Name string
}

func (e *NotFoundError) Error() string {
	if e.Namespace == "" {
		return fmt.Sprintf("there is no job %s in any namespace", e.Name)
	}
	return fmt.Sprintf("there is no job %s in namespace %s of cluster %s", e.Name, e.Namespace, e.Cluster)
}

// List reads every run of a namespace, or of the whole cluster when namespace
// is "", oldest first: two calls, however many jobs there are. A cluster
// without JobSet has no runs.
func List(ctx context.Context, c *kube.Client, namespace string) ([]Run, error) {
	var sets jobset.JobSetList
	if err := list(ctx, c, &sets, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var workloads kueue.WorkloadList
	if err := list(ctx, c, &workloads, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	byJob := map[string]*kueue.Workload{}
	for i := range workloads.Items {
		wl := &workloads.Items[i]
		if uid := ownerUID(wl); uid != "" {
			byJob[uid] = newer(byJob[uid], wl)
		}
	}
	runs := make([]Run, 0, len(sets.Items))
	for i := range sets.Items {
		js := &sets.Items[i]
		runs = append(runs, Read(js, byJob[string(js.UID)]))
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return runs, nil
}

// Installed tells whether the cluster knows JobSets at all: the empty list of
// one that does not means something else. *NotInstalledError when it does not;
// whatever else is in the way of looking is for the call that needs it to say.
func Installed(ctx context.Context, c *kube.Client) error {
	if meta.IsNoMatchError(c.List(ctx, &jobset.JobSetList{}, client.Limit(1))) {
		return &NotInstalledError{Cluster: c.Name, Controller: "JobSet"}
	}
	return nil
}

// Get reads one run in detail, each slice included. A missing one is a
// *NotFoundError.
func Get(ctx context.Context, c *kube.Client, namespace, name string) (Run, error) {
	js, wl, err := fetch(ctx, c, namespace, name)
	if err != nil {
		return Run{}, err
	}
	r := Read(js, wl)
	var jobs batchv1.JobList
	if err := list(ctx, c, &jobs, client.InNamespace(namespace), client.MatchingLabels{jobset.JobSetNameKey: name}); err != nil {
		return Run{}, err
	}
	pools, err := nodePools(ctx, c, r, main(js))
	if err != nil {
		return Run{}, err
	}
	r.refine(js, jobs.Items, pools)
	r.hinder(ctx, c, js, jobs.Items)
	if r.State == Failed {
		if err := findFailure(ctx, c, &r, jobs.Items); err != nil {
			return Run{}, err
		}
	}
	return r, nil
}

// fetch reads the JobSet and its Workload; the latter is nil if there is none.
func fetch(ctx context.Context, c *kube.Client, namespace, name string) (*jobset.JobSet, *kueue.Workload, error) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	found, err := c.Fetch(ctx, js)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, nil, &NotFoundError{Cluster: c.Name, Namespace: namespace, Name: name}
	}
	wl, err := workloadOf(ctx, c, js)
	return js, wl, err
}

// workloadOf finds the Workload that Kueue made for js, or nil.
func workloadOf(ctx context.Context, c *kube.Client, js *jobset.JobSet) (*kueue.Workload, error) {
	var workloads kueue.WorkloadList
	if err := list(ctx, c, &workloads, client.InNamespace(js.Namespace), client.MatchingLabels{queue.LabelJobUID: string(js.UID)}); err != nil {
		return nil, err
	}
	var found *kueue.Workload
	for i := range workloads.Items {
		found = newer(found, &workloads.Items[i])
	}
	return found, nil
}

// newer prefers the later of two Workloads of one job: while Kueue replaces
// one there can be two.
func newer(a, b *kueue.Workload) *kueue.Workload {
	if a == nil || a.CreationTimestamp.Before(&b.CreationTimestamp) {
		return b
	}
	return a
}

func ownerUID(wl *kueue.Workload) string {
	if owner := metav1.GetControllerOf(wl); owner != nil {
		return string(owner.UID)
	}
	return wl.Labels[queue.LabelJobUID]
}

// list is client.List; a kind that the cluster does not have is an empty list.
func list(ctx context.Context, c *kube.Client, into client.ObjectList, opts ...client.ListOption) error {
	err := c.List(ctx, into, opts...)
	if err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	return &kube.Error{Verb: "listing", Kind: kube.Plural(into), Key: "in " + cmp.Or(o.Namespace, "all namespaces"), Cluster: c.Name, Err: err}
}

// nodePools finds where each slice of a run was placed: slice index -> node
// pool. The pods of a finished run tell too, as long as they are kept; those of
// one that waits are gone.
func nodePools(ctx context.Context, c *kube.Client, r Run, rj *jobset.ReplicatedJob) (map[int]string, error) {
	if r.State == Pending || r.State == Suspended || rj == nil {
		return nil, nil
	}
	var pods corev1.PodList
	// One pod a slice is enough: exclusive placement puts them all in a pool.
	if err := list(ctx, c, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{
		jobset.JobSetNameKey: r.Name, jobset.ReplicatedJobNameKey: rj.Name, batchv1.JobCompletionIndexAnnotation: "0",
	}); apierrors.IsForbidden(err) && r.State.Finished() {
		return nil, nil // where it ran is not worth refusing to say how it ended
	} else if err != nil {
		return nil, err
	}
	pools := map[int]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		index, err := strconv.Atoi(pod.Labels[jobset.JobIndexKey])
		if err != nil || pod.Spec.NodeName == "" {
			continue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
		found, err := c.Fetch(ctx, node)
		if apierrors.IsForbidden(err) {
			return nil, nil // a viewer of the namespace may not read nodes
		}
		if err != nil {
			return nil, err
		}
		if found {
			pools[index] = node.Labels[accelerator.LabelNodePool]
		}
	}
	return pools, nil
}

// refine replaces what the JobSet's status says in whole slices by the child
// Jobs' own counts.
func (r *Run) refine(js *jobset.JobSet, jobs []batchv1.Job, pools map[int]string) {
	rj := main(js)
	if rj == nil {
		return
	}
	byIndex := map[int]*batchv1.Job{}
	for i := range jobs {
		job := &jobs[i]
		index, err := strconv.Atoi(job.Labels[jobset.JobIndexKey])
		if err == nil && job.Labels[jobset.ReplicatedJobNameKey] == rj.Name && job.DeletionTimestamp == nil {
			byIndex[index] = job
		}
	}
	var ready, done int
	for i := range r.Slices {
		s := SliceRun{Index: i, HostsWanted: r.HostsPerSlice, NodePool: pools[i], State: r.State}
		if job := byIndex[i]; job != nil {
			s.job(job, r.State)
		}
		ready, done = ready+s.HostsReady, done+s.HostsDone
		r.SliceRuns = append(r.SliceRuns, s)
	}
	// A finished JobSet deletes the Jobs that were still running.
	if !r.State.Finished() {
		r.HostsReady, r.HostsDone = ready, done
	}
	if r.State == Failed {
		r.explainFailure(jobs)
	}
}

func (s *SliceRun) job(job *batchv1.Job, run State) {
	s.HostsReady = int(ptr.Deref(job.Status.Ready, 0))
	s.HostsDone = int(job.Status.Succeeded)
	s.HostsFailed = int(job.Status.Failed)
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			s.State = Succeeded
			return
		case batchv1.JobFailed:
			s.State, s.Message = Failed, c.Message
			return
		}
	}
	switch {
	case run.Finished() || run == Pending || run == Suspended:
	case s.HostsReady+s.HostsDone >= s.HostsWanted:
		s.State = Running
	case run == Restarting:
	case job.Status.Active > 0:
		s.State = Starting
	default:
		s.State = Admitted
	}
}

// explainFailure adds what the first failed Job said: it names the pod, the
// container and the exit code where the JobSet names the Job alone.
func (r *Run) explainFailure(jobs []batchv1.Job) {
	_, first := firstFailed(jobs)
	if first != nil && first.Message != "" {
		r.Message += ": " + first.Message
		if r.Reason == ReasonFatalExitCode && strings.Contains(first.Message, "condition DisruptionTarget matching") {
			r.Reason = ReasonDisruption // the job's policy lets a disruption fail it
		}
	}
}
