package training

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// Query says which runs are wanted. The server chooses, by labels.
type Query struct {
	Namespace                string // "" = all
	Name                     string // "" = any
	Queue, Owner, Experiment string
	Labels                   map[string]string
	// Whole reads every run as Get does without its slices, however many there
	// are; otherwise what waits in a long list is told in brief.
	Whole bool
}

// selector is refused where a label is none: text that is no value would say
// something else to the server.
func (q Query) selector() (labels.Selector, error) {
	all, err := labels.ValidatedSelectorFromSet(q.Labels)
	if err != nil {
		return nil, fmt.Errorf("choosing jobs by labels: %w", err)
	}
	for key, value := range map[string]string{queue.LabelQueueName: q.Queue, LabelOwner: q.Owner, LabelExperiment: q.Experiment} {
		if value == "" {
			continue
		}
		one, err := labels.NewRequirement(key, selection.Equals, []string{value})
		if err != nil {
			return nil, fmt.Errorf("choosing jobs by the label %s: %w", key, err)
		}
		all = all.Add(*one)
	}
	return all, nil
}

func (q Query) options(chosen labels.Selector) []client.ListOption {
	o := []client.ListOption{client.InNamespace(q.Namespace)}
	if !chosen.Empty() {
		o = append(o, client.MatchingLabelsSelector{Selector: chosen})
	}
	if q.Name != "" {
		o = append(o, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, q.Name)})
	}
	return o
}

// Listing is what a Query found, oldest first.
type Listing struct {
	Runs []Run
	// Brief: of runs that wait for quota or have ended, Reason, Message and what
	// else only the whole objects tell is left out.
	Brief bool
}

// few is how many jobs are read whole without a thought: some 4 KiB each. The
// first few of a long list are read in vain.
const few = 100

// Select lists runs, and transfers as little as it can. Up to few are read
// whole. Of a longer list, which is mostly jobs that wait, the server sends
// names, labels and the columns of its tables, and the whole of those only that
// hold quota.
func Select(ctx context.Context, c *kube.Client, q Query) (Listing, error) {
	var first jobset.JobSetList
	chosen, err := q.selector()
	if err != nil {
		return Listing{}, err
	}
	options := q.options(chosen)
	if !q.Whole {
		options = append(options, client.Limit(few))
	}
	if err := list(ctx, c, &first, options...); err != nil {
		return Listing{}, err
	}
	if first.Continue != "" {
		namespaces := map[string]bool{}
		for i := range first.Items {
			namespaces[first.Items[i].Namespace] = true
		}
		runs, ok, err := brief(ctx, c, q, namespaces)
		if err != nil || ok {
			return Listing{Runs: sorted(runs), Brief: true}, err
		}
		q.Whole = true
		return Select(ctx, c, q)
	}
	workloads, err := workloadsOf(ctx, c, q, chosen.Empty(), first.Items)
	if err != nil {
		return Listing{}, err
	}
	runs := make([]Run, 0, len(first.Items))
	for i := range first.Items {
		js := &first.Items[i]
		runs = append(runs, Read(js, workloads[string(js.UID)]))
	}
	return Listing{Runs: sorted(runs)}, nil
}

// mostLabels bounds whose labels LabelsOfJobs reads.
const mostLabels = 1000

// LabelsOfJobs are the labels of the jobs of a namespace, or of all; of many,
// those of some.
func LabelsOfJobs(ctx context.Context, c *kube.Client, namespace string) ([]map[string]string, error) {
	var page metav1.PartialObjectMetadataList
	page.SetGroupVersionKind(jobset.GroupVersion.WithKind("JobSetList"))
	if err := list(ctx, c, &page, client.InNamespace(namespace), client.Limit(mostLabels)); err != nil {
		return nil, err
	}
	all := make([]map[string]string, len(page.Items))
	for i := range page.Items {
		all[i] = page.Items[i].Labels
	}
	return all, nil
}

func sorted(runs []Run) []Run {
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return runs
}

// perSelector is how many uids one label selector names: some 40 bytes each of
// a URL.
const perSelector = 50

// workloadsOf are the Workloads of jobs, by the job's uid. Where the server
// chose the jobs, it is asked for theirs alone.
func workloadsOf(ctx context.Context, c *kube.Client, q Query, anyLabels bool, sets []jobset.JobSet) (map[string]*kueue.Workload, error) {
	if len(sets) > 0 && q.Name == "" && (anyLabels || len(sets) > few) {
		byJob := map[string]*kueue.Workload{}
		var page kueue.WorkloadList
		err := c.Pages(ctx, &page, "in "+cmp.Or(q.Namespace, "all namespaces"), func() error {
			byOwner(byJob, page.Items)
			return nil
		}, client.InNamespace(q.Namespace))
		return byJob, err
	}
	uids := make([]string, len(sets))
	for i := range sets {
		uids[i] = string(sets[i].UID)
	}
	return workloadsByUID(ctx, c, q.Namespace, uids)
}

func byOwner(into map[string]*kueue.Workload, all []kueue.Workload) {
	for i := range all {
		if uid := ownerUID(&all[i]); uid != "" {
			into[uid] = newer(into[uid], &all[i])
		}
	}
}

// workloadsByUID are the Workloads of a few jobs.
func workloadsByUID(ctx context.Context, c *kube.Client, namespace string, uids []string) (map[string]*kueue.Workload, error) {
	byJob := map[string]*kueue.Workload{}
	slices.Sort(uids)
	for some := range slices.Chunk(uids, perSelector) {
		in, err := labels.NewRequirement(queue.LabelJobUID, selection.In, some)
		if err != nil {
			return nil, err
		}
		var page kueue.WorkloadList
		if err := list(ctx, c, &page, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*in)}); err != nil {
			return nil, err
		}
		byOwner(byJob, page.Items)
	}
	return byJob, nil
}
