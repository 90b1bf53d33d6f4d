package flavor

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/conn"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	kubeobject.Object
	Accelerator  types.String `tfsdk:"accelerator"`
	Provisioning types.String `tfsdk:"provisioning"`
	NodeLabels   types.Map    `tfsdk:"node_labels"`
	Topology     types.String `tfsdk:"topology"`
	Chips        types.Int64  `tfsdk:"chips_per_slice"`
}

// spec translates. known is false while a value is not known yet, or wrong by
// itself, which its attribute says.
func (m *model) spec(ctx context.Context, diags *diag.Diagnostics) (f queue.Flavor, known bool) {
	if m.Name.IsUnknown() || m.Accelerator.IsUnknown() || m.Provisioning.IsUnknown() || m.NodeLabels.IsUnknown() {
		return f, false
	}
	for _, v := range m.NodeLabels.Elements() {
		if v.IsUnknown() {
			return f, false
		}
	}
	s, err := accelerator.Resolve(m.Accelerator.ValueString())
	if err != nil {
		return f, false
	}
	return queue.Flavor{Name: m.Name.ValueString(), Slice: s, Provisioning: queue.Provisioning(m.Provisioning.ValueString()),
		NodeLabels: conn.Strings(ctx, m.NodeLabels, diags)}, true
}

// Check refuses labels that together are not what Kueue takes.
func (m *model) Check(ctx context.Context, diags *diag.Diagnostics) {
	f, known := m.spec(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	if err := f.Validate(); err != nil {
		diags.AddAttributeError(path.Root("node_labels"), "Invalid flavor", err.Error())
	}
}

// Plan shows what follows from the accelerator.
func (m *model) Plan(context.Context, *kubeobject.Planning[model]) { m.derive() }

// derive fills in what follows from the accelerator, as far as it is known.
func (m *model) derive() {
	if s, err := accelerator.Resolve(m.Accelerator.ValueString()); err == nil && !m.Accelerator.IsUnknown() {
		m.Topology, m.Chips = types.StringValue(s.Topology.String()), types.Int64Value(int64(s.Chips))
	}
}

// Write applies the flavor.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	f, known := m.spec(ctx, w.Diags)
	if !known {
		return fmt.Errorf("accelerator %q is unknown", m.Accelerator.ValueString())
	}
	m.derive()
	return heldBy(ctx, w.Client, f.Name, w.Apply(ctx, f.Object()))
}

// Read takes over what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, _ *diag.Diagnostics) (found bool, err error) {
	live := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if found, err := k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	m.take(live)
	return true, nil
}

// take fills in the live flavor. The user's spelling of the accelerator stays
// as long as the flavor still stands for it.
func (m *model) take(live *kueue.ResourceFlavor) {
	labels := maps.Clone(live.Spec.NodeLabels)
	wanted, err := accelerator.Resolve(m.Accelerator.ValueString())
	if is, ok := queue.SliceOf(labels); ok && (err != nil || is != wanted) {
		m.Accelerator = types.StringValue(is.Name)
	} else if !ok {
		// Somebody took the labels away: an empty name shows as a change.
		m.Accelerator = types.StringValue("")
	}
	provisioning := queue.AnyProvisioning
	switch {
	case labels[accelerator.LabelSpot] == "true":
		provisioning = queue.Spot
		delete(labels, accelerator.LabelSpot)
	case labels[accelerator.LabelProvisioning] == "standard":
		provisioning = queue.OnDemand
		delete(labels, accelerator.LabelProvisioning)
	}
	m.Provisioning = types.StringNull()
	if provisioning != queue.AnyProvisioning {
		m.Provisioning = types.StringValue(string(provisioning))
	}
	for _, key := range []string{accelerator.LabelAccelerator, accelerator.LabelTopology, accelerator.LabelAcceleratorCount} {
		delete(labels, key)
	}
	if len(labels) > 0 || len(m.NodeLabels.Elements()) > 0 {
		m.NodeLabels = conn.StringMap(labels)
	}
	m.derive()
}

// Remove deletes the flavor. One that only a queue holds back is left to Kueue:
// a renamed flavor is deleted before the queue turns to the new one, so waiting
// here would wait for ever.
func (m *model) Remove(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) error {
	name := m.Name.ValueString()
	holders, err := remove(ctx, k, name)
	if len(holders) > 0 {
		diags.AddWarning("Flavor goes when its queues let it go", fmt.Sprintf(
			"Flavor %s is marked for deletion, and Kueue removes it as soon as no queue names it. Named by: %s.", name, strings.Join(holders, ", ")))
	}
	return err
}
