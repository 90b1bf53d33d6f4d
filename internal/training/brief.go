package training

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const (
	// mostWhole is how many jobs of a long list are read one by one, or their
	// Workloads.
	mostWhole = 200
	// readers read them at a time.
	readers = 16
)

// brief lists many runs. ok is false where the server does not offer what that
// takes, or too many jobs must be read whole: then everything is.
//
// What a job is the server's Table says where tpu_job_controllers gave the
// definition of JobSet its Columns; elsewhere the jobs' metadata does, and
// JobSet's own printer columns in the Table of each namespace. Whether it holds
// quota its Workload says, which Kueue lets select by the queue that admitted it.
// What
// neither ended nor holds quota waits, unless its Workload was deactivated: then
// its queue does not count it among those that wait. namespaces are some that
// have such jobs.
func brief(ctx context.Context, c *kube.Client, q Query, namespaces map[string]bool) (runs []Run, ok bool, err error) {
	chosen, err := q.selector()
	if err != nil {
		return nil, false, err
	}
	b := &briefing{c: c, q: q, chosen: chosen, columns: map[client.ObjectKey]columns{}, holds: map[string]bool{}, unseen: map[string]bool{}, sets: map[string]*jobset.JobSet{}}
	var work errgroup.Group
	work.Go(func() error { return b.names(ctx, namespaces) })
	work.Go(func() error { return b.holders(ctx) })
	work.Go(func() error { return list(ctx, c, &b.queues, client.InNamespace(q.Namespace)) })
	if err := work.Wait(); err != nil {
		return nil, false, unlessUnsupported(err)
	}
	for _, read := range []func(context.Context) (bool, error){b.running, b.deactivated} {
		if ok, err := read(ctx); !ok || err != nil {
			return nil, false, err
		}
	}
	for i := range b.metas {
		runs = append(runs, b.run(&b.metas[i]))
	}
	return runs, true, nil
}

// unlessUnsupported forgets that a server does not serve a Table, or does not
// select by a field.
func unlessUnsupported(err error) error {
	if apierrors.IsBadRequest(err) || apierrors.IsNotAcceptable(err) {
		return nil
	}
	return err
}

type briefing struct {
	c      *kube.Client
	q      Query
	chosen labels.Selector // of q

	metas  []metav1.PartialObjectMetadata
	holds  map[string]bool // quota, by the uid of the job; also once it has ended
	queues kueue.LocalQueueList

	mu      sync.Mutex
	columns map[client.ObjectKey]columns

	// What was read whole, by the uid of the job.
	sets      map[string]*jobset.JobSet
	workloads map[string]*kueue.Workload

	unseen map[string]bool // by Kueue, by the uid of the job
}

// columns are what JobSet's Table shows of a job.
type columns struct {
	name      string
	terminal  string // Completed, Failed or ""
	suspended bool
	restarts  int
	meta      *metav1.PartialObjectMetadata // nil where the table lacks Columns
}

// names reads what the jobs are, from one Table if that tells it.
func (b *briefing) names(ctx context.Context, namespaces map[string]bool) error {
	rows, err := b.table(ctx, b.q.Namespace)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.meta == nil {
			return b.metadata(ctx, namespaces)
		}
		if b.q.Name == "" || row.name == b.q.Name {
			b.metas = append(b.metas, *row.meta)
			b.columns[client.ObjectKeyFromObject(row.meta)] = row
		}
	}
	return nil
}

// metadata reads the metadata, and the Table of each namespace that has jobs:
// rows without objects do not say their namespace. Those of known are read
// meanwhile.
func (b *briefing) metadata(ctx context.Context, known map[string]bool) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(readers)
	table := func(ns string) {
		work.Go(func() error {
			rows, err := b.table(ctx, ns)
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, row := range rows {
				b.columns[client.ObjectKey{Namespace: ns, Name: row.name}] = row
			}
			return err
		})
	}
	for ns := range known {
		table(ns)
	}
	var page metav1.PartialObjectMetadataList
	page.SetGroupVersionKind(jobset.GroupVersion.WithKind("JobSetList"))
	if err := list(ctx, b.c, &page, b.q.options(b.chosen)...); err != nil {
		_ = work.Wait()
		return err
	}
	b.metas = page.Items
	asked := maps.Clone(known)
	for i := range b.metas {
		if ns := b.metas[i].Namespace; !asked[ns] {
			asked[ns] = true
			table(ns)
		}
	}
	return work.Wait()
}

// table reads the Table of a namespace's jobs; "" is all.
func (b *briefing) table(ctx context.Context, namespace string) ([]columns, error) {
	cfg := rest.CopyConfig(b.c.Config)
	cfg.NegotiatedSerializer = scheme.Codecs
	raw, err := rest.UnversionedRESTClientForConfigAndClient(cfg, b.c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("preparing a client for cluster %s: %w", b.c.Name, err)
	}
	path, where := []string{"/apis", jobset.GroupVersion.Group, jobset.GroupVersion.Version, "jobsets"}, "all namespaces"
	if namespace != "" {
		path, where = slices.Insert(path, 3, "namespaces", namespace), "namespace "+namespace
	}
	request := raw.Get().AbsPath(path...).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Param("includeObject", string(metav1.IncludeNone))
	if !b.chosen.Empty() {
		request = request.Param("labelSelector", b.chosen.String())
	}
	var table metav1.Table
	text, err := request.DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	if err != nil {
		return nil, &kube.Error{Verb: "listing", Kind: "JobSets", Key: "in " + where, Cluster: b.c.Name, Err: err}
	}
	at := map[string]int{}
	for i, d := range table.ColumnDefinitions {
		at[d.Name] = i
	}
	for _, want := range []string{"Name", "TerminalState", "Suspended", "Restarts"} {
		if _, ok := at[want]; !ok {
			return nil, apierrors.NewBadRequest("the table of JobSets has no column " + want)
		}
	}
	ours := !slices.ContainsFunc(Columns(), func(c Column) bool { _, ok := at[c.Name]; return !ok })
	rows := make([]columns, 0, len(table.Rows))
	for _, r := range table.Rows {
		cell := func(name string) string {
			if i := at[name]; i < len(r.Cells) && r.Cells[i] != nil {
				return fmt.Sprint(r.Cells[i])
			}
			return ""
		}
		row := columns{name: cell("Name"), terminal: cell("TerminalState"), suspended: cell("Suspended") == "true"}
		row.restarts, _ = strconv.Atoi(cell("Restarts"))
		if ours {
			row.meta = metaOf(cell)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// holders finds the jobs whose Workloads hold quota.
func (b *briefing) holders(ctx context.Context) error {
	var page metav1.PartialObjectMetadataList
	page.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("WorkloadList"))
	err := list(ctx, b.c, &page, client.InNamespace(b.q.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("status.admission.clusterQueue", "")})
	for i := range page.Items {
		if owner := metav1.GetControllerOf(&page.Items[i]); owner != nil {
			b.holds[string(owner.UID)] = true
		}
	}
	return err
}

// of is what the Table shows of a job; nothing of one that was made, or went,
// between two answers.
func (b *briefing) of(m *metav1.PartialObjectMetadata) (columns, bool) {
	row, ok := b.columns[client.ObjectKeyFromObject(m)]
	return row, ok
}

// running reads the jobs that run, or may: their pods and conditions say how
// far they are.
func (b *briefing) running(ctx context.Context) (ok bool, err error) {
	var uids []string
	work, below := errgroup.WithContext(ctx)
	work.SetLimit(readers)
	for i := range b.metas {
		m := &b.metas[i]
		row, known := b.of(m)
		uid := string(m.UID)
		if queued := m.Labels[queue.LabelQueueName] != ""; !known || row.terminal != "" || queued && row.suspended && !b.holds[uid] {
			continue
		}
		if uids = append(uids, uid); len(uids) > mostWhole {
			_ = work.Wait()
			return false, nil
		}
		work.Go(func() error {
			js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
			found, err := b.c.Fetch(below, js)
			if found && js.UID == m.UID {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.sets[uid] = js
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return false, err
	}
	b.workloads, err = workloadsByUID(ctx, b.c, b.q.Namespace, uids)
	return true, err
}

// deactivated finds the jobs that wait for nothing. The Workloads of those that
// were cancelled are read. Where a queue counts as many that wait as there are
// others, there are no more; elsewhere Kueue is asked which they are, and the
// Workloads of the rest are read. A queue's count lags behind by a moment, in
// which a job that was suspended is still taken for one that waits.
func (b *briefing) deactivated(ctx context.Context) (ok bool, err error) {
	waiting := map[client.ObjectKey]map[string]bool{} // uids by queue
	var unsure []string
	for i := range b.metas {
		m := &b.metas[i]
		row, known := b.of(m)
		if uid := string(m.UID); known && row.terminal == "" && row.suspended && b.sets[uid] == nil {
			if m.Annotations[AnnotationCancelled] != "" {
				unsure = append(unsure, uid)
				continue
			}
			key := client.ObjectKey{Namespace: m.Namespace, Name: m.Labels[queue.LabelQueueName]}
			if waiting[key] == nil {
				waiting[key] = map[string]bool{}
			}
			waiting[key][uid] = true
		}
	}
	counted := map[client.ObjectKey]int{}
	for i := range b.queues.Items {
		counted[client.ObjectKeyFromObject(&b.queues.Items[i])] = int(b.queues.Items[i].Status.PendingWorkloads)
	}
	everyJob := b.q.Owner == "" && b.q.Experiment == "" && len(b.q.Labels) == 0
	for key, uids := range waiting {
		if n, known := counted[key]; everyJob && known && n == len(uids) || key.Name == "" {
			continue
		}
		told, err := queue.PendingJobs(ctx, b.c, key.Namespace, key.Name)
		if err != nil {
			return false, err
		}
		if told == nil {
			return false, nil // nobody says
		}
		for uid := range uids {
			if !told[uid] {
				unsure = append(unsure, uid)
			}
		}
	}
	if len(unsure) > mostWhole {
		if unsure, err = b.withWorkload(ctx, unsure); err != nil || len(unsure) > mostWhole {
			return false, err
		}
	}
	found, err := workloadsByUID(ctx, b.c, b.q.Namespace, unsure)
	maps.Copy(b.workloads, found)
	for _, uid := range unsure {
		if err == nil && found[uid] == nil {
			b.unseen[uid] = true
		}
	}
	return true, err
}

// withWorkload are the jobs for which Kueue has made a Workload; the others it
// has not seen, and their Workloads need not be read.
func (b *briefing) withWorkload(ctx context.Context, uids []string) ([]string, error) {
	seen := map[string]bool{}
	var page metav1.PartialObjectMetadataList
	page.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("WorkloadList"))
	if err := list(ctx, b.c, &page, client.InNamespace(b.q.Namespace)); err != nil {
		return nil, err
	}
	for i := range page.Items {
		if owner := metav1.GetControllerOf(&page.Items[i]); owner != nil {
			seen[string(owner.UID)] = true
		}
	}
	var with []string
	for _, uid := range uids {
		if seen[uid] {
			with = append(with, uid)
		} else {
			b.unseen[uid] = true
		}
	}
	return with, nil
}

// run is what is known of a job.
func (b *briefing) run(m *metav1.PartialObjectMetadata) Run {
	wl := b.workloads[string(m.UID)]
	if js := b.sets[string(m.UID)]; js != nil {
		return Read(js, wl)
	}
	row, _ := b.of(m)
	js := &jobset.JobSet{ObjectMeta: m.ObjectMeta}
	js.Spec.Suspend = ptr.To(row.suspended)
	js.Status.Restarts = int32(row.restarts)
	if row.terminal != "" {
		js.Status.Conditions = []metav1.Condition{{Type: row.terminal, Status: metav1.ConditionTrue}}
	}
	if rj, ok := b.shape(m); ok {
		js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{rj}
	}
	r := Read(js, wl)
	if wl == nil && !r.State.Finished() && !b.unseen[string(m.UID)] {
		r.State, r.Reason, r.Message = Pending, "", ""
	}
	if r.State.Finished() {
		r.Reason, r.Message = "", ""
	}
	return r
}

// shape is the main job as far as annotations tell.
func (b *briefing) shape(m *metav1.PartialObjectMetadata) (jobset.ReplicatedJob, bool) {
	n, err := strconv.Atoi(m.Annotations[AnnotationSlices])
	slice, sliceErr := accelerator.Resolve(m.Annotations[AnnotationAccelerator])
	if err != nil || sliceErr != nil {
		return jobset.ReplicatedJob{}, false
	}
	rj := jobset.ReplicatedJob{Name: SliceJob, Replicas: int32(n)}
	rj.Template.Spec.Parallelism = ptr.To(int32(slice.Hosts))
	rj.Template.Spec.Template.Spec.NodeSelector = slice.NodeLabels()
	return rj, true
}
