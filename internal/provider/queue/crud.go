package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	kq "github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

// activeWithin is how long Kueue gets to take a queue up before its reason is
// shown instead. It takes well under a second when all is well.
const activeWithin = 15 * time.Second

// Check refuses what Kueue's webhooks would refuse across attributes.
func (m *model) Check(ctx context.Context, diags *diag.Diagnostics) {
	spec, known := m.spec(ctx, diags)
	if diags.HasError() || !known {
		return
	}
	if err := spec.Validate(); err != nil {
		diags.AddError("Invalid queue", err.Error())
	}
}

// Plan shows the chips, as far as they can be known.
func (m *model) Plan(ctx context.Context, p *kubeobject.Planning[model]) {
	spec, known := m.spec(ctx, p.Diags)
	if p.Diags.HasError() {
		return
	}
	if !known {
		m.Chips = types.Int64Unknown()
		return
	}
	if err := spec.Validate(); err != nil { // with what only now is known
		p.Diags.AddError("Invalid queue", err.Error())
		return
	}
	m.count(ctx, spec, p.Diags)
	m.planShares(ctx, spec, p)
}

// count fills in the chips of every flavor and of all.
func (m *model) count(ctx context.Context, spec kq.Queue, diags *diag.Diagnostics) {
	m.Chips = types.Int64Value(spec.Chips())
	if m.Flavors.IsNull() {
		return
	}
	var flavors []flavor
	diags.Append(m.Flavors.ElementsAs(ctx, &flavors, false)...)
	for i := range flavors {
		flavors[i].Chips = types.Int64Value(spec.Quotas[i].Chips())
	}
	m.Flavors = list(ctx, flavorType, flavors, diags)
}

// Write applies the ClusterQueue and its LocalQueues, and removes the
// LocalQueues of namespaces that are not listed any more.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	spec, known := m.spec(ctx, w.Diags)
	if !known {
		return errors.New("a value is still unknown at apply; please report this")
	}
	m.count(ctx, spec, w.Diags)
	m.Status = types.StringValue("Unknown")
	if err := w.Apply(ctx, spec.ClusterQueue()); err != nil {
		return err
	}
	for _, ns := range spec.Namespaces {
		if err := openDoor(ctx, w, spec, ns); err != nil {
			return err
		}
	}
	if err := closeDoors(ctx, w.Client, spec); err != nil {
		return err
	}
	m.settle(ctx, w.Client, spec, w.Diags)
	return nil
}

// openDoor applies the LocalQueue of one namespace.
func openDoor(ctx context.Context, w *kubeobject.Writer[model], spec kq.Queue, namespace string) error {
	lq := spec.LocalQueue(namespace)
	had := lq.DeepCopy()
	if found, err := w.Fetch(ctx, had); err != nil {
		return err
	} else if found && string(had.Spec.ClusterQueue) != spec.Name {
		return fmt.Errorf("namespace %s already has a LocalQueue %s, which leads to queue %s, and cannot be turned to another. "+
			"Delete it (kubectl delete localqueue -n %s %s), or give this queue another name", namespace, lq.Name, had.Spec.ClusterQueue, namespace, lq.Name)
	}
	err := w.Part(ctx, lq)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w\nNamespace %s does not exist. Make it first (tpu_training_namespace) and refer to its name", err, namespace)
	}
	return err
}

// settle waits a moment for Kueue to take the queue up as it is now, and warns
// when it does not.
func (m *model) settle(ctx context.Context, k *kube.Client, spec kq.Queue, diags *diag.Diagnostics) {
	short, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	live := clusterQueue(spec.Name)
	wants := spec.ClusterQueue()
	var why []string // of its admission checks
	err := k.Until(short, live, func(found bool) (bool, error) {
		active, reason, _ := kq.Standing(live)
		if found && kq.TakenUp(live) && reason == kueue.ClusterQueueActiveReasonAdmissionCheckInactive {
			var final bool
			var err error
			if why, final, err = kq.StandingOfChecks(short, k, spec.Checks); err != nil || final {
				return final, err
			}
		}
		stopped := reason == kueue.ClusterQueueActiveReasonStopped && *wants.Spec.StopPolicy != kueue.None
		return found && kq.TakenUp(live) && (active && *wants.Spec.StopPolicy == kueue.None || stopped), nil
	})
	active, reason, message := kq.Standing(live)
	m.Status = status(active, reason)
	waits := *wants.Spec.StopPolicy == kueue.None || err != nil
	if !active && waits {
		if reason == kueue.ClusterQueueActiveReasonAdmissionCheckInactive && len(why) > 0 {
			message += "\n" + strings.Join(why, "\n")
		}
		diags.AddWarning("Queue admits no jobs yet", message+" Jobs wait until that changes.")
	}
}

// status is "Active", or Kueue's reason why the queue admits nothing.
func status(active bool, reason string) types.String {
	if active {
		return types.StringValue(kueue.ClusterQueueActive)
	}
	return types.StringValue(reason)
}

func clusterQueue(name string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
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

// Read fills in what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) (found bool, err error) {
	live := clusterQueue(m.Name.ValueString())
	if found, err = k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	doors, err := localQueues(ctx, k, live.Name)
	if err != nil {
		return false, err
	}
	var had kq.Queue
	if !m.Flavors.IsNull() { // an import has nothing yet
		had, _ = m.spec(ctx, &diag.Diagnostics{})
	}
	var problem error
	q := kq.FromLive(live, doors, had, func(flavor string) (accelerator.Slice, bool) {
		rf := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}}
		found, err := k.Fetch(ctx, rf)
		if err != nil {
			problem = err
		}
		if err != nil || !found {
			return accelerator.Slice{}, false
		}
		return kq.SliceOf(rf.Spec.NodeLabels)
	})
	if problem != nil {
		return false, problem
	}
	m.take(ctx, q, diags)
	active, reason, _ := kq.Standing(live)
	m.Status = status(active, reason)
	return true, nil
}

// Remove deletes the LocalQueues, then the ClusterQueue, which Kueue keeps
// until no job holds quota in it.
func (m *model) Remove(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) error {
	name := m.Name.ValueString()
	doors, err := localQueues(ctx, k, name)
	if err != nil {
		return err
	}
	for i := range doors {
		if err := k.Remove(ctx, &doors[i], false); err != nil {
			return err
		}
	}
	live := clusterQueue(name)
	err = k.Remove(ctx, live, true)
	if n := live.Status.ReservingWorkloads; err != nil && n > 0 {
		err = fmt.Errorf("%w\n%d jobs still hold quota of it: %s", err, n, holders(k, name))
	}
	return err
}

// holders names a few jobs that hold the queue's quota.
func holders(k *kube.Client, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	jobs, err := kq.Reserving(ctx, k, name)
	if err != nil {
		return "list the Workloads to see which"
	}
	var names []string
	for _, j := range jobs[:min(len(jobs), 5)] {
		names = append(names, j.Namespace+"/"+j.Name)
	}
	return fmt.Sprint(names)
}
