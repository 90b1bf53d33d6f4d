package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

const (
	writeTimeout  = 5 * time.Minute
	deleteTimeout = 10 * time.Minute
	// activeWithin is how long Kueue gets to take a queue up before its reason
	// is shown instead. It takes well under a second when all is well.
	activeWithin = 15 * time.Second
)

// Create applies the ClusterQueue and its LocalQueues.
func (r *queueResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Create(ctx, writeTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.write(ctx, &m, true, &resp.State, &resp.Diagnostics)
}

// Update applies them again, and removes the LocalQueues of namespaces that
// are not listed any more.
func (r *queueResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Update(ctx, writeTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.write(ctx, &m, false, &resp.State, &resp.Diagnostics)
}

func (r *queueResource) write(ctx context.Context, m *model, create bool, state *tfsdk.State, diags *diag.Diagnostics) {
	spec, known := m.spec(ctx, diags)
	if !known && !diags.HasError() {
		conn.AddError(diags, "Invalid queue", errors.New("a value is still unknown at apply; please report this"))
	}
	if err := spec.Validate(); err != nil && known {
		conn.AddError(diags, "Invalid queue", err)
	}
	if diags.HasError() {
		return
	}
	k, err := r.MustReach(ctx, m.Cluster.ValueString())
	if err != nil {
		conn.AddError(diags, "Cannot reach the cluster", err)
		return
	}
	m.ID = types.StringValue(id(m.Cluster.ValueString(), spec.Name))
	cq := spec.ClusterQueue()
	if create {
		adopted, err := r.Claim(ctx, k, cq, typeName, m.ID.ValueString())
		if err != nil {
			conn.AddError(diags, "Cannot create queue "+spec.Name, err)
			return
		}
		if adopted {
			diags.AddWarning("Queue taken over", fmt.Sprintf("Queue %s was there already, left by an earlier apply of this configuration that did not finish.", spec.Name))
		}
	}
	r.Stamp(cq)
	if err := conn.ApplyRetry(ctx, k, cq); err != nil {
		conn.AddError(diags, "Cannot apply queue "+spec.Name, conn.NeedsControllers(err))
		return
	}
	// From here on the queue exists: an error below must not lose it.
	m.Chips, m.Status = types.Int64Value(chips(spec)), types.StringValue("Unknown")
	diags.Append(state.Set(ctx, m)...)
	for _, ns := range spec.Namespaces {
		lq := spec.LocalQueue(ns)
		r.Stamp(lq)
		if err := conn.ApplyRetry(ctx, k, lq); err != nil {
			if apierrors.IsNotFound(err) {
				err = fmt.Errorf("%w\nNamespace %s does not exist. Make it first (tpu_training_namespace) and refer to its name", err, ns)
			}
			conn.AddError(diags, fmt.Sprintf("Cannot open queue %s in namespace %s", spec.Name, ns), err)
			return
		}
	}
	if err := closeDoors(ctx, k, spec); err != nil {
		conn.AddError(diags, "Cannot clean up queue "+spec.Name, err)
		return
	}
	m.settle(ctx, k, spec, diags)
	diags.Append(state.Set(ctx, m)...)
}

// settle waits a moment for Kueue to take the queue up, and warns when it
// does not.
func (m *model) settle(ctx context.Context, k *kube.Client, spec kq.Queue, diags *diag.Diagnostics) {
	short, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: spec.Name}}
	err := k.Until(short, live, func(found bool) (bool, error) {
		s := status(live)
		return found && live.Generation > 0 && (s == kueue.ClusterQueueActive || s == kueue.ClusterQueueActiveReasonStopped && spec.Stop != kueue.None), nil
	})
	m.Status = types.StringValue(status(live))
	if err == nil {
		return
	}
	if c := meta.FindStatusCondition(live.Status.Conditions, kueue.ClusterQueueActive); c != nil {
		diags.AddWarning("Queue admits no jobs yet", fmt.Sprintf("Kueue holds queue %s back: %s (%s). Jobs wait until that changes.", spec.Name, c.Message, c.Reason))
		return
	}
	diags.AddWarning("Queue admits no jobs yet", fmt.Sprintf("Kueue has not taken queue %s up: is its controller running? Jobs wait until it does.", spec.Name))
}

// closeDoors removes the queue's LocalQueues in namespaces that it does not
// list.
func closeDoors(ctx context.Context, k *kube.Client, spec kq.Queue) error {
	doors, err := localQueues(ctx, k, spec.Name)
	if err != nil {
		return err
	}
	for i := range doors {
		if doors[i].Labels[kq.LabelClusterQueue] == spec.Name && !slices.Contains(spec.Namespaces, doors[i].Namespace) {
			if err := k.Remove(ctx, &doors[i], false); err != nil {
				return err
			}
		}
	}
	return nil
}

// localQueues are those of the ClusterQueue's own name that lead to it.
func localQueues(ctx context.Context, k *kube.Client, name string) ([]kueue.LocalQueue, error) {
	var all kueue.LocalQueueList
	if err := k.List(ctx, &all); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, &kube.Error{Verb: "listing", Kind: "LocalQueues", Key: "of queue " + name, Cluster: k.Name, Err: err}
	}
	return slices.DeleteFunc(all.Items, func(lq kueue.LocalQueue) bool {
		return lq.Name != name || string(lq.Spec.ClusterQueue) != name || lq.DeletionTimestamp != nil
	}), nil
}

// Read refreshes the state; a queue that is gone leaves it.
func (r *queueResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := m.Name.ValueString()
	fail := func(err error) { conn.AddError(&resp.Diagnostics, "Cannot read queue "+name, err) }
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found := false
	if err == nil && !gone {
		found, err = k.Fetch(ctx, live)
	}
	if err != nil {
		fail(err)
		return
	}
	if !found || live.DeletionTimestamp != nil {
		resp.State.RemoveResource(ctx)
		return
	}
	doors, err := localQueues(ctx, k, name)
	if err != nil {
		fail(err)
		return
	}
	var namespaces []string
	for _, lq := range doors {
		namespaces = append(namespaces, lq.Namespace)
	}
	m.read(ctx, live, namespaces, func(flavor string) (accelerator.Slice, bool) {
		rf := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}}
		if found, err := k.Fetch(ctx, rf); err != nil || !found {
			return accelerator.Slice{}, false
		}
		return kq.SliceOf(rf.Spec.NodeLabels)
	}, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Delete removes the LocalQueues, then the ClusterQueue, which Kueue keeps
// until no job holds quota in it.
func (r *queueResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	limit, diags := m.Timeouts.Delete(ctx, deleteTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := m.Name.ValueString()
	k, gone, err := r.Reach(ctx, m.Cluster.ValueString())
	if gone {
		return
	}
	var doors []kueue.LocalQueue
	if err == nil {
		doors, err = localQueues(ctx, k, name)
	}
	for i := range doors {
		if err == nil {
			err = k.Remove(ctx, &doors[i], false)
		}
	}
	live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err == nil {
		err = k.Remove(ctx, live, true)
	}
	if err == nil {
		return
	}
	if n := live.Status.ReservingWorkloads; n > 0 {
		err = fmt.Errorf("%w\n%d jobs still hold quota of it: %s", err, n, holders(k, name))
	}
	conn.AddDeleteError(&resp.Diagnostics, "queue "+name, err)
}

// holders names a few Workloads that hold the queue's quota.
func holders(k *kube.Client, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all kueue.WorkloadList
	if k.List(ctx, &all, client.Limit(500)) != nil {
		return "list the Workloads to see which"
	}
	var names []string
	for i := range all.Items {
		wl := &all.Items[i]
		if a := wl.Status.Admission; a != nil && string(a.ClusterQueue) == name && len(names) < 5 {
			names = append(names, wl.Namespace+"/"+wl.Name)
		}
	}
	return fmt.Sprint(names)
}
