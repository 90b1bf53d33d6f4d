package flavor

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/tpu-training/terraform-provider-tpu/internal/accelerator"
	"github.com/tpu-training/terraform-provider-tpu/internal/kube"
	"github.com/tpu-training/terraform-provider-tpu/internal/provider/kubeobject"
	"github.com/tpu-training/terraform-provider-tpu/internal/queue"
)

type model struct {
	kubeobject.Object
	Accelerator   types.String `tfsdk:"accelerator"`
	Provisioning  types.String `tfsdk:"provisioning"`
	Reservation   types.String `tfsdk:"reservation"`
	NodeLabels    types.Map    `tfsdk:"node_labels"`
	NodeTaints    types.List   `tfsdk:"node_taints"`
	Tolerations   types.List   `tfsdk:"tolerations"`
	TopologyAware types.Object `tfsdk:"topology_aware"`
	Topology      types.String `tfsdk:"topology"`
	Chips         types.Int64  `tfsdk:"chips_per_slice"`
	Added         types.List   `tfsdk:"added_tolerations"`
}

// Check refuses what Kueue would.
func (m *model) Check(ctx context.Context, diags *diag.Diagnostics) {
	f, known := m.spec(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	if err := f.Validate(); err != nil {
		diags.AddError("Invalid flavor", err.Error())
	}
}

// Plan shows what follows from the accelerator, and what Kueue does not change
// in place.
func (m *model) Plan(ctx context.Context, p *kubeobject.Planning[model]) {
	f, known := m.spec(ctx, p.Diags)
	if !known {
		m.derive() // as far as it goes
		return
	}
	m.show(ctx, f, p.Diags)
	if p.Before == nil {
		return
	}
	before, known := p.Before.spec(ctx, p.Diags)
	if !known || !f.Frozen(before) {
		return
	}
	for name, same := range map[string]bool{
		"accelerator": m.Accelerator.Equal(p.Before.Accelerator), "provisioning": m.Provisioning.Equal(p.Before.Provisioning),
		"reservation": m.Reservation.Equal(p.Before.Reservation), "node_labels": m.NodeLabels.Equal(p.Before.NodeLabels),
		"tolerations": m.Tolerations.Equal(p.Before.Tolerations), "topology_aware": m.TopologyAware.Equal(p.Before.TopologyAware),
		"added_tolerations": m.Added.Equal(p.Before.Added),
	} {
		if !same {
			p.Replace = append(p.Replace, path.Root(name))
		}
	}
	if m.Name.Equal(p.Before.Name) {
		p.Diags.AddAttributeWarning(path.Root("topology_aware"), "Flavor with a Topology is made anew", fmt.Sprintf(
			"Kueue never changes the labels, tolerations and Topology of flavor %s in place, so it is deleted and made anew. "+
				"As long as a queue names it, Kueue keeps the old one, and the apply waits in vain: give the flavor a new name in the same change, and the queues turn to it.", f.Name))
	}
}

// derive fills in what follows from the accelerator, as far as it is known.
func (m *model) derive() {
	if m.Accelerator.IsNull() {
		m.Topology, m.Chips = types.StringNull(), types.Int64Null()
		return
	}
	if s, err := accelerator.Resolve(m.Accelerator.ValueString()); err == nil && !m.Accelerator.IsUnknown() {
		m.Topology, m.Chips = types.StringValue(s.Topology.String()), types.Int64Value(int64(s.Chips))
	}
}

// Write applies the flavor, after the Topology that it names.
func (m *model) Write(ctx context.Context, w *kubeobject.Writer[model]) error {
	f, known := m.spec(ctx, w.Diags)
	if !known {
		return fmt.Errorf("accelerator %q is unknown", m.Accelerator.ValueString())
	}
	m.show(ctx, f, w.Diags)
	if t := f.TopologyObject(); t != nil {
		if err := stays(ctx, w.Client, f.Name); err != nil {
			return err
		}
		if err := w.Claim(ctx, t); err != nil {
			return err
		}
		if err := w.Part(ctx, t); err != nil {
			return err
		}
	}
	return heldBy(ctx, w.Client, f.Name, w.Apply(ctx, f.Object()))
}

// Read takes over what the cluster has.
func (m *model) Read(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) (found bool, err error) {
	live := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString()}}
	if found, err := k.Fetch(ctx, live); err != nil || !found || live.DeletionTimestamp != nil {
		return false, err
	}
	var topology *kueue.Topology
	if live.Spec.TopologyName != nil {
		t := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: string(*live.Spec.TopologyName)}}
		found, err := k.Fetch(ctx, t)
		if err != nil {
			return false, err
		}
		if found && t.DeletionTimestamp == nil {
			topology = t
		}
	}
	m.take(ctx, live, topology, diags)
	return true, nil
}

// Remove deletes the flavor, and then its Topology. One that only a queue holds
// back is left to Kueue.
func (m *model) Remove(ctx context.Context, k *kube.Client, diags *diag.Diagnostics) error {
	name := m.Name.ValueString()
	holders, err := queue.Release(ctx, k, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}, "flavor "+name, queue.UsesFlavor(name))
	if err != nil {
		return err
	}
	if f, _ := m.spec(ctx, diags); f.TopologyObject() != nil {
		// Kueue keeps it, too, as long as the flavor is there.
		if err := k.Remove(ctx, f.TopologyObject(), false); err != nil {
			return err
		}
	}
	if len(holders) > 0 {
		diags.AddWarning("Flavor goes when its queues let it go", fmt.Sprintf(
			"Flavor %s is marked for deletion, and Kueue removes it as soon as no queue names it. Named by: %s.", name, strings.Join(holders, ", ")))
	}
	return nil
}
